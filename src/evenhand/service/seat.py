"""One experiment in the hands of one folder: folds rewards and publishes plans.

Every transaction first proves the fence: a folder that was away for longer than its lease, and
whose place was taken, can write nothing. A transaction that fails leaves the state in memory ahead
of the log, so the seat must then be given up and the state recovered.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenhand.exchange.ledger import MOST
from evenhand.service import agreements, recovery
from evenhand.service.database import ERRORS, Connection
from evenhand.service.entries import Entry
from evenhand.service.release import release
from evenhand.service.replica import Epoch

LEASE = 3.0  # seconds
FOLD_LIMIT = 2**16  # rows of a fold
log = logging.getLogger(__name__)


class Lost(RuntimeError):  # noqa: N818
    """Another folder has the experiment."""


def elect(c: Connection, experiment: int, holder: str) -> int | None:
    """Take an experiment's lease if it is free; return the fencing number.

    A holder's own is free to it: whoever had that name before is dead. A file has one service,
    which starts one folder: there all are.
    """
    free = "true" if c.one_service else f"not {held(c)}"
    with c.transaction():
        taken = c.execute(
            f"update folders set holder=?, fence=fence+1, until={c.now}+? "
            f"where exp=? and (holder=? or {free}) returning fence",
            (holder, LEASE, experiment, holder),
        )
    return taken[0][0] if taken else None


def held(c: Connection) -> str:
    """A condition on rows of ``folders``: somebody has the experiment.

    A lease far ahead was taken before the clock was set back: its holder renews it, or is gone.
    """
    return f"(until>{c.now} and until<{c.now}+{2 * LEASE})"


class Seat:
    """An experiment, led by this process as long as its fence stands."""

    def __init__(self, c: Connection, experiment: int, fence: int) -> None:
        self.c, self.experiment, self.fence = c, experiment, fence
        found = recovery.recover(c, experiment)
        self.replica, self.snapped = found.replica, found.snapshot
        row = c.execute(
            "select name, rewards, oldest, floor, archived is not null, created from experiments "
            "where id=?",
            (experiment,),
        )[0]
        self.name, self.rewards, self.oldest, self.floor = row[0], json.loads(row[1]), *row[2:4]
        self.archived = bool(row[4])  # what was told is still counted, but no row handed out
        self.created: float = row[5]
        if found.release != release() or not found.same_bits:
            self._migrate(found)
        self.reported = self.series = self.thinned = float("-inf")  # when a report was written
        self.cost = 0.0  # seconds that it took
        self.starving = list[int]()  # arms that got much less than they were due, of late
        self.told_of = 0  # entry that it told of
        self.published = 0  # rows of the newest plan
        self.agreed = agreements.known(c, experiment)
        log.info(
            "leads",
            extra={
                "experiment": self.name,
                "fence": fence,
                "seq": self.replica.seq,
                "snapshot": found.snapshot,
                "replayed": found.replayed,
            },
        )

    def _migrate(self, found: recovery.Recovered) -> None:
        """Note that another release goes on from here; replay begins at this snapshot then."""
        how = "the same bits" if found.same_bits else "from the rows that were stored"
        with self.proven():
            self._write(self.replica.migrate(found.release, how))
            recovery.write_snapshot(self.c, self.experiment, self.replica)
        self.snapped = self.replica.seq

    @contextmanager
    def proven(self) -> Iterator[Connection]:
        """Begin a transaction that ends in nothing if the lease was lost."""
        with self.c.transaction():
            held = self.c.change(
                f"update folders set until={self.c.now}+? where exp=? and fence=?",
                (LEASE, self.experiment, self.fence),
            )
            if not held:
                raise Lost(f"experiment {self.name} has another folder")
            yield self.c

    def work(self, least: int | None) -> int:
        """Fold what was told and, if ``least`` is given, publish so many rows; count rewards."""
        with self.proven():
            told = self._fold(self._unfolded())
            if least is not None:
                self._make_room()
                self._publish(least)
        return told

    def settle_window(self) -> int:
        """Give rows that were shown and not told in time the default reward."""
        window, reward = self.rewards["window"], self.rewards["default"]
        with self.proven() as c:
            late = c.execute(
                f"update shown set settled=1 where settled=0 and exp=? and at<{c.now}-? "
                "returning epoch, row",
                (self.experiment, window),
            )
            c.many(
                "insert into tells(exp, epoch, row, reward, at, by_default) "
                f"values(?,?,?,?,{c.now},1) on conflict do nothing",
                [(self.experiment, e, r, reward) for e, r in late if e >= self.oldest],
            )
        return len(late)

    def change(self, number: int, call: str, arguments: dict[str, Any]) -> None:
        """Do a change that was asked for; no older row is leased from then on."""
        with self.proven() as c:
            self._fold(self._unfolded())
            names = arguments.pop("names", [])  # kept out of the log, so that they can be erased
            try:
                entry, answer = self.replica.change(call, arguments)
            except ERRORS:
                raise
            except Exception as error:  # whatever a change stumbles over, the experiment goes on
                log.warning("refused", extra={"experiment": self.name, "error": repr(error)})
                self._answer(number, {"refused": str(error) or repr(error)})
                return
            self._write(entry)
            self._write_arms(dict(zip(answer or [], names, strict=True)) if names else {})
            self.floor = self.replica.next
            self.agreed = False
            c.execute(
                "update experiments set floor=?, version=version+1 where id=?",
                (self.floor, self.experiment),
            )
            c.execute(
                "update epochs set leased=n where exp=? and number<? and leased<n",
                (self.experiment, self.floor),
            )
            self._make_room()
            self._publish(1)
            self._answer(number, {"seq": self.replica.seq, "answer": answer})

    def _write_arms(self, new: dict[int, str]) -> None:
        """Write which arms there are now, for the web workers."""
        c, roster = self.c, self.replica.learner.roster
        c.many(
            f"insert into arms(exp, id, name, joined) values(?,?,?,{c.now})",
            [(self.experiment, arm, name) for arm, name in new.items()],
        )
        paused = set(roster.paused)
        here = set(roster.ids.tolist()) | paused
        for arm, left, rests in c.execute(
            "select id, retired is not null, paused from arms where exp=?", (self.experiment,)
        ):
            if bool(left) != (arm not in here):
                c.execute(
                    f"update arms set retired={c.now} where exp=? and id=?", (self.experiment, arm)
                )
            if bool(rests) != (arm in paused):
                c.execute(
                    "update arms set paused=? where exp=? and id=?",
                    (int(arm in paused), self.experiment, arm),
                )

    def snapshot_if_due(self) -> None:
        """Write a snapshot when the log behind the last one is long."""
        if self.replica.seq - self.snapped >= recovery.EVERY:
            self.snapshot()

    def snapshot(self) -> None:
        """Write a snapshot."""
        with self.proven():
            recovery.write_snapshot(self.c, self.experiment, self.replica)
        self.snapped = self.replica.seq

    def leave(self) -> None:
        """Write a snapshot and free the lease."""
        with self.proven() as c:
            recovery.write_snapshot(c, self.experiment, self.replica)
            c.execute("update folders set until=0, holder=null where exp=?", (self.experiment,))

    def _unfolded(self, before: int | None = None) -> list[tuple[int, int, float | None]]:
        """Mark rewards as taken in by the next entry, and return them."""
        which = "" if before is None else f" and epoch<{before:d}"
        found = self.c.execute(
            "update tells set fold=? where exp=? and fold is null and (epoch, row) in "
            f"(select epoch, row from tells where exp=? and fold is null{which} "
            f"limit {FOLD_LIMIT}) "
            "returning epoch, row, reward",
            (self.replica.seq + 1, self.experiment, self.experiment),
        )
        return [(e, r, y) for e, r, y in found]

    def _fold(self, told: list[tuple[int, int, float | None]]) -> int:
        if told:
            self._write(self.replica.fold(told))
        return len(told)

    def _publish(self, least: int) -> Epoch:
        entry, epoch = self.replica.publish(least)
        self.published = epoch.n
        self._write(entry)
        self.c.execute(
            "insert into epochs(exp, number, first, n, plan, rows, crc, at) "
            f"values(?,?,?,?,?,?,?,{self.c.now})",
            (self.experiment, *epoch[:3], epoch.plan, epoch.rows, epoch.crc),
        )
        if not self.agreed:
            agreements.write(
                self.c, self.experiment, epoch.number, agreements.of_replica(self.replica)
            )
            self.agreed = True
        return epoch

    def _make_room(self) -> None:
        """Let the oldest rows expire where there are too many to remember.

        Nobody tells meanwhile, and what was told of them is folded first: a reward is either
        counted, or its teller hears that it came too late.
        """
        epochs, replica = self.replica.epochs, self.replica
        if not epochs:
            return
        first, last = next(iter(epochs.values())), epochs[max(epochs)]
        crowded = len(epochs) >= replica.most_epochs or sum(last) - first[0] > MOST // 2
        if not crowded:
            return
        numbers = sorted(epochs)
        self.oldest = numbers[len(numbers) // 8]
        self.c.exclude(self.experiment)
        while self._fold(self._unfolded(self.oldest)):
            pass
        waiting = self.waiting()
        self._write(replica.expire(self.oldest))
        self.c.execute(
            "update experiments set oldest=?, expired=expired+?, version=version+1 where id=?",
            (self.oldest, max(0, waiting - self.waiting()), self.experiment),
        )

    def waiting(self) -> int:
        """How many rows were handed to web workers and can still be told, but were not yet."""
        if not self.replica.epochs or not self.replica.learns:
            return 0
        ledger, oldest = self.replica.learner.ledger, next(iter(self.replica.epochs))
        handed = self.c.execute(
            "select coalesce(sum(stop-first), 0) from leases where exp=? and epoch>=?",
            (self.experiment, oldest),
        )
        told = ledger.next - ledger.first - ledger.n_open
        return max(0, int(handed[0][0]) - told)

    def _write(self, entry: Entry) -> None:
        """Write an entry that the replica has just followed."""
        self.c.execute(
            f"insert into log(exp, seq, kind, payload, crc, at) values(?,?,?,?,?,{self.c.now})",
            (self.experiment, self.replica.seq, entry.kind, entry.payload, self.replica.chain),
        )

    def _answer(self, change: int, answer: dict[str, Any]) -> None:
        self.c.execute(
            f"update changes set done={self.c.now}, answer=? where id=?",
            (json.dumps(answer), change),
        )

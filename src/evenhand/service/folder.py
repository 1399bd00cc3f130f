"""The folder: one process per host that leads experiments, as many as it can get."""

import argparse
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from evenhand.service import parent, report
from evenhand.service.database import DATABASE, ERRORS, Connection, Database, database, wait_for
from evenhand.service.logs import log_as_json
from evenhand.service.pace import AHEAD, EARLY
from evenhand.service.replica import SERVED, make_learner
from evenhand.service.seat import LEASE, Lost, Seat, elect, held

TICK = 0.01  # seconds between looks at the database
FOLD_EVERY = 0.1  # seconds at least between folds, if rows are in stock
FOLD_LATE = 1.0  # seconds at most
FOLD_ROWS = 100  # rows that are worth a fold: what is folded is learnt when a plan is published
LOOK_EVERY = 0.5  # seconds between looks for experiments
FRESH = 3.0  # seconds for which a worker's word about its traffic counts
log = logging.getLogger(__name__)


class Folder:
    """Leads experiments: folds their rewards and publishes their plans."""

    def __init__(self, source: Database, holder: str | None = None) -> None:
        self.source = source
        self.holder = holder or parent.new_name()  # whoever had this name before is dead
        self.c: Connection | None = None
        self.seats: dict[int, Seat] = {}
        self.stopping = False
        self._folded: dict[int, float] = {}
        self._looked = self._beat = self._load = 0.0

    def run(self) -> None:
        """Work until told to stop."""
        while not self.stopping:
            try:
                if self.c is None:
                    self.c = wait_for(self.source, 1.0)
                    if not self.c.execute("select 1 from experiments limit 1"):
                        warm()  # else the log that is followed now does it
                busy = self.step(self.c)
            except ERRORS as error:
                log.warning("database", extra={"error": str(error).strip()})
                self._forget()
                time.sleep(0.2)
            else:
                time.sleep(TICK if busy else 2 * TICK)
        self.leave()

    def _forget(self) -> None:
        """Drop all that is in memory: it may be ahead of the log."""
        self.seats.clear()
        if self.c is not None:
            with contextlib.suppress(*ERRORS):
                self.c.close()
        self.c = None

    def leave(self) -> None:
        """Write snapshots and free the leases, so that another folder need not wait."""
        if self.c is None:
            return
        with contextlib.suppress(Lost, *ERRORS):
            for seat in self.seats.values():
                seat.snapshot()
            with self.c.transaction():
                self.c.execute("update folders set until=0 where holder=?", (self.holder,))
                self.c.execute("delete from demand where exp=0 and worker=?", (self.holder,))
        self._forget()

    def step(self, c: Connection) -> bool:
        """Do what there is to do; say whether that was anything."""
        now, busy = time.monotonic(), False
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            self._look(c)
            self._load = report.load(self.seats.values())
        if now - self._beat >= LEASE / 3:
            self._beat = now
            self._renew(c)
        for number, experiment, call, arguments in c.execute(
            "select id, exp, call, arguments from changes where done is null order by id"
        ):
            seat = self.seats.get(experiment)
            if seat:
                self._do(seat, partial(seat.change, number, call, json.loads(arguments)))
                busy = True
        inbox = {e for (e,) in c.execute("select distinct exp from tells where fold is null")}
        left: dict[int, int] = dict(
            c.execute("select exp, sum(n-leased) from epochs where leased<n group by exp")
        )
        rates: dict[int, float] = dict(
            c.execute(
                f"select exp, sum(rate) from demand where {c.recent('at', FRESH)} group by exp"
            )
        )
        for experiment, seat in list(self.seats.items()):
            rate = rates.get(experiment, 0.0)
            ahead = rate * AHEAD
            # a long plan may be followed early: that makes its successor hardly staler
            least_left = max(ahead / 2, min(rate * EARLY, seat.published / 2))
            low = left.get(experiment, 0) <= least_left and not seat.archived
            every = min(FOLD_LATE, max(FOLD_EVERY, FOLD_ROWS / rate if rate else 0.0))
            due = experiment in inbox and now - self._folded.get(experiment, 0.0) >= every
            if low or due:
                least = max(1, round(ahead)) if low else None
                self._do(seat, partial(seat.work, least))
                self._folded[experiment] = now
                busy = True
        return busy

    def _do(self, seat: Seat, work: Callable[[], object]) -> None:
        """Work on one experiment; one that cannot go on does not hold up the others."""
        try:
            work()
            seat.snapshot_if_due()
            self._report(seat)
        except Lost:
            log.warning("lost", extra={"experiment": seat.name, "fence": seat.fence})
            self.seats.pop(seat.experiment, None)
        except ERRORS:
            raise
        except Exception as error:
            self._break(seat.experiment, seat.name, error)

    def _report(self, seat: Seat) -> None:
        """Write a report if one is due; learning does not depend on whether that works."""
        try:
            report.write_if_due(seat, self._load)
        except Lost:
            raise
        except ERRORS:
            raise
        except Exception:
            log.exception("no report", extra={"experiment": seat.name})

    def _break(self, experiment: int, name: str, error: Exception) -> None:
        log.exception("broken", extra={"experiment": name})
        self.seats.pop(experiment, None)
        assert self.c is not None
        with self.c.transaction():
            self.c.execute(
                "update experiments set broken=?, version=version+1 where id=?",
                (f"{type(error).__name__}: {error}", experiment),
            )

    def _look(self, c: Connection) -> None:
        """Take experiments that have no folder; let go of those that were archived."""
        rows = c.execute(
            "select e.id, e.name, e.archived, e.broken, e.rewards, "
            f"(coalesce(f.holder, '')=? or not {held(c)}) "
            "from experiments e join folders f on f.exp=e.id",
            (self.holder,),
        )
        unfolded = {e for (e,) in c.execute("select distinct exp from tells where fold is null")}
        resting = {e for e, _, archived, broken, *_ in rows
                   if broken or (archived and e not in unfolded)}  # fmt: skip
        share = self._share(c, len(rows) - len(resting))
        for experiment, name, archived, _, rewards, free in rows:
            seat = self.seats.get(experiment)
            if experiment in resting:
                if seat:
                    self._do(seat, seat.snapshot)
                    self.seats.pop(experiment, None)
            elif seat:
                seat.archived = archived is not None
                waits = json.loads(rewards)["mode"] == "window"
                self._do(seat, seat.settle_window if waits else lambda: None)
            elif c.one_service or (free and len(self.seats) < share):
                self._lead(c, experiment, name)
        if len(self.seats) > share:
            self._hand_over(next(reversed(self.seats.values())))

    def _share(self, c: Connection, experiments: int) -> int:
        """How many experiments are for this folder, if all have about as many."""
        if c.one_service:
            return experiments
        others = c.execute(
            f"select count(*) from demand where exp=0 and worker<>? and {c.recent('at', FRESH)}",
            (self.holder,),
        )[0][0]
        return -(-experiments // (1 + int(others)))

    def _hand_over(self, seat: Seat) -> None:
        """Let a folder that has less to do take an experiment; one at a time."""
        self.seats.pop(seat.experiment)
        with contextlib.suppress(Lost):
            seat.leave()

    def _lead(self, c: Connection, experiment: int, name: str) -> None:
        fence = elect(c, experiment, self.holder)
        if fence is None:
            return
        try:
            self.seats[experiment] = Seat(c, experiment, fence)
        except ERRORS:
            raise
        except Exception as error:
            self._break(experiment, name, error)

    def _renew(self, c: Connection) -> None:
        """Renew all leases, and show that this folder is at work."""
        with c.transaction():
            held = c.execute(
                f"update folders set until={c.now}+? where holder=? returning exp",
                (LEASE, self.holder),
            )
            c.execute(
                f"insert into demand(exp, worker, rate, at) values(0,?,0,{c.now}) "
                "on conflict(exp, worker) do update set at=excluded.at",
                (self.holder,),
            )
        for experiment in self.seats.keys() - {e for (e,) in held}:
            self.seats.pop(experiment)


def warm() -> None:
    """Compile what folding and publishing need, before anybody waits for it."""
    config = {"m": 6, "k": 2, "seed": 0, "options": {}}
    for kind in SERVED:
        make_learner(config | {"learner": kind}).warm()


def main() -> None:
    """Run a folder until SIGTERM, or until the process that started it is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--beat", type=int, help="descriptor to show signs of life at")
    parser.add_argument("--holder", help="name that its leases are under")
    given = parser.parse_args()
    log_as_json()
    if given.beat is not None:
        parent.beat(given.beat)
    folder = Folder(database(os.environ[DATABASE]), given.holder)

    def stop(*_: Any) -> None:
        folder.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the terminal: the parent says when
    parent.when_alone(stop)
    folder.run()


if __name__ == "__main__":
    main()

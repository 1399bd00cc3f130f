"""A learner as its configuration and its log make it, bit for bit."""

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from evenhand import storage
from evenhand.exchange import Batch, Plan, Rows
from evenhand.exchange.ledger import MOST
from evenhand.learners import URS, EvenHand, FullSets
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.learner import Learner
from evenhand.service import entries, rows
from evenhand.service.changes import CHANGES
from evenhand.service.entries import Entry
from evenhand.service.release import release
from evenhand.service.tally import Tally

SERVED: dict[str, type[ExchangeableLearner[Any]]] = {
    kind.name: kind for kind in (EvenHand, FullSets, URS)
}  # one query per row, exchangeable, without a horizon
PLAN_MEMORY = 2**26  # bytes that plans of rows never told may take


Stored = Callable[[int], tuple[bytes, bytes]]


class Epoch(NamedTuple):
    """A published plan with its rows."""

    number: int
    first: int  # number of its first row in the learner's ledger
    n: int
    plan: bytes
    rows: bytes
    crc: int


class Diverged(ValueError):  # noqa: N818
    """The log, followed here, gives other rows than were handed out."""


class Replica:
    """The state of one experiment.

    Attributes
    ----------
    learner
        The learner. Arms have no names here: those can be erased, the log cannot.
    epochs
        First row and number of rows of each epoch that can still be told.
    next
        Number of the next epoch.
    tally
        What was shown and what came of it.
    seq, chain
        Number of the last entry followed, and the checksum of all up to it.
    """

    def __init__(self, learner: ExchangeableLearner[Any]) -> None:
        self.learner = learner
        learner.ledger.keep = MOST  # the folder expires rows, in the log
        learner._shelf.keep = 2**30
        self.epochs: dict[int, tuple[int, int]] = {}
        self.next = self.seq = self.chain = 0
        self.tally = Tally.empty(learner.roster.next_id)
        self.shadow: dict[str, Any] | None = None  # the terms to go back to, in shadow mode

    @classmethod
    def new(cls, config: dict[str, Any]) -> "Replica":
        """Return the state before any entry."""
        learner = make_learner(config)
        learner._owner = config["owner"]  # else it would differ from run to run
        return cls(learner)

    @property
    def learns(self) -> bool:
        """Whether rewards teach it anything."""
        return self.learner.evidence is not None

    @property
    def most_epochs(self) -> int:
        """How many epochs can be told at a time."""
        return int(np.clip(PLAN_MEMORY // (16 * self.learner.m), 256, 4096))

    def publish(self, least: int, stored: tuple[bytes, bytes] | None = None) -> tuple[Entry, Epoch]:
        """Make a new plan and draw its rows, or take those that were made elsewhere."""
        given = None
        if stored is not None:
            plan = Plan.from_bytes(stored[0])
            given = plan, rows.drawn_elsewhere(plan, stored[1])
        made = self.learner.publish(max(1, least), given)
        code, drawn = stored or (made.plan.to_bytes(), rows.to_bytes(made.plan, made.rows))
        crc = rows.checksum(code, drawn)
        epoch = Epoch(self.next, made.first, len(made.rows.sizes), code, drawn, crc)
        self.epochs[self.next] = (epoch.first, epoch.n)
        self.next += 1
        return self._followed(entries.publish(least, epoch.number, crc)), epoch

    def fold(self, told: list[tuple[int, int, float | None]]) -> Entry:
        """Take in rewards."""
        entry = entries.fold(told)
        self._fold(entry.payload)
        return self._followed(entry)

    def change(self, call: str, arguments: dict[str, Any]) -> tuple[Entry, Any]:
        """Call a change of :data:`~evenhand.service.changes.CHANGES`; refused, nothing changes."""
        before = self.snapshot()
        try:
            answer = CHANGES[call](self, **arguments)
        except (ValueError, TypeError):
            self._restore(*before)
            raise
        return self._followed(entries.change(call, arguments)), answer

    def expire(self, before: int) -> Entry:
        """Give up all rows of epochs before this one."""
        CHANGES["expire"](self, before)
        return self._followed(entries.change("expire", {"before": before}))

    def follow(self, seq: int, entry: Entry, crc: int, stored: Stored | None = None) -> None:
        """Do what an entry of the log says, or refuse it.

        ``stored`` returns the plan and rows of an epoch, to take instead of those made here.
        """
        if seq != self.seq + 1 or entry.chain(self.chain, seq) != crc:
            raise ValueError(f"the log is damaged at entry {seq}: its checksum is wrong")
        if entry.kind == entries.PUBLISH:
            said = json.loads(entry.payload)
            _, epoch = self.publish(said["least"], stored and stored(said["epoch"]))
            if (epoch.number, epoch.crc) != (said["epoch"], said["crc"]):
                raise Diverged(
                    f"epoch {said['epoch']} comes out differently here: it was drawn by another "
                    "release or kind of machine"
                )
        elif entry.kind == entries.FOLD:
            self._fold(entry.payload)
            self._followed(entry)
        elif entry.kind == entries.CHANGE:
            said = json.loads(entry.payload)
            CHANGES[said["call"]](self, **said["arguments"])
            self._followed(entry)
        elif entry.kind == entries.MIGRATE:
            self._followed(entry)
        else:
            raise ValueError(f"entry {seq} must be of a known kind, got {entry.kind!r}")

    def supply(self, stored: Stored) -> None:
        """Take rows from where they are stored if they come out differently here."""

        def rows_from(plan: Plan, first: int) -> Rows:
            number = next(e for e, (start, _) in self.epochs.items() if start == first)
            return rows.drawn_elsewhere(plan, stored(number)[1])

        self.learner._shelf.supply = rows_from

    def migrate(self, before: str, how: str) -> Entry:
        """Go on under another release."""
        return self._followed(entries.migrate(before, release(), how))

    def _followed(self, entry: Entry) -> Entry:
        self.seq += 1
        self.chain = entry.chain(self.chain, self.seq)
        return entry

    def _fold(self, payload: bytes) -> None:
        told = np.frombuffer(payload, entries.TOLD)
        rewards = told["reward"].astype(np.float64)
        if not self.learns:
            self.tally.add_rewards(rewards)
            return
        firsts = {e: self.epochs[e][0] for e in np.unique(told["epoch"]).tolist()}
        starts = np.array([firsts[e] for e in told["epoch"].tolist()], np.int64)
        numbers = starts + told["row"]
        for part in self.learner._shelf.parts(numbers):
            self.tally.add(part.plan, part.rows, rewards[part.places])
        self.learner.tell(receipt(self.learner, numbers), rewards[:, None])

    # ---- state ----

    def snapshot(self) -> tuple[bytes, str]:
        """All of it: the learner's file, and the rest as JSON."""
        extra = {
            "epochs": [[e, *span] for e, span in self.epochs.items()],
            "next": self.next,
            "seq": self.seq,
            "chain": self.chain,
            "tally": self.tally.as_json(),
            "shadow": self.shadow,
        }
        return storage.to_bytes(self.learner), json.dumps(extra)

    @classmethod
    def restored(cls, data: bytes, extra: str) -> "Replica":
        """Return the state that gave a snapshot."""
        replica = cls.__new__(cls)
        replica._restore(data, extra)
        return replica

    def _restore(self, data: bytes, extra: str) -> None:
        said = json.loads(extra)
        learner = storage.from_bytes(data, "snapshot")
        assert isinstance(learner, ExchangeableLearner)
        if "learner" in vars(self):  # back to an earlier state of one's own
            learner._shelf.supply = self.learner._shelf.supply
        Replica.__init__(self, learner)
        self.epochs = {e: (first, n) for e, first, n in said["epochs"]}
        self.next, self.seq, self.chain = said["next"], said["seq"], said["chain"]
        self.tally, self.shadow = Tally.from_json(said["tally"]), said["shadow"]

    def digest(self) -> str:
        """Return a number for every bit of the state."""
        state = self.learner.snapshot()
        total = hashlib.sha256()
        for name in sorted(state["arrays"]):
            array = np.ascontiguousarray(state["arrays"][name])
            total.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        plain = {name: value for name, value in state.items() if name not in ("arrays", "checksum")}
        total.update(json.dumps(plain, sort_keys=True).encode())
        total.update(self.snapshot()[1].encode())
        return total.hexdigest()


def make_learner(config: dict[str, Any]) -> ExchangeableLearner[Any]:
    """Make the learner of a configuration, refusing wrong ones."""
    kind = SERVED[config["learner"]]
    return kind(config["m"], config["k"], seed=config["seed"], **config["options"])


def receipt(learner: Learner, numbers: Any) -> Batch:
    """Return a receipt for rows by their numbers: ``tell`` reads no more of it."""
    n = len(numbers)
    none = np.empty((n, 0), np.int64)
    return Batch(
        none, np.ones((n, 1), np.int64), np.ones(n, np.int64), True, learner._owner, numbers
    )

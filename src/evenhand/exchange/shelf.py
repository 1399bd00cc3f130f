"""Plans that have rows out, each with the stream it was drawn with."""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenhand.exchange.ahead import Ahead
from evenhand.exchange.ledger import Ledger
from evenhand.exchange.plan import Plan, Rows
from evenhand.randomness.state import to_bytes, with_state
from evenhand.threads import pays
from evenhand.typing import Bools, Ints

KEEP_PLANS = 768  # plans whose rows can still be told
MAX_ROWS = 2**31  # more than a plan is ever drawn for
CACHED_ROWS = 2**15  # rows of older plans kept in memory; others are drawn again when told
# first row, rows, rows drawn, their checksum, bytes of the record
HEADER = struct.Struct("<qqqII")


class DrawnElsewhere(ValueError):  # noqa: N818
    """Rows come out differently here than where they were asked."""


@dataclass(slots=True)
class Entry:
    """Rows ``first``, ``first + 1``, ... of a plan: n of them were drawn, the first ``used`` exist.

    While they are in memory, ``drawn`` holds the plan, the state of the generator before they were
    drawn, and the rows. ``record`` is the state and the plan as bytes, made when first needed.
    """

    first: int
    used: int
    n: int
    checksum: int = 0
    record: bytes = b""
    drawn: tuple[Plan, Mapping[str, Any], Rows] | None = None

    def sealed(self) -> bytes:
        """All of the entry as bytes, but for its rows."""
        if not self.record:
            assert self.drawn is not None
            plan, state, rows = self.drawn
            self.record, self.checksum = to_bytes(state) + plan.to_bytes(), _checksum(rows)
        numbers = self.first, self.used, self.n, self.checksum, len(self.record)
        return HEADER.pack(*numbers) + self.record


class Part(NamedTuple):
    """Rows of one plan, and their places among the rows asked for."""

    plan: Plan
    places: slice | Ints
    rows: Rows


class Shelf:
    """The plans whose rows are not all told, kept so that those rows can be drawn again.

    A plan is dropped when none of its rows is open, or when there are more than ``keep`` plans and
    it is the oldest; its rows then expire. Rows of recent plans stay in memory, so that only
    rewards that come late make work.
    """

    def __init__(self, bits: str, keep: int = KEEP_PLANS) -> None:
        self.bits, self.keep = bits, keep  # kind of bit generator
        self._width = len(to_bytes(getattr(np.random, bits)(0).state))
        self._read: list[Entry] = []
        self._unread: tuple[np.ndarray, np.ndarray] | None = None
        self._cached: dict[int, Entry] = {}  # entries with rows in memory, least recent first
        # rows from the number of the first on, for those who keep rows that they draw no more
        self.supply: Callable[[Plan, int], Rows] | None = None
        self._ahead: Ahead | None = None

    def put(
        self,
        plan: Plan,
        n: int,
        ledger: Ledger,
        rng: np.random.Generator,
        given: Rows | None = None,
    ) -> None:
        """Draw n rows of a new plan, the next to be asked, and keep what they need.

        Rows that were drawn elsewhere may be given instead.
        """
        entries = self._entries
        if entries:
            self._drop_settled(entries[-1], ledger)
        state = rng.bit_generator.state
        rows = self._draw(plan, n, rng) if given is None else given
        entry = Entry(ledger.next, n, n, drawn=(plan, state, rows))
        entries.append(entry)
        if len(entries) > self.keep:
            ledger.expire_before(entries[-self.keep].first)
        while entries[0].first + entries[0].used <= ledger.first < ledger.next:
            self._cached.pop(entries.pop(0).first, None)
        self._remember(entry)

    def _draw(self, plan: Plan, n: int, rng: np.random.Generator) -> Rows:
        """Draw rows, or take those that were drawn ahead."""
        ahead, self._ahead = self._ahead, None
        rows = None if ahead is None else ahead.take(plan, n, rng)
        return plan.draw(n, rng) if rows is None else rows

    def draw_ahead(self, plan: Plan, n: int, rng: np.random.Generator) -> None:
        """Let n rows be drawn that are likely to be the next, where they are many."""
        if pays(n):
            self._ahead = Ahead(plan, n, rng)

    def cut(self, ledger: Ledger) -> None:
        """Let rows of the newest plan that have not been asked never be."""
        self._ahead = None
        if self._entries:
            self._entries[-1].used = ledger.next - self._entries[-1].first

    def rows(self, numbers: slice | Ints) -> Rows:
        """Return rows by their numbers."""
        return joined(self.parts(numbers))

    def parts(self, numbers: slice | Ints) -> list[Part]:
        """Return rows by their numbers, plan by plan."""
        newest = self._entries[-1]
        if isinstance(numbers, slice):
            if numbers.start >= newest.first:
                start = numbers.start - newest.first
                plan, _, rows = self._drawn(newest)
                picked = rows.pick(slice(start, start + numbers.stop - numbers.start))
                return [Part(plan, slice(None), picked)]
            numbers = np.arange(numbers.start, numbers.stop)
        found = []
        for entry, inside in self._by_entry(numbers):
            plan, _, rows = self._drawn(entry)
            places = np.flatnonzero(inside)
            found.append(Part(plan, places, rows.pick(numbers[places] - entry.first)))
        return found

    def settle(self, numbers: slice | Ints, ledger: Ledger) -> None:
        """Forget plans that have no open row left, of those that these rows belong to."""
        newest = self._entries[-1]  # it has rows that are still to be asked
        if isinstance(numbers, slice):
            if numbers.start >= newest.first:
                return
            numbers = np.arange(numbers.start, numbers.stop)
        for entry, _ in self._by_entry(numbers):
            if entry is not newest:
                self._drop_settled(entry, ledger)

    def _drop_settled(self, entry: Entry, ledger: Ledger) -> None:
        if not ledger.any_open(entry.first, entry.used):
            self._entries.remove(entry)
            self._cached.pop(entry.first, None)

    def _by_entry(self, numbers: Ints) -> list[tuple[Entry, Bools]]:
        """Return the entries that rows belong to, and which of the rows."""
        low, high = (
            bisect_right(self._entries, int(row), key=lambda entry: entry.first) - 1
            for row in (numbers.min(), numbers.max())
        )
        found = self._entries[low : high + 1]
        spans = [(e, (numbers >= e.first) & (numbers < e.first + e.used)) for e in found]
        return [(entry, inside) for entry, inside in spans if inside.any()]

    def _drawn(self, entry: Entry) -> tuple[Plan, Mapping[str, Any], Rows]:
        """Return an entry's plan, state and rows, drawn again if need be."""
        if entry.drawn is None:
            data, code = entry.record[: self._width], entry.record[self._width :]
            plan, rng = Plan.from_bytes(code), with_state(self.bits, data)
            state, rows = rng.bit_generator.state, plan.draw(entry.n, rng)
            if _checksum(rows) != entry.checksum and self.supply is not None:
                rows = self.supply(plan, entry.first)
            if _checksum(rows) != entry.checksum:
                raise DrawnElsewhere(
                    f"rows {entry.first}..{entry.first + entry.n - 1} come out differently here: "
                    "they were drawn by another release or kind of machine; tell them there"
                )
            entry.drawn = plan, state, rows
            self._remember(entry)
        return entry.drawn

    def _remember(self, entry: Entry) -> None:
        """Keep the rows of entries used lately, and of the newest one, in memory."""
        self._cached.pop(entry.first, None)
        self._cached[entry.first] = entry
        older = [e for e in self._cached.values() if e is not self._entries[-1]]
        total = sum(e.n for e in older)
        for one in older:
            if total <= CACHED_ROWS or one is entry:
                break
            one.sealed()
            one.drawn = None
            total -= self._cached.pop(one.first).n

    def to_array(self) -> np.ndarray:
        """All entries, one row of bytes each, with zeros behind those of fewer arms."""
        sealed = [entry.sealed() for entry in self._entries]
        width = max(map(len, sealed), default=0)
        data = b"".join([record.ljust(width, b"\0") for record in sealed])
        return np.frombuffer(data, np.uint8).reshape(len(sealed), width)

    def set_array(self, data: np.ndarray, ledger: Ledger) -> Plan | None:
        """Take over what :meth:`to_array` returned, refusing anything else; return the newest plan.

        Older plans are read when one of their rows is told.
        """
        least = HEADER.size + self._width
        if data.dtype != np.uint8 or data.ndim != 2 or 0 < data.size <= least * len(data):
            raise ValueError(f"plans must be rows of bytes, got {data.dtype} of shape {data.shape}")
        if data.size == 0:
            return None
        heads = np.ascontiguousarray(data[:, : HEADER.size]).view("<i8,<i8,<i8,<u4,<u4").reshape(-1)
        firsts, used, counts, lengths = (heads[name] for name in ("f0", "f1", "f2", "f4"))
        if lengths.max() > data.shape[1] - HEADER.size or lengths.min() <= self._width:
            raise ValueError("plans must be rows of bytes as long as they say")
        ends = np.append(0, firsts + used)
        fewest = np.append(np.ones(len(used) - 1), 0)  # of the newest, none may have been asked
        fits = (firsts >= ends[:-1]) & (used >= fewest) & (used <= counts)
        if not np.all(fits & (counts >= 1) & (counts <= MAX_ROWS)):
            raise ValueError("plans must follow each other")
        if not firsts[-1] <= ledger.next <= ends[-1]:
            raise ValueError(f"the newest plan must hold row {ledger.next}, got {firsts[-1]}..")
        self._unread = (heads, data)
        return Plan.from_bytes(data[-1, least : HEADER.size + lengths[-1]].tobytes())

    @property
    def _entries(self) -> list[Entry]:
        """Plans in the order in which they were made, read from bytes when first needed."""
        if self._unread is not None:
            heads, data = self._unread
            blob, starts = data.tobytes(), range(HEADER.size, data.size, data.shape[1])
            ends = zip(starts, heads["f4"].tolist(), strict=True)
            records = [blob[at : at + length] for at, length in ends]
            fields = [heads[name].tolist() for name in ("f0", "f1", "f2", "f3")]
            self._read, self._unread = list(map(Entry, *fields, records)), None
        return self._read

    @property
    def end(self) -> int:
        """Number behind the last row of the newest plan."""
        entries = self._entries
        return entries[-1].first + entries[-1].used if entries else 0


def joined(parts: list[Part]) -> Rows:
    """Return the rows of all parts, each at its place."""
    if len(parts) == 1:
        return parts[0].rows
    places = np.argsort(np.concatenate([part.places for part in parts]))
    rows = map(np.concatenate, zip(*(part.rows for part in parts), strict=True))
    return Rows(*rows).pick(places)


def _checksum(rows: Rows) -> int:
    """Return a number for the sets; weights may differ in their last digits between machines."""
    return zlib.crc32(rows.sizes.tobytes(), zlib.crc32(rows.orders.tobytes()))

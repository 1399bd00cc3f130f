"""Which rows are out: asked, and not yet told."""

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer
from evenhand.typing import Bools, Ints, compiled

OPEN, TOLD, CLOSED, LEFT = 0, 1, 2, 3
CODES = (("told", TOLD), ("closed", CLOSED), ("left", LEFT))
RowNumbers = slice | Ints  # a slice where they follow each other
KEEP = 2**20  # rows that can still be told
MOST = 2**26  # so many at most: a byte each


class AlreadyTold(ValueError):  # noqa: N818 - says what happened, as Interrupted does
    """A row was told or closed before; nothing has changed.

    After a restart it is safe to ignore, if a receipt is always told whole: its rows were settled
    before the process ended, their rewards taken in or reported as missing.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=4, k=2, seed=1)
    >>> batch = learner.ask(1)
    >>> learner.tell(batch, 0.5)
    >>> try:
    ...     learner.tell(batch, 0.5)
    ... except AlreadyTold as error:
    ...     print(error)
    rows must be told once, got row 0 again
    """


class Expired(ValueError):  # noqa: N818
    """A row is too old to be told; nothing has changed.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=4, k=2, seed=1)
    >>> learner.ledger.keep = 2
    >>> batches = [learner.ask(1) for _ in range(3)]
    >>> try:
    ...     learner.tell(batches[0], 0.5)
    ... except Expired as error:
    ...     print(error)
    row 0 has expired: only the newest 2 rows can be told
    """


class Ledger:
    """The state of the newest rows, which are numbered 0, 1, 2, ... as they are asked.

    A row costs one byte, and what its learner notes of it; a row expires when ``keep`` newer ones
    have been asked, so the cost is bounded however many are never told.

    Parameters
    ----------
    keep
        Rows that can still be told. May be changed at any time.
    notes
        Names of whole numbers kept per row, with the largest each may be; the smallest is -1.
    """

    def __init__(self, keep: int = KEEP, notes: dict[str, int] | None = None) -> None:
        self.keep, self.notes = keep, notes or {}
        self.first = self.next = 0  # oldest row kept, and the number of the next
        self.n_left = 0  # rows told when an arm of theirs had left or was paused
        self._start = 0  # place of the oldest row in the buffers
        kinds = {name: np.min_scalar_type(-most - 1) for name, most in self.notes.items()}
        self._rows = {name: np.zeros(0, kind) for name, kind in kinds.items()}
        self._rows["state"] = np.zeros(0, np.uint8)

    @property
    def keep(self) -> int:
        """Rows that can still be told."""
        return self._keep

    @keep.setter
    def keep(self, rows: int) -> None:
        self._keep = min(check_integer("keep", rows, 1), MOST)

    def open(self, n: int, **notes: Ints) -> Ints:
        """Number n new rows, note what is to be remembered of them, and let old ones expire."""
        end = self._start + self.next - self.first
        if end + n > len(self._rows["state"]):
            for name, old in self._rows.items():
                self._rows[name] = np.zeros(2 * (end - self._start + n), old.dtype)
                self._rows[name][: end - self._start] = old[self._start : end]
            self._start, end = 0, end - self._start
        for name, values in notes.items():
            self._rows[name][end : end + n] = values
        numbers = np.arange(self.next, self.next + n)
        self.next += n
        self.expire_before(self.next - self.keep)
        return numbers

    def expire_before(self, row: int) -> None:
        """Let all rows before this one expire."""
        gone = min(row, self.next) - self.first
        if gone > 0:
            self.first += gone
            self._start += gone

    def check(self, rows: RowNumbers) -> None:
        """Refuse rows that are not distinct rows still open, saying what they are."""
        if isinstance(rows, slice):
            low, high = rows.start, rows.stop - 1
        elif rows.ndim != 1 or len(np.unique(rows)) < len(rows):
            raise ValueError("batch must be as ask returned it, but its rows are not distinct")
        elif len(rows) == 0:
            return
        else:
            low, high = int(rows.min()), int(rows.max())
        if low < 0 or high >= self.next:
            row = low if low < 0 else high
            raise ValueError(f"batch must be as ask returned it, but row {row} was never asked")
        if low < self.first:
            raise Expired(
                f"row {low} has expired: only the newest {self.next - self.first} rows can be told"
            )
        state = self._kept("state")[self._places(rows)].tobytes()  # faster to look through
        if state.count(OPEN) < len(state):
            settled = next(place for place, code in enumerate(state) if code != OPEN)
            row = low + settled if isinstance(rows, slice) else int(rows[settled])
            if state[settled] == TOLD:
                raise AlreadyTold(f"rows must be told once, got row {row} again")
            if state[settled] == LEFT:
                raise AlreadyTold(
                    f"row {row} was closed: it was told after an arm of it had left or was paused, "
                    "or to a learner that can use no rows from before its arms changed"
                )
            raise AlreadyTold(f"row {row} was closed: its reward was told as missing")

    def settle(self, rows: RowNumbers, missing: ArrayLike, left: ArrayLike = False) -> None:
        """Settle rows: closed for good where an arm has left or no reward came, else told."""
        state = TOLD if missing is False else np.where(missing, CLOSED, TOLD)
        if left is not False and np.any(left):
            self.n_left += int(np.sum(left))
            state = np.where(left, LEFT, state)
        self._kept("state")[self._places(rows)] = state

    def read(self, name: str, rows: RowNumbers) -> Ints:
        """Return what was noted of rows."""
        return self._kept(name)[self._places(rows)].astype(np.int64)

    def any_open(self, first: int, n: int) -> bool:
        """Whether one of n rows from ``first`` on is open and kept."""
        start = max(first - self.first, 0)
        return OPEN in self._kept("state")[start : first - self.first + n].tobytes()

    @property
    def n_open(self) -> int:
        """Number of rows that are out."""
        return int(np.sum(self._kept("state") == OPEN))

    def _kept(self, name: str) -> np.ndarray:
        return self._rows[name][self._start : self._start + self.next - self.first]

    def _places(self, rows: RowNumbers) -> RowNumbers:
        if isinstance(rows, slice):
            return slice(rows.start - self.first, rows.stop - self.first)
        return rows - self.first

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it as arrays; states are packed, eight rows to a byte."""
        state = self._kept("state")
        packed = {name: _pack(state == code) for name, code in CODES}
        noted = {name: self._kept(name).copy() for name in self.notes}
        return packed | noted | {"span": np.array([self.keep, self.first, self.next, self.n_left])}

    def set_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`arrays` returned, refusing anything else."""
        span = as_integers("span", arrays["span"])
        if span.shape != (4,) or not 0 <= span[1] <= span[2] <= span[1] + min(span[0], MOST):
            raise ValueError(f"span must hold keep and the first and next row, got {span.tolist()}")
        keep, first, following, n_left = (int(x) for x in span)
        if not 0 <= n_left <= following:
            raise ValueError(f"span must hold how many rows held arms that left, got {n_left}")
        n = following - first
        state = np.zeros(n, np.uint8)
        for name, code in CODES:
            bits = arrays[name]
            if bits.dtype != np.uint8 or bits.shape not in ((0,), (math.ceil(n / 8),)):
                raise ValueError(f"{name} must hold {n} bits")
            if len(bits):
                state[np.unpackbits(bits, count=n) == 1] = code
        for name, most in self.notes.items():
            column = arrays[name]
            if column.shape != (n,) or column.dtype != self._rows[name].dtype:
                raise ValueError(f"{name} must hold {n} numbers of {self._rows[name].dtype}")
            if n and not -1 <= column.min() <= column.max() <= most:
                raise ValueError(f"{name} must lie in -1..{most}")
            self._rows[name] = column.copy()
        self.keep, self.first, self.next, self._start = keep, first, following, 0
        self._rows["state"], self.n_left = state, n_left

    def __repr__(self) -> str:
        rows = self.next - self.first
        return f"Ledger(open={self.n_open}, rows={rows}, first={self.first}, keep={self.keep})"


def _pack(flags: Bools) -> np.ndarray:
    """Pack flags into bits; nothing where none is set."""
    return np.packbits(flags if flags.any() else flags[:0])


def as_rows(numbers: Ints) -> RowNumbers:
    """Return numbers of rows as a slice where they follow each other, which most do."""
    if numbers.ndim != 1 or len(numbers) == 0:
        return numbers
    first, last = int(numbers[0]), int(numbers[-1])
    follow = last - first == len(numbers) - 1 and count_up(numbers)
    return slice(first, last + 1) if follow else numbers


@compiled
def count_up(numbers: Ints) -> bool:
    """Whether each number is one more than the one before."""
    wrong = 0  # a loop without jumps: several numbers at a time
    for i in range(1, len(numbers)):
        wrong += numbers[i] != numbers[i - 1] + 1
    return wrong == 0

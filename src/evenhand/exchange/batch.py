"""The unit of exchange: a batch of ordered sets, asked at some prefixes."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import ROWS, as_integers
from evenhand.display import MAX_ROWS, html_table, span
from evenhand.typing import Floats, Ints, compiled, part


class Marginals(NamedTuple):
    """Of all places in the sets, each arm has on average its entry of q (sums to K) over K.

    A prefix of r arms holds it with probability r/K times that entry, but those of EvenHand
    without terms only if its size is not known: it explores more in some sizes than in others.

    Examples
    --------
    >>> from evenhand.learners import URS
    >>> URS(m=4, k=2, seed=1).ask(10).exposure
    Marginals(q=array([0.5, 0.5, 0.5, 0.5]))
    """

    q: Floats


class Determined(NamedTuple):
    """The sets follow from earlier rewards; nothing is random.

    Examples
    --------
    >>> from evenhand.learners import ETCG
    >>> ETCG(m=4, k=2, horizon=1000, seed=1).ask(10).exposure
    Determined()
    """


class Target(NamedTuple):
    """A row's longest prefix ends in a known arm; the arms before it are uniformly random.

    Examples
    --------
    >>> from evenhand.learners import GapE
    >>> sorted(GapE(m=4, k=2, horizon=1000, seed=1).ask(8).exposure.arms.tolist())
    [0, 1, 2, 3]
    """

    arms: Ints


Exposure = Marginals | Determined | Target


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Batch:
    """Queries asked by a learner, and the receipt with which their rewards are told.

    ``tell`` uses ``owner``, ``index`` and ``learns`` alone: the learner itself looks up which arms
    a row held, so that changed ``orders`` or ``sizes`` cannot credit another arm.

    Attributes
    ----------
    orders
        (n, k) ordered sets; entries behind the longest prefix asked are -1.
    sizes
        (n, s) prefix lengths to query of each; length 0 is the empty set, worth 0, counted as a
        query, which need not be shown.
    times
        (n,) identical queries a row stands for, above 1 only where ``learns`` is false.
    learns
        Whether rewards are wanted. If not, telling them is accepted and ignored.
    owner, index
        Whose batch it is, and (n,) the numbers of its rows in that learner's ledger; none where
        ``learns`` is false.
    names
        Names of all arms, or None.
    exposure
        How the sets were drawn, from which their fairness is judged; None after :meth:`from_dict`.

    Examples
    --------
    >>> import json
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=3, k=2, names=["ada", "bob", "cy"], seed=1)
    >>> batch = learner.ask(1)
    >>> batch.sets()
    [['ada']]
    >>> kept = json.dumps(batch.to_dict())  # until the reward is known
    >>> learner.tell(Batch.from_dict(json.loads(kept)), 0.2)
    """

    orders: Ints
    sizes: Ints
    times: Ints
    learns: bool
    owner: str
    index: Ints
    names: tuple[str, ...] | None = None
    exposure: Exposure | None = None

    @property
    def queries(self) -> int:
        """Number of queries the batch asks for."""
        rows = len(self.times) if self.learns else int(self.times.sum())
        return rows * self.sizes.shape[1]

    def sets(self) -> list[list[Any]]:
        """Return the arms of every query, by name where they have one, row by row.

        ``tell`` takes rewards in the same order.

        Examples
        --------
        >>> from evenhand.learners import IWKSVFair
        >>> IWKSVFair(m=6, k=3, horizon=9000, gamma=1.0, seed=1).ask().sets()
        [[5], [5, 2], [5, 2, 3]]
        """
        names = self.names or range(int(self.orders.max(initial=0)) + 1)
        rows = zip(self.orders.tolist(), self.sizes.tolist(), strict=True)
        return [[names[arm] for arm in row[:size]] for row, sizes in rows for size in sizes]

    def rows(self, places: ArrayLike) -> "Batch":
        """Return the receipt for some rows, given by their places in this batch.

        Examples
        --------
        >>> from evenhand.learners import GapE
        >>> batch = GapE(m=4, k=2, horizon=1000, seed=1).ask(8)
        >>> len(batch.orders), len(batch.rows([0, 3]).orders)
        (4, 2)
        """
        chosen = as_integers("places", places)
        n = len(self.orders)
        if chosen.ndim != 1 or len(np.unique(chosen)) != len(chosen):
            raise ValueError(f"places must be a list of distinct rows, got {places!r}")
        if chosen.size and not (0 <= chosen.min() and chosen.max() < n):
            raise ValueError(f"places must hold rows in 0..{n - 1}, got {places!r}")
        exposure = self.exposure
        if isinstance(exposure, Target):
            exposure = Target(exposure.arms[chosen])
        arrays = {name: getattr(self, name)[chosen] for name in ("orders", "sizes", "times")}
        index = self.index[chosen] if self.learns else self.index
        return replace(self, **arrays, index=index, exposure=exposure)

    def count_into(self, asked: Ints) -> None:
        """Add to ``asked`` (m,) how often each arm is in a queried set."""
        note_arms(asked, np.empty_like(asked), self.orders, self.sizes, self.times, 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        names = None if self.names is None else list(self.names)
        return {"owner": self.owner, "learns": self.learns, "names": names, **arrays}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Batch":
        """Make the batch that gave this dictionary."""
        if not isinstance(data, dict):
            hint = "; json.loads it first" if isinstance(data, str | bytes) else ""
            raise TypeError(f"data must be a dictionary, got {type(data).__name__}{hint}")
        try:
            owner, learns, names = data["owner"], data["learns"], data["names"]
            arrays: dict[str, Any] = {name: as_integers(name, data[name]) for name in ARRAYS}
        except (KeyError, TypeError, ValueError) as error:
            missing = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"data must come from Batch.to_dict, but {missing}") from None
        for name in ("orders", "sizes"):
            if arrays[name].size == 0:
                arrays[name] = arrays[name].reshape(len(arrays[name]), 0)
        wrong = _first_wrong(owner, learns, names, **arrays)
        if wrong:
            raise ValueError(f"data must come from Batch.to_dict, but {wrong}")
        return cls(**arrays, owner=owner, learns=learns, names=names and tuple(names))

    def __repr__(self) -> str:
        shown = f"rows={len(self.orders)}, queries={self.queries}, sizes={span(self.sizes)}"
        return f"Batch({shown}, learns={self.learns})"

    def _repr_html_(self) -> str:
        sets = self.rows(range(min(MAX_ROWS, len(self.orders)))).sets()
        shown = np.array([", ".join(map(str, arms)) for arms in sets], object)
        return html_table({"show together": shown}, self.sizes.size, repr(self))


ARRAYS = ("orders", "sizes", "times", "index")


def _first_wrong(
    owner: Any, learns: Any, names: Any, orders: Ints, sizes: Ints, times: Ints, index: Ints
) -> str | None:
    """Say what is wrong with the parts of a batch, if anything is."""
    n = len(orders)
    if not isinstance(owner, str):
        return f"owner must be a string, got {owner!r}"
    if not isinstance(learns, bool):
        return f"learns must be true or false, got {learns!r}"
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        return f"names must be a list of strings, got {names!r}"
    if orders.ndim != 2 or sizes.ndim != 2 or len(sizes) != n:
        return f"orders and sizes must have {n} rows each, got {orders.shape} and {sizes.shape}"
    if times.shape != (n,) or np.any(times < 1):
        return f"times must hold a number of at least 1 per row, got {times.tolist()}"
    if index.shape != ((n,) if learns else (0,)):
        return f"index must hold a number per row, got {len(index)} for {n} rows"
    inside = np.arange(orders.shape[1]) < sizes.max(axis=1, initial=0)[:, None]
    if sizes.size and not (0 <= sizes.min() and sizes.max() <= orders.shape[1]):
        return f"sizes must lie in 0..{orders.shape[1]}, the columns of orders"
    if np.any(orders[inside] < 0) or (names and np.any(orders[inside] >= len(names))):
        return "orders must hold arms"
    return None


@compiled
def note_arms(asked: Ints, last: Ints, orders: Ints, sizes: Ints, times: Ints, start: int) -> None:
    """Count each arm's memberships in the queried prefixes, and note the last query with it.

    ``start`` is how many queries came before these rows.
    """
    (n, s), k = sizes.shape, orders.shape[1]
    ends = np.zeros(k + 1, np.int64)  # of one row, how often a prefix ends at each place
    total = ends[0]  # 0; with a literal 0 numba compiles twice
    for i in range(n):
        total += times[i]
    if s == 1 and total == n:
        note_sets(asked, last, orders, sizes, start)
        return
    # by place: how many queries of a row hold it, and how many come after the last that does
    inside, behind = np.zeros(k, np.int64), np.zeros(k, np.int64)
    at, longest = start, 0
    for i in range(n):
        at += s * times[i]
        if i == 0 or _differ(sizes, i):
            longest = _find_places(sizes, i, ends, inside, behind)
        for r in range(longest):
            arm = np.uintp(orders[i, r])
            asked[arm] += inside[r] * times[i]
            last[arm] = at - behind[r] * times[i]


@part
def _differ(sizes: Ints, i: int) -> bool:
    """Whether the sizes of a row are not those of the row before."""
    for j in range(sizes.shape[1]):
        if sizes[i, j] != sizes[i - 1, j]:
            return True
    return False


@part
def _find_places(sizes: Ints, i: int, ends: Ints, inside: Ints, behind: Ints) -> int:
    """Write how a row's queries hold each place; returns how many places they hold at most."""
    longest, s = 0, sizes.shape[1]
    for j in range(s - 1, -1, -1):  # from the last query on: those before add longer prefixes
        size = sizes[i, j]
        ends[size] += 1
        for r in range(longest, size):
            behind[r] = s - 1 - j
        longest = size if size > longest else longest
    total, ends[0] = ends[0] - ends[0], 0
    for r in range(longest, 0, -1):
        total += ends[r]
        ends[r] = 0
        inside[r - 1] = total
    return longest


@part
def note_sets(asked: Ints, last: Ints, orders: Ints, sizes: Ints, start: int) -> None:
    """Do so for rows of one set each, asked once.

    Column by column, over the rows that reach so far: where sets end, row by row, the processor
    would guess wrong half of the time, which takes longer than all else. A block of rows at a time,
    which stay in the cache meanwhile.
    """
    n = len(orders)
    rows = np.empty(min(n, ROWS), np.uintp)
    for first in range(0, n, ROWS):
        column, left = 1, 0
        for i in range(first, min(first + ROWS, n)):
            if sizes[i, 0] > 0:
                arm = np.uintp(orders[i, 0])  # of signed numbers each is looked at for its sign
                asked[arm] += 1
                last[arm] = start + i + 1
            rows[left] = i
            left += sizes[i, 0] > 1
        while left > 0:
            reach, left = left, 0
            for j in range(reach):
                i = rows[j]
                arm, at = np.uintp(orders[i, column]), start + np.int64(i) + 1
                asked[arm] += 1
                last[arm] = at if at > last[arm] else last[arm]
                rows[left] = i
                left += sizes[i, 0] > column + 1
            column += 1

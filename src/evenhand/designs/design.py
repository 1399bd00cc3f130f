"""What every design offers: a law over K-sets of arms."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.checks import as_integers, check_integer, check_rng, first_bad_query
from evenhand.randomness.alias import alias_bits, draw_alias
from evenhand.randomness.splitmix import draw_row_word, shuffle_row, start_row, uniform
from evenhand.subsets.combinations import all_orders, count_sets
from evenhand.typing import Floats, Ints, Words, compiled

BLOCK = 2**16  # more draws than this are counted at once where the sets can be listed
MAX_ORDERED = 7  # of so many arms all orders are kept, which is faster than swapping arms


class Design(ABC):
    """A law over the K-subsets of m arms with known marginals.

    Attributes
    ----------
    m, k
        Arms, and arms in a set.
    marginals
        (m,) how often each arm is in a set; sums to k.

    Examples
    --------
    >>> from evenhand.designs import Uniform
    >>> design: Design = Uniform(4, 2)
    >>> sets, times = design.tally(1000, np.random.default_rng(1))
    >>> len(sets), int(times.sum())
    (6, 1000)
    """

    m: int
    k: int
    marginals: Floats

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets (n, k), each in uniformly random order."""
        return self._sample(check_integer("n", n, 0), check_rng(rng))

    @property
    def listed(self) -> tuple[Ints, Floats] | None:
        """All sets that can be drawn, with their probabilities, where they are few enough."""
        return None

    def log_prob(self, sets: ArrayLike) -> Floats:
        """Log-probability (n,) of the sets (n, k) given as rows of arms in any order."""
        rows = as_integers("sets", sets)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise ValueError(f"sets must have shape (n, {self.k}), got {rows.shape}")
        bad, _ = first_bad_query(rows, np.full((len(rows), 1), self.k), self.m)
        if bad >= 0:
            raise ValueError(
                f"sets must hold distinct arms in 0..{self.m - 1}, "
                f"got row {bad}: {rows[bad].tolist()}"
            )
        return self._log_prob(rows)

    def tally(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw n sets and count equal ones: sets (d, k), and how often each was drawn (d,).

        The counts have exactly the law of n independent draws. Up to 65536 draws are made and
        counted; more are one multinomial draw where all sets can be listed. Where equal sets are
        rare, rows may repeat.
        """
        check_integer("n", n, 0)
        check_rng(rng)
        if n > BLOCK and self.listed is not None:
            sets, probabilities = self.listed
            times = rng.multinomial(n, probabilities / probabilities.sum())
            return sets[times > 0], times[times > 0]
        sets, times = np.empty((0, self.k), np.int64), np.empty(0, np.int64)
        for start in range(0, n, BLOCK):
            drawn = self._sample_alike(min(BLOCK, n - start), rng)
            sets = np.concatenate([sets, np.sort(drawn, axis=1)])
            times = np.concatenate([times, np.ones(len(drawn), np.int64)])
            if count_sets(self.m, self.k, n) < n:
                sets, times = merge(sets, times, self.m)
        return sets, times

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Ints: ...

    def _sample_alike(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets in a way that does not depend on n: one by one they would be the same."""
        return self._sample(n, rng)

    @abstractmethod
    def _log_prob(self, rows: Ints) -> Floats: ...


def merge(sets: Ints, times: Ints, m: int) -> tuple[Ints, Ints]:
    """Add up the times of equal rows of arms below m; rows come in lexicographic order."""
    k = sets.shape[1]
    if m**k < 2**63:  # a row is the number with these digits: far faster to sort
        digits = m ** np.arange(k - 1, -1, -1)
        _, first, which = np.unique(sets @ digits, return_index=True, return_inverse=True)
        distinct = sets[first]
    else:
        distinct, which = np.unique(sets, axis=0, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, which.reshape(-1), times)
    return distinct, totals


def draw_listed(table: Words, sets: NDArray[np.integer[Any]], numbers: Floats) -> Ints:
    """Draw a listed set, in random order, for every number, by the alias table of their law."""
    k = sets.shape[1]
    orders = all_orders(k) if k <= MAX_ORDERED else np.arange(k, dtype=np.uint32)[None, :]
    return _draw_listed(table, sets, orders, numbers)


@compiled
def _draw_listed(
    table: Words, sets: NDArray[np.integer[Any]], orders: NDArray[np.uint32], numbers: Floats
) -> Ints:
    n, k = len(numbers), sets.shape[1]
    rows, bits = np.empty((n, k), np.int64), alias_bits(table)
    for i in range(n):
        word, state = draw_row_word(start_row(numbers[i]))
        drawn = draw_alias(table, bits, word)
        word, _ = draw_row_word(state)
        order = np.uint64(uniform(word) * len(orders))
        for r in range(k):
            rows[i, r] = sets[drawn, orders[order, r]]
        if k > MAX_ORDERED:
            shuffle_row(rows[i], state)
    return rows

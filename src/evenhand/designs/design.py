"""What every design offers: a law over K-sets of arms."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer, check_rng, first_bad_row
from evenhand.typing import Floats, Ints, compiled

TALLY_BLOCK = 2**16  # draws made and merged at once


class Design(ABC):
    """A law over the K-subsets of m arms with known marginals."""

    m: int
    k: int
    marginals: Floats

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets (n, k), each in uniformly random order."""
        return self._sample(check_integer("n", n, 0), check_rng(rng))

    def log_prob(self, sets: ArrayLike) -> Floats:
        """Log-probability (n,) of the sets (n, k) given as rows of arms in any order."""
        rows = as_integers("sets", sets)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise ValueError(f"sets must have shape (n, {self.k}), got {rows.shape}")
        bad = first_bad_row(rows, np.full(len(rows), self.k), self.m)
        if bad >= 0:
            raise ValueError(
                f"sets must hold distinct arms in 0..{self.m - 1}, "
                f"got row {bad}: {rows[bad].tolist()}"
            )
        return self._log_prob(rows)

    def tally(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw n sets and count equal ones: distinct sets (d, k), arms ascending, and times (d,).

        The counts have exactly the law of n independent draws. Where the sets cannot be listed
        the memory is that of the distinct ones drawn.
        """
        return self._tally(check_integer("n", n, 0), check_rng(rng))

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Ints: ...

    @abstractmethod
    def _log_prob(self, rows: Ints) -> Floats: ...

    def _tally(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        sets, times = np.empty((0, self.k), np.int64), np.empty(0, np.int64)
        for start in range(0, n, TALLY_BLOCK):
            drawn = self._sample(min(TALLY_BLOCK, n - start), rng)
            sets, times = merge(
                np.concatenate([sets, np.sort(drawn, axis=1)]),
                np.concatenate([times, np.ones(len(drawn), np.int64)]),
            )
        return sets, times


def merge(sets: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Add up the times of equal rows."""
    distinct, which = np.unique(sets, axis=0, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, which.reshape(-1), times)
    return distinct, totals


def tally_listed(
    sets: Ints, probabilities: Floats, n: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Count n draws from listed sets by one multinomial draw."""
    times = rng.multinomial(n, probabilities / probabilities.sum())
    drawn = times > 0
    return sets[drawn], times[drawn]


@compiled
def shuffle_rows(rows: Ints, rng: np.random.Generator) -> None:
    """Put every row into uniformly random order."""
    n, k = rows.shape
    for i in range(n):
        for r in range(k - 1):
            j = rng.integers(r, k)
            rows[i, r], rows[i, j] = rows[i, j], rows[i, r]

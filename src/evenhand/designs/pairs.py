"""How often two arms are in a set together: exactly by designs that know, else by drawing."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer, check_memory, check_rng
from evenhand.typing import Floats, Ints

MAX_PAIR_MATRIX = 5000
BLOCK_DRAWS = 10_000


class PairMarginals(ABC):
    """What designs offer that know the probability of every pair."""

    m: int
    k: int
    marginals: Floats

    def pair_marginals(self, pairs: ArrayLike | None = None) -> Floats:
        """Probability that both arms of a pair are in: inclusion probabilities of second order.

        Parameters
        ----------
        pairs
            (n, 2) arms; without it the full (m, m) matrix, whose diagonal is the marginals, for
            m <= 5000.
        """
        first, second = check_pairs(pairs, self.m)
        joint = self._pair_marginals(first, second)
        return np.where(first == second, self.marginals[first], np.maximum(joint, 0.0))

    def impossible_pair(self) -> tuple[int, int] | None:
        """Two arms that are never in together, or None; pairs of more than 5000 arms are not seen.

        With such a pair no unbiased estimate of a variance exists.
        """
        if self.m > MAX_PAIR_MATRIX:
            return None
        joint = self.pair_marginals()
        wrong = np.argwhere((joint <= 1e-15) & ~np.eye(self.m, dtype=np.bool_))
        return (int(wrong[0, 0]), int(wrong[0, 1])) if len(wrong) else None

    @abstractmethod
    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        """Joint probabilities of arms, of shapes (m, 1) and (m,) for all, or (n,) and (n,).

        Entries of an arm and itself are not looked at.
        """


class Draws(Protocol):
    """Anything that draws sets of k of m arms."""

    m: int
    k: int

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets (n, k)."""


class Estimated(NamedTuple):
    """Numbers found by drawing, and their standard errors."""

    value: Floats
    stderr: Floats


def estimate_pair_marginals(design: Draws, n: int, rng: np.random.Generator) -> Estimated:
    """Estimate the (m, m) matrix of pair marginals by drawing n sets, for any design.

    For designs without ``pair_marginals``, such as :class:`~evenhand.designs.Cube`.

    Examples
    --------
    >>> from evenhand.designs import Uniform
    >>> found = estimate_pair_marginals(Uniform(4, 2), 10_000, np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.value - Uniform(4, 2).pair_marginals()) < 5 * found.stderr))
    True
    """
    n, m = check_integer("n", n, 2), design.m
    check_rng(rng)
    check_memory(f"pairs of m={m} arms", 16 * m * m)
    together = np.zeros((m, m))
    for start in range(0, n, BLOCK_DRAWS):
        rows = design.sample(min(BLOCK_DRAWS, n - start), rng)
        inside = np.zeros((len(rows), m), np.float32)
        inside[np.arange(len(rows))[:, None], rows] = 1.0
        together += inside.T @ inside
    share = together / n
    return Estimated(share, np.sqrt(share * (1.0 - share) / (n - 1)))


def check_pairs(pairs: ArrayLike | None, m: int) -> tuple[Ints, Ints]:
    """Return the first and the second arms of pairs, or those of all pairs."""
    if pairs is None:
        if m > MAX_PAIR_MATRIX:
            raise ValueError(f"the full matrix needs m <= {MAX_PAIR_MATRIX}, got m={m}; name pairs")
        return np.arange(m)[:, None], np.arange(m)
    chosen = as_integers("pairs", pairs)
    if chosen.ndim != 2 or chosen.shape[1] != 2:
        raise ValueError(f"pairs must have shape (n, 2), got {chosen.shape}")
    outside = chosen[(chosen < 0) | (chosen >= m)]
    if outside.size:
        raise ValueError(f"pairs must hold arms in 0..{m - 1}, got {outside[0]}")
    return chosen[:, 0], chosen[:, 1]


def listed_pairs(sets: Ints, probabilities: Floats, m: int) -> Floats:
    """Return the (m, m) matrix of pair marginals of a listed law."""
    check_memory(f"pairs of m={m} arms", 8 * m * m)
    joint, k = np.zeros(m * m), sets.shape[1]
    for r in range(k):
        for s in range(k):
            if r != s:
                joint += np.bincount(sets[:, r] * m + sets[:, s], probabilities, m * m)
    return joint.reshape(m, m)

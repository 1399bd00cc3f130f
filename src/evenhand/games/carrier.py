"""Games written as sums of carrier games; additive games among them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_budget, check_integer, check_sets, check_vector
from evenhand.games.game import NoisyMean
from evenhand.games.noise import Noise
from evenhand.typing import Bools, Floats, Ints


class Carrier(NoisyMean):
    r"""A sum of carrier games :math:`V(S) = \sum_D \alpha_D \mathbf{1}\{D \subseteq S\}`.

    Every game can be written so (the paper's Claim 1; :func:`evenhand.merit.carrier_form` does it),
    and its K-Shapley values are then a plain sum over the sets D (Claim 2).

    Parameters
    ----------
    coalitions
        The sets D, each a non-empty sequence of distinct arms.
    coefficients
        The weight :math:`\alpha_D` of each.
    m
        Number of arms.
    noise
        As for :class:`~evenhand.games.SetFunction`.

    Examples
    --------
    >>> game = Carrier([[0], [1, 2]], [0.3, 0.6], m=3)
    >>> game.value(np.array([[True, True, False], [False, True, True]]))
    array([0.3, 0.6])
    >>> game.kshapley(2)
    array([0.3 , 0.15, 0.15])
    """

    def __init__(
        self,
        coalitions: Sequence[Sequence[int]],
        coefficients: ArrayLike,
        m: int,
        *,
        noise: Noise | None = None,
    ) -> None:
        super().__init__(check_integer("m", m, 1), noise)
        self.coefficients = check_vector("coefficients", coefficients, -np.inf, np.inf)
        if not hasattr(coalitions, "__len__"):
            raise TypeError(f"coalitions must be a sequence of sets of arms, got {coalitions!r}")
        if len(self.coefficients) != len(coalitions):
            raise ValueError(
                "coalitions and coefficients must have the same length, "
                f"got {len(coalitions)} and {len(self.coefficients)}"
            )
        self.members = np.zeros((len(coalitions), self.m), np.bool_)
        for row, coalition in zip(self.members, coalitions, strict=True):
            arms = as_integers("coalitions", coalition if np.ndim(coalition) == 1 else [])
            row[arms[(arms >= 0) & (arms < self.m)]] = True
            if row.sum() != arms.size or arms.size == 0:
                raise ValueError(
                    "coalitions must be non-empty sequences of distinct arms in "
                    f"0..{self.m - 1}, got {coalition!r}"
                )

    def __repr__(self) -> str:
        n = len(self.coefficients)
        return f"Carrier(m={self.m}, coalitions={n}, noise={self.noise!r})"

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        missing = (~check_sets(sets, self.m)).astype(np.float32) @ self.members.T
        return (missing == 0.0) @ self.coefficients

    def kshapley(self, k: int) -> Floats:
        r"""K-Shapley values in closed form (Claim 2): each member of D gets a share of its weight.

        The share of :math:`\alpha_D` is :math:`\binom{M-d}{K-d} / (d \binom{M-1}{K-1})` for
        d = |D| <= K, else 0.
        """
        m, k = check_budget(self.m, k)
        sizes = np.arange(1, m)
        share = np.ones(m + 1)  # of d: C(M-d, K-d) / C(M-1, K-1) as a product of d-1 factors
        share[2:] = np.cumprod(np.maximum(k - sizes, 0) / (m - sizes))
        share[1:] /= np.arange(1, m + 1)
        d = self.members.sum(axis=1)
        return (self.coefficients * share[d]) @ self.members

    def among(self, arms: Ints) -> "Carrier":
        """Return the game of these arms alone: sets D that need another arm are worth nothing."""
        gone = np.ones(self.m, np.bool_)
        gone[arms] = False
        whole = ~self.members[:, gone].any(axis=1)
        coalitions = [np.flatnonzero(row).tolist() for row in self.members[whole][:, arms]]
        if not coalitions:  # nothing is left that is worth anything
            coalitions = [[0]]
        worth = self.coefficients[whole] if whole.any() else np.zeros(1)
        return Carrier(coalitions, worth, len(arms), noise=self.noise)


def additive(values: ArrayLike, *, noise: Noise | None = None) -> Carrier:
    """Make the game in which a set is worth the sum of its arms' values, which are its merits too.

    Examples
    --------
    >>> additive([0.1, 0.2, 0.4]).kshapley(2)
    array([0.1, 0.2, 0.4])
    """
    worth = check_vector("values", values, -np.inf, np.inf)
    return Carrier([[a] for a in range(len(worth))], worth, len(worth), noise=noise)

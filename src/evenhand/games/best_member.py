"""The game in which a set is worth its best arm."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_sets, check_vector
from evenhand.display import span
from evenhand.games.game import NoisyMean
from evenhand.games.noise import Bernoulli
from evenhand.typing import Bools, Floats, Ints


class BestMember(NoisyMean):
    r"""A set is worth its best arm, :math:`V(S) = \max_{a \in S} x_a`; a reward is 1 or 0.

    Parameters
    ----------
    worth
        What every arm is worth alone, in [0, 1]: the chance of a reward of 1.

    Examples
    --------
    >>> game = BestMember([0.2, 0.5, 0.9])
    >>> game.value(np.array([[True, True, False]]))
    array([0.5])
    >>> game.kshapley(2)
    array([0.1  , 0.325, 0.725])
    """

    def __init__(self, worth: ArrayLike) -> None:
        self.worth = check_vector("worth", worth, 0.0, 1.0)
        super().__init__(len(self.worth), Bernoulli())

    def __repr__(self) -> str:
        return f"BestMember(m={self.m}, worth={span(self.worth)})"

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        values: Floats = (check_sets(sets, self.m) * self.worth).max(axis=1)
        return values

    def among(self, arms: Ints) -> "BestMember":
        """Return the game of these arms alone."""
        return BestMember(self.worth[arms])

    def kshapley(self, k: int) -> Floats:
        r"""K-Shapley values in closed form.

        With s others drawn at random, an arm gains over all levels y below its worth at which
        those s are all worth at most y. Between the j-th and the next worth in ascending order j
        arms are, so that this has the chance :math:`\binom js / \binom{M-1}s`.
        """
        m, k = check_budget(self.m, k)
        order = np.argsort(self.worth, kind="stable")
        steps = np.diff(self.worth[order], prepend=0.0)
        below, size = np.arange(m)[:, None], np.arange(k - 1)
        chances = np.cumprod(np.maximum(below - size, 0) / (m - 1 - size), axis=1)
        merit = np.empty(m)
        merit[order] = np.cumsum(steps * (1.0 + chances.sum(axis=1))) / k
        return merit

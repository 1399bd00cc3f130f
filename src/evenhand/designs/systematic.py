"""Systematic sampling: marginals laid end to end, from a random start a draw per unit step."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import ROUNDING, check_marginals
from evenhand.designs.design import ExplicitDesign
from evenhand.designs.pairs import MAX_PAIR_MATRIX
from evenhand.subsets.combinations import shuffle
from evenhand.typing import Floats, Ints, compiled


class Systematic(ExplicitDesign):
    r"""K-sets with given marginals by systematic sampling.

    Lay the marginals end to end on a line of length K and draw one start u, uniform on [0, 1): the
    arms that lie at u, u + 1, ..., u + K - 1 are chosen. Only about M different sets can come up,
    and many pairs of arms never do together: fast to draw and to count, a poor choice to learn
    from. Make one with :meth:`fit`.

    References
    ----------
    W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics 20
    (1949).

    Examples
    --------
    >>> np.exp(Systematic.fit([0.5, 0.5, 0.5, 0.5]).log_prob([[0, 2], [0, 1]]))
    array([0.5, 0. ])
    """

    def __init__(self, marginals: Floats, k: int) -> None:
        """Trust marginals that sum to k; use :meth:`fit` instead."""
        self.m, self.k, self.marginals = len(marginals), k, marginals
        certain = marginals > 1.0 - ROUNDING  # in every set, whatever the start
        always, line = np.flatnonzero(certain), np.flatnonzero(~certain)
        k -= len(always)
        ends = np.cumsum(marginals[line])
        ends = ends * (k / ends[-1]) if k else ends
        self._begins = np.zeros(
            self.m
        )  # of the starts for which an arm is in; all, if it is certain
        self._begins[line] = (ends - marginals[line]) % 1.0
        # the set changes where u passes the fractional part of an end: one set per interval of u
        self._cuts = np.unique(np.append(ends % 1.0, [0.0, 1.0]))
        middles = 0.5 * (self._cuts[1:] + self._cuts[:-1])
        places = np.searchsorted(ends, middles[:, None] + np.arange(k), side="right")
        drawn = line[np.minimum(places, len(line) - 1)]
        self._sets = np.concatenate([drawn, np.tile(always, (len(drawn), 1))], axis=1)

    @classmethod
    def fit(cls, marginals: ArrayLike) -> Self:
        """Make the design with these marginals (m,), in [0, 1], that sum to an integer k >= 1."""
        return cls(*check_marginals(marginals))

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        return _draw(self._cuts, self._sets, n, rng)

    def _log_prob(self, rows: Ints) -> Floats:
        chances: dict[tuple[int, ...], float] = {}
        for row, length in zip(np.sort(self._sets, axis=1).tolist(), self.listed[1], strict=True):
            chances[tuple(row)] = chances.get(tuple(row), 0.0) + float(length)
        asked = [chances.get(tuple(row), 0.0) for row in np.sort(rows, axis=1).tolist()]
        with np.errstate(divide="ignore"):
            return np.log(np.array(asked))

    def entropy(self) -> float:
        """Entropy of the law, in nats."""
        chances = np.exp(self._log_prob(self._sets))
        _, first = np.unique(np.sort(self._sets, axis=1), axis=0, return_index=True)
        possible = chances[first][chances[first] > 0.0]
        return float(-(possible * np.log(possible)).sum())

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        """Overlap of two arcs of the circle of starts: an arm is in for the starts on its own."""
        total = np.zeros(np.broadcast(first, second).shape)
        for turn in (-1.0, 0.0, 1.0):
            low = np.maximum(self._begins[first], self._begins[second] + turn)
            ends = self._begins + self.marginals
            total += np.maximum(np.minimum(ends[first], ends[second] + turn) - low, 0.0)
        return total

    def impossible_pair(self) -> tuple[int, int] | None:
        """Two arms that are never in together, or None."""
        if self.m <= MAX_PAIR_MATRIX:
            return super().impossible_pair()
        arms = np.arange(self.m - 1)  # among so many some neighbours share no start
        apart = np.flatnonzero(self._pair_marginals(arms, arms + 1) <= 1e-15)
        return (int(apart[0]), int(apart[0]) + 1) if len(apart) else None

    @property
    def listed(self) -> tuple[Ints, Floats]:
        """The at most m + 1 sets, one per interval of the start, and the intervals' lengths."""
        return self._sets, np.diff(self._cuts)


@compiled
def _draw(cuts: Floats, sets: Ints, n: int, rng: np.random.Generator) -> Ints:
    """Draw n starts, and the set of the interval each falls into, in random order."""
    rows = np.empty((n, sets.shape[1]), np.int64)
    for i in range(n):
        rows[i] = sets[np.searchsorted(cuts, rng.random(), side="right") - 1]
        shuffle(rows[i], rng)
    return rows

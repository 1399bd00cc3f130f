"""Systematic sampling: one random start, every unit step draws an arm."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import ROUNDING, check_marginals
from evenhand.designs.design import ExplicitDesign
from evenhand.subsets.combinations import shuffle
from evenhand.typing import Floats, Ints, compiled


class Systematic(ExplicitDesign):
    r"""K-sets with given marginals by systematic sampling.

    Lay the marginals end to end on a line of length K; with one uniform start u the arms lying at
    u, u + 1, ... are drawn. At most M different sets can be, and many pairs never meet: fast to
    draw and to count, a poor choice to learn from. Make one with :meth:`fit`.

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
        self._always, self._line = np.flatnonzero(certain), np.flatnonzero(~certain)
        k -= len(self._always)
        ends = np.cumsum(marginals[self._line])
        self._ends = ends * (k / ends[-1]) if k else ends
        # the set changes where u passes the fractional part of an end: the sets by intervals of u
        cuts = np.unique(np.append(self._ends % 1.0, [0.0, 1.0]))
        middles = 0.5 * (cuts[1:] + cuts[:-1])
        self._lengths: Floats = np.diff(cuts)
        self._sets: Ints = np.empty((len(middles), self.k), np.int64)
        for row, u in zip(self._sets, middles, strict=True):
            row[:k] = self._line[_crossed(self._ends, u, k)]
            row[k:] = self._always

    @classmethod
    def fit(cls, marginals: ArrayLike) -> Self:
        """Make the design with these marginals (m,), in [0, 1], that sum to an integer k >= 1."""
        return cls(*check_marginals(marginals))

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = np.empty((n, self.k), np.int64)
        rows[:, self.k - len(self._always) :] = self._always
        _draw(self._ends, self._line, self.k - len(self._always), rows, rng)
        return rows

    def _log_prob(self, rows: Ints) -> Floats:
        chances: dict[tuple[int, ...], float] = {}
        for row, length in zip(np.sort(self._sets, axis=1).tolist(), self._lengths, strict=True):
            chances[tuple(row)] = chances.get(tuple(row), 0.0) + float(length)
        asked = [chances.get(tuple(row), 0.0) for row in np.sort(rows, axis=1).tolist()]
        with np.errstate(divide="ignore"):
            return np.log(np.array(asked))

    @property
    def listed(self) -> tuple[Ints, Floats]:
        """The at most m + 1 sets by intervals of the start, with their lengths."""
        return self._sets, self._lengths


@compiled
def _crossed(ends: Floats, start: float, k: int) -> Ints:
    """Places on the line at which start, start + 1, ... fall."""
    places = np.empty(k, np.int64)
    for j in range(k):
        place = int(np.searchsorted(ends, start + j, side="right"))
        places[j] = min(place, len(ends) - 1)
    return places


@compiled
def _draw(ends: Floats, line: Ints, k: int, rows: Ints, rng: np.random.Generator) -> None:
    """Fill k places of each row with what one start draws, and shuffle the row."""
    for i in range(len(rows)):
        places = _crossed(ends, rng.random(), k)
        for j in range(k):
            rows[i, j] = line[places[j]]
        shuffle(rows[i], rng)

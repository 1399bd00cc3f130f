"""Systematic sampling: one random start, every unit step draws an arm."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_marginals, first_bad_row
from evenhand.designs.design import Design, shuffle
from evenhand.typing import Floats, Ints, compiled


class Systematic(Design):
    r"""K-sets with given marginals by systematic sampling.

    Lay the marginals end to end, in ``order``, on a line of length K; with one uniform start u the
    arms lying at u, u + 1, ... are drawn. At most M different sets can be, and many pairs never
    meet: fast to draw and to count, a poor choice to learn from.

    Parameters
    ----------
    marginals
        (m,) numbers in [0, 1] that sum to an integer k >= 1.
    order
        The arms in the order in which they lie on the line; ascending if not given.

    References
    ----------
    W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics 20
    (1949).

    Examples
    --------
    >>> np.exp(Systematic([0.5, 0.5, 0.5, 0.5]).log_prob([[0, 2], [0, 1]]))
    array([0.5, 0. ])
    """

    def __init__(self, marginals: ArrayLike, order: ArrayLike | None = None) -> None:
        self.marginals, self.k = check_marginals(marginals)
        self.m = len(self.marginals)
        line = np.arange(self.m) if order is None else as_integers("order", order)
        if line.shape != (self.m,) or first_bad_row(line[None, :], np.array([self.m]), self.m) >= 0:
            raise ValueError(f"order must be a permutation of 0..{self.m - 1}, got {order!r}")
        ends = np.cumsum(self.marginals[line])
        self._ends = ends * (self.k / ends[-1])
        self._line = line
        # the set changes where u passes the fractional part of an end: the sets by intervals of u
        cuts = np.unique(np.append(self._ends % 1.0, [0.0, 1.0]))
        middles = 0.5 * (cuts[1:] + cuts[:-1])
        self._lengths: Floats = np.diff(cuts)
        self._sets: Ints = line[np.array([_crossed(self._ends, u, self.k) for u in middles])]

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        return _draw(self._ends, self._line, self.k, n, rng)

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
def _draw(ends: Floats, line: Ints, k: int, n: int, rng: np.random.Generator) -> Ints:
    rows = np.empty((n, k), np.int64)
    for i in range(n):
        places = _crossed(ends, rng.random(), k)
        for j in range(k):
            rows[i, j] = line[places[j]]
        shuffle(rows[i], rng)
    return rows

"""Sampford's design: rejective sampling with exactly the marginals asked for, without a fit."""

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_marginals
from evenhand.designs.calibration import REST
from evenhand.designs.conditional_poisson import (
    ComplexFloats,
    ConditionalPoisson,
    Contour,
    sum_weights,
)
from evenhand.designs.design import ExplicitDesign
from evenhand.typing import Floats, Ints

BLOCK_CELLS = 2**20  # complex numbers held at once


class Sampford(ExplicitDesign):
    r"""K-sets with given marginals by Sampford's procedure.

    .. math:: P(S) \propto \sum_{a \in S} (1 - \pi_a) \prod_{a \in S} \frac{\pi_a}{1 - \pi_a}

    Draw one arm with chances :math:`\pi_a / K` and a set of K - 1 by independent coins of odds
    :math:`\pi_a / (1 - \pi_a)`, and again until the arm is not in the set. The marginals are exact,
    and so are pair marginals and the probability of a set. Its entropy is hardly below that of
    :class:`~evenhand.designs.ConditionalPoisson`. Make one with :meth:`fit`.

    References
    ----------
    M. R. Sampford, "On sampling without replacement with unequal probabilities of selection",
    Biometrika 54 (1967).

    Examples
    --------
    >>> design = Sampford.fit([0.9, 0.6, 0.4, 0.1])
    >>> np.exp(design.log_prob([[0, 1], [2, 3]])).round(4)
    array([0.5084, 0.0084])
    """

    def __init__(self, marginals: Floats, k: int) -> None:
        """Trust marginals that sum to k; use :meth:`fit` instead."""
        self.m, self.k, self.marginals = len(marginals), k, marginals
        self._rest = 1.0 - marginals
        with np.errstate(divide="ignore"):
            self._log_odds = np.log(marginals / self._rest)
        self._free = np.flatnonzero(np.isfinite(self._log_odds))
        self._always = np.flatnonzero(self._log_odds == np.inf)
        self._k_free = k - len(self._always)
        self._inner: ConditionalPoisson | None = None  # the coins of the K - 1, if any
        self._log_normaliser = math.log(max(1, self._k_free))
        if self._k_free > 1:
            odds, shares = self._log_odds[self._free], marginals[self._free] / self._k_free
            self._inner = inner = ConditionalPoisson.from_log_weights(odds, self._k_free - 1)
            shift = float(inner.log_weights[0] - odds[0])
            self._accepted = float(shares @ inner._law[REST])
            self._log_normaliser += inner.log_normaliser - (self._k_free - 1) * shift
            self._log_normaliser += math.log(self._accepted)

    @classmethod
    def fit(cls, marginals: ArrayLike) -> Self:
        """Make the design with these marginals (m,), in [0, 1], that sum to an integer k >= 1."""
        return cls(*check_marginals(marginals))

    def _log_prob(self, rows: Ints) -> Floats:
        sums = sum_weights(self._log_odds, len(self._always), rows)
        if self._k_free == 0:
            return sums
        with np.errstate(divide="ignore"):
            return sums + np.log(self._rest[rows].sum(axis=1)) - self._log_normaliser

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = np.empty((n, self.k), np.int64)
        rows[:, self._k_free :] = self._always
        if self._k_free:
            rows[:, : self._k_free] = self._free[self._draw_free(n, rng)]
        return rng.permuted(rows, axis=1)

    def _draw_free(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets of positions among the arms with a choice."""
        ends = np.cumsum(self.marginals[self._free])
        if self._inner is None:
            return _choose(ends, n, rng)[:, None]
        found, drawn = np.empty((n, self._k_free), np.int64), 0
        while drawn < n:
            tries = max(64, math.ceil(1.1 * (n - drawn) / self._accepted))
            tries = min(tries, max(64, 2**22 // self._k_free))
            one, others = _choose(ends, tries, rng), self._inner._sample(tries, rng)
            good = np.flatnonzero((others != one[:, None]).all(axis=1))[: n - drawn]
            found[drawn : drawn + len(good), 0] = one[good]
            found[drawn : drawn + len(good), 1:] = others[good]
            drawn += len(good)
        return found

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        place = np.full(self.m, -1)
        place[self._free] = np.arange(len(self._free))
        if self._inner is None:  # two arms with a choice never meet
            free = np.zeros(np.broadcast(first, second).shape)
        else:
            free = self._free_pairs(self._inner, place[first], place[second])
        # an arm without a choice meets another as often as that is in at all
        certain = (place[first] < 0) | (place[second] < 0)
        return np.where(certain, self.marginals[first] * self.marginals[second], free)

    def _free_pairs(self, inner: ConditionalPoisson, first: Ints, second: Ints) -> Floats:
        """Pairs of arms with a choice, given by their places (places below 0 give anything).

        At a point of the contour coins are independent, each with its own chance of head f. Of the
        two arms, both are in the set of K - 1 and the single arm is a third one outside of it, or
        one of the two is the single arm.
        """
        contour, pi = Contour(inner), self.marginals[self._free]

        def heads_and_single(arms: Ints) -> tuple[ComplexFloats, ComplexFloats]:
            heads = contour.heads(arms)
            return heads, pi[arms, None] * (1.0 - heads)  # is the single arm, and not in the set

        total: ComplexFloats = np.zeros(contour.n_points, np.complex128)
        step = max(1, BLOCK_CELLS // contour.n_points)
        for start in range(0, len(pi), step):
            arms = np.arange(start, min(start + step, len(pi)))
            total += heads_and_single(arms)[1].sum(axis=0)
        (a, u), (b, v) = heads_and_single(first.reshape(-1)), heads_and_single(second)
        if first.ndim == 2:  # all pairs
            both = contour.mean_products(a * (total - u) + u, b)
            both += contour.mean_products(a, v) - contour.mean_products(a, b * v)
        else:
            both = contour.mean(a * b * (total - u - v) + u * b + a * v)
        return both / contour.mean(total[None, :])[0]


def _choose(ends: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Draw n places with chances that add up to these ends."""
    return np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], "right"), len(ends) - 1)

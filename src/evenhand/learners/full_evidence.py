r"""What rewards of full sets say about full-set values: sums that grow, and what follows from them.

A full-set value is a mean over all K-sets, :math:`\psi_a = \mathrm E\, c_a(S) V(S)`, where
:math:`c_a` is one number for sets with arm a and another for those without. A set drawn with
probability P(S) has the weight :math:`u = 1 / \binom MK P(S)`. Rewards y are compared with an
additive forecast, the sum of the members' x, whose full-set values are the x themselves, so that

.. math:: \hat\psi_a = \frac1n \sum_t [x_{a,t} + u_t\, c_a(S_t) (y_t - \sum_{b \in S_t} x_{b,t})]

is unbiased for any game whatever, and the better the forecast, the less noise it has.
"""

from typing import NamedTuple

import numpy as np

from evenhand.exchange import Rows
from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.subsets.full_sets import coefficients, full_set_values
from evenhand.typing import Floats, Ints, compiled

COUNTED, WEIGHT, SURPRISE, SQUARE, NOISE = range(5)  # columns of the sums: 1, u, u e, u^2, (u e)^2
OWN = 20.0  # rewards after which an arm's own noise counts more than that of all arms

FIELDS: Fields = {
    **{name: Field(-1e300, 1e300) for name in ("sums", "forecasts", "worth")},
    "told": COUNT,
    "largest": Field(0.0, 1e300),
}


class Conclusions(NamedTuple):
    """Full-set values (m,) without bias, their variances, and shrunk to their common mean."""

    value: Floats
    variance: Floats
    shrunk: Floats


class FullEvidence:
    """What rewards of full sets have said so far, and the forecast that they are compared with.

    The forecast changes in :meth:`renew` alone.

    Attributes
    ----------
    sums
        (m + 1, 5) sums over the sets with each arm, and in the last row over all of them: of 1, u,
        u e, u^2 and (u e)^2, with e a reward less its forecast.
    forecasts
        (m,) the forecast worths, summed over rewards.
    worth
        (m,) the present forecast: a set is expected to bring the sum of its members' worths.
    told
        Rewards absorbed.
    largest
        Largest weight so far.
    """

    def __init__(self, m: int, k: int) -> None:
        self.k = k
        self.sums, self.forecasts = np.zeros((m + 1, 5)), np.zeros(m)
        self.worth = np.full(m, 0.5 / k)
        self.told, self.largest = 0, 0.0
        self._found: Conclusions | None = None

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one full set each, skipping nan."""
        self._found = None
        told, largest = absorb(self.sums, self.worth, rows.orders, rows.weights, rewards)
        self.forecasts += told * self.worth
        self.told += told
        self.largest = max(self.largest, largest)

    def branch(self) -> "FullEvidence":
        """Return evidence of no rewards with the same forecast, to be merged into this one."""
        other = FullEvidence(len(self.worth), self.k)
        other.worth = self.worth.copy()
        return other

    def merge(self, other: "FullEvidence") -> None:
        """Add what another one absorbed against the same forecast."""
        if not np.array_equal(self.worth, other.worth):
            raise ValueError("evidence must have the same forecast to be merged; see branch")
        self._found = None
        self.sums += other.sums
        self.forecasts += other.forecasts
        self.told += other.told
        self.largest = max(self.largest, other.largest)

    def estimate(self) -> Conclusions:
        """All that follows from the sums."""
        if self._found is None:
            self._found = self._conclude()
        return self._found

    def _conclude(self) -> Conclusions:
        m, n = len(self.worth), self.told
        if n == 0:
            return Conclusions(self.worth, np.full(m, np.inf), self.worth)
        inside, level = m / self.k * self.sums[:-1, SURPRISE] / n, self.sums[-1, SURPRISE] / n
        value = self.forecasts / n + full_set_values(inside, level, self.k)
        variance = variances(self.sums, *coefficients(m, self.k))
        return Conclusions(value, variance, shrink(value, variance))

    def renew(self) -> Conclusions:
        """Take over the present forecast, and return what it was concluded from."""
        found = self.estimate()
        self.worth = found.shrunk
        return found


@compiled
def absorb(
    sums: Floats, worth: Floats, sets: Ints, weights: Floats, rewards: Floats
) -> tuple[int, float]:
    """Add the rewards of sets, nan skipped; return how many there were and the largest weight."""
    told, largest, k, last = 0, 0.0, sets.shape[1], len(worth)
    for i in range(len(sets)):
        if np.isnan(rewards[i, 0]):
            continue
        surprise, u = rewards[i, 0], weights[i, 0]
        for r in range(k):
            surprise -= worth[sets[i, r]]
        told += 1
        largest = max(largest, u)
        for r in range(k + 1):
            cell = sums[sets[i, r] if r < k else last]
            cell[COUNTED] += 1.0
            cell[WEIGHT] += u
            cell[SURPRISE] += u * surprise
            cell[SQUARE] += u * u
            cell[NOISE] += (u * surprise) ** 2
    return told, largest


@compiled
def variances(sums: Floats, c_in: float, c_out: float) -> Floats:
    """Variances (m,) of the full-set values, infinite for arms not yet seen.

    The noise in sets with an arm is its own once it was seen often, and before that the common one.
    """
    m = len(sums) - 1
    whole, result = sums[m], np.empty(m)
    common = whole[NOISE] / whole[SQUARE]
    for a in range(m):
        result[a], n = np.inf, sums[a, COUNTED]
        if n > 0.0:
            inside = (n * sums[a, NOISE] + OWN * common * sums[a, SQUARE]) / (n + OWN)
            outside = max(whole[NOISE] - sums[a, NOISE], 0.0)
            result[a] = (c_in**2 * inside + c_out**2 * outside) / whole[COUNTED] ** 2
    return result


@compiled
def shrink(value: Floats, variance: Floats) -> Floats:
    """Shrink values towards their common mean, as far as they differ no more than by noise.

    Empirical Bayes with a normal prior, whose variance is found by moments.
    """
    m, centre, between = len(value), 0.0, 0.0
    for x in value:
        centre += x / m
    for a in range(m):
        if variance[a] < np.inf:
            between += (value[a] - centre) ** 2 - variance[a]
    between = max(between / m, 0.0)
    result = np.empty(m)
    for a in range(m):
        result[a] = centre
        if between > 0.0:
            result[a] += between / (between + variance[a]) * (value[a] - centre)
    return result

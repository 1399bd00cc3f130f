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
from evenhand.learners import curves
from evenhand.learners.accounting import Counted
from evenhand.learners.curves import Curves, Extrapolation
from evenhand.subsets.full_sets import coefficients, full_set_values
from evenhand.typing import Floats, Ints, compiled

COUNTED, WEIGHT, SURPRISE, SQUARE, NOISE = range(5)  # columns of the sums: 1, u, u e, u^2, (u e)^2
MAX_PAIRS = 500  # up to so many arms it is counted how often any two were together
OWN = 20.0  # rewards after which an arm's own noise counts more than that of all arms

FIELDS: Fields = {
    **{name: Field(-1e300, 1e300) for name in ("sums", "forecasts", "worth", "pairs", "totals")},
    **{f"curves.{name}": field for name, field in curves.FIELDS.items()},
    "told": COUNT,
    "renewed": COUNT,
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
        (m,) the forecast worths, summed over the rewards until the last :meth:`renew`.
    worth
        (m,) the present forecast: a set is expected to bring the sum of its members' worths.
    told
        Rewards absorbed.
    renewed
        How many of them there were at the last :meth:`renew`.
    largest
        Largest weight so far.
    """

    def __init__(self, m: int, k: int) -> None:
        self.k = k
        self.sums, self.forecasts = np.zeros((m + 1, 5)), np.zeros(m)
        self.worth = np.full(m, 0.5 / k)
        self.pairs, self.totals = np.zeros((m, m) if m <= MAX_PAIRS else (0, 0)), np.zeros(m)
        self.told, self.renewed, self.largest = 0, 0, 0.0
        self.curves = Curves(m, k)
        self._found: Conclusions | None = None

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one full set each, skipping nan."""
        self._found = None
        told, largest = absorb(self.sums, self.worth, rows.orders, rows.weights, rewards)
        self.curves.absorb(rows.orders, rows.weights, rewards)
        count_pairs(self.pairs, self.totals, rows.orders, rewards)
        self.told += told
        self.largest = max(self.largest, largest)

    def branch(self) -> "FullEvidence":
        """Return evidence of no rewards with the same forecast, to be merged into this one."""
        other = FullEvidence(len(self.worth), self.k)
        other.worth, other.curves = self.worth.copy(), self.curves.branch()
        return other

    def merge(self, other: "FullEvidence") -> None:
        """Add what another one absorbed against the same forecast."""
        if not np.array_equal(self.worth, other.worth):
            raise ValueError("evidence must have the same forecast to be merged; see branch")
        self._found = None
        self.sums += other.sums
        self.pairs += other.pairs
        self.totals += other.totals
        self.curves.merge(other.curves)
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
        value = self._forecasts() / n + full_set_values(inside, level, self.k)
        variance = variances(self.sums, *coefficients(m, self.k))
        best, error = value, variance
        if len(self.pairs):
            plain = least_squares(self.pairs, self.totals, float(value.mean()))
            best, error = blend(value, variance, plain, plain_variances(self.sums))
        return Conclusions(value, variance, shrink(best, error))

    def counted(self) -> Counted:
        """Return how many rewards it rests on."""
        return Counted(self.told, None, self.sums[:-1, COUNTED].astype(np.int64))

    def renew(self) -> Conclusions:
        """Take over the present forecast, and return what it was concluded from."""
        found = self.estimate()
        self.forecasts, self.renewed = self._forecasts(), self.told
        self.worth = found.shrunk
        if self.told:
            self.curves.fit(found.shrunk, self.told)
        return found

    def _forecasts(self) -> Floats:
        """Return the forecast worths, summed over all rewards."""
        return self.forecasts + (self.told - self.renewed) * self.worth

    def extrapolate(self) -> Extrapolation:
        """What follows from the curve."""
        noise = float(self.sums[-1, NOISE]) / max(self.told, 1)
        return self.curves.average(self.estimate().shrunk, noise)


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
def count_pairs(pairs: Floats, totals: Floats, sets: Ints, rewards: Floats) -> None:
    """Count how often arms were together, where there is room for it, and sum rewards by arm."""
    k = sets.shape[1]
    for i in range(len(sets)):
        if np.isnan(rewards[i, 0]):
            continue
        for r in range(k):
            a = sets[i, r]
            totals[a] += rewards[i, 0]
            if len(pairs):
                for other in range(k):
                    pairs[a, sets[i, other]] += 1.0


@compiled
def least_squares(pairs: Floats, totals: Floats, centre: float) -> Floats:
    """Worths (m,) of the additive game nearest to the rewards as drawn, by conjugate gradients.

    Each arm has one more reward, of ``centre`` alone, so that there is always a solution.
    """
    m = len(totals)
    x, left, along, image = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    size, start = 0.0, 0.0
    for a in range(m):
        x[a] = centre
        left[a] = totals[a]
        for b in range(m):
            left[a] -= pairs[a, b] * centre
        along[a] = left[a]
        size += left[a] ** 2
        start += (totals[a] + centre) ** 2
    for _ in range(2 * m):
        if size <= 1e-20 * start:
            break
        slope = 0.0
        for a in range(m):
            image[a] = along[a]
            for b in range(m):
                image[a] += pairs[a, b] * along[b]
            slope += image[a] * along[a]
        before, size = size, 0.0
        for a in range(m):
            x[a] += before / slope * along[a]
            left[a] -= before / slope * image[a]
            size += left[a] ** 2
        for a in range(m):
            along[a] = left[a] + size / before * along[a]
    return x


@compiled
def plain_variances(sums: Floats) -> Floats:
    """Variances (m,) of the worths by least squares, as if arms were drawn independently."""
    m = len(sums) - 1
    whole, result = sums[m], np.empty(m)
    noise = whole[NOISE] / whole[SQUARE]
    for a in range(m):
        n = sums[a, COUNTED]
        result[a] = noise / max(n * (1.0 - n / whole[COUNTED]), 1.0)
    return result


@compiled
def blend(
    value: Floats, variance: Floats, plain: Floats, plain_variance: Floats
) -> tuple[Floats, Floats]:
    """Move least-squares worths, right for additive games, to the values right for any game.

    As far as they differ by more than noise: empirical Bayes with an error common to all arms; an
    arm further off than two standard errors speaks for itself as well. Returns values, variances.
    """
    m, error, seen = len(value), 0.0, 0
    noise, apart = np.empty(m), np.empty(m)
    for a in range(m):
        noise[a] = max(variance[a] - plain_variance[a], 0.05 * variance[a])
        apart[a] = (value[a] - plain[a]) ** 2
    for a in range(m):
        if variance[a] < np.inf:
            error += apart[a] - noise[a]
            seen += 1
    error = max(error / max(seen, 1), 0.0)
    best, rest = np.empty(m), np.empty(m)
    for a in range(m):
        trust = 0.0
        if variance[a] < np.inf:
            own = error + max(apart[a] - 4.0 * noise[a], 0.0)
            trust = own / (own + noise[a]) if own > 0.0 else 0.0
        best[a] = plain[a] + trust * (value[a] - plain[a])
        rest[a] = plain_variance[a]
        if trust > 0.0:
            rest[a] += trust * (variance[a] - plain_variance[a])
    return best, rest


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

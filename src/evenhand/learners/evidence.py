r"""What rewards of sets of every size say about merits: sums that grow, and what follows from them.

The K-Shapley value needs the mean value :math:`v^+_{ar}` of the r-sets that hold arm a, for every
size r, and nothing else: with :math:`\bar V_r` its mean over arms,

.. math:: \phi_a = \frac1K \Bigl[ \sum_{r<K} \frac{M}{M-r} (v^+_{ar} - \bar V_r) + v^+_{aK} \Bigr],

because :math:`\bar V_r = \frac rM v^+_{ar} + (1 - \frac rM) v^-_{ar}` gives the mean over the sets
without a. Importance weights estimate :math:`v^+_{ar}` for any game whatever; a model of few
numbers, :class:`Forecast`, does so with less noise and some bias. :func:`conclude` weighs the two.
"""

from typing import NamedTuple

import numpy as np

from evenhand.exchange import Rows
from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.subsets.combinations import mean_products
from evenhand.typing import Floats, Ints, compiled

TINY = 1e-12
OWN = 20.0  # single rewards after which an arm's own variance counts more than the common one
SPREAD = 0.5  # how unlike the model's an arm's loss to saturation is, relative to its worth
ERROR = 0.05  # error of the model, relative to the mean merit, before anything was seen


class Sums(NamedTuple):
    """All that is remembered of the rewards told, as sums.

    With w a member's weight, e a reward's surprise over the forecast, z the reward corrected by
    the forecast, s the saturation an arm met, g its gain, and c the forecast's slope in gamma:

    Attributes
    ----------
    weighted
        (k, m, 4) per size and arm: w, w z, w^2 and (w e)^2.
    lines
        (m, 5) per arm, over the larger sets that hold it: 1, s, s^2, g and s g.
    surprises
        (k, 3) per size: 1, e and e^2.
    bend
        (2,) c^2 and c (e + c gamma).

    All but ``weighted`` fade, see :meth:`Evidence.renew`.
    """

    weighted: Floats
    lines: Floats
    surprises: Floats
    bend: Floats


class Forecast(NamedTuple):
    r"""What a set is expected to bring, kept fixed while rewards are taken in.

    Arms of worth x alone bring :math:`b(S) = (1 - \prod_{a \in S} (1 - \gamma x_a)) / \gamma`
    together: the sum of their worths for :math:`\gamma \to 0`, noisy-OR for :math:`\gamma = 1`.
    ``expected`` (k, m) is the mean of b over the r-sets that hold an arm, ``offset`` (k,) by how
    much b was too low at each size.
    """

    worth: Floats
    gamma: float
    expected: Floats
    offset: Floats

    @classmethod
    def blank(cls, m: int, k: int) -> "Forecast":
        """Knowing nothing."""
        return cls(np.full(m, 0.5), 1.0, np.full((k, m), 0.5), np.zeros(k))


class Conclusions(NamedTuple):
    """Merits (m,) by the model and free of it, their variances, and how far the latter is trusted.

    ``error`` is how much the model is held to be wrong, as a variance.
    """

    model: Floats
    model_variance: Floats
    free: Floats
    free_variance: Floats
    trust: Floats
    error: float
    forecast: Forecast

    @property
    def merit(self) -> Floats:
        """The model's merits, moved towards the free ones as far as these are trusted."""
        return self.model + self.trust * (self.free - self.model)

    @property
    def variance(self) -> Floats:
        """Mean squared error of the merits, as far as it shows.

        Both merits come from the same rewards, so that their errors add up rather than cancel. The
        model's own error is the common one and what an arm is apart beyond the noise.
        """
        noise = np.where(self.trust > 0.0, self.free_variance, 0.0)  # else infinite
        apart = np.where(self.trust > 0.0, (self.free - self.model) ** 2, 0.0)
        share = 1.0 - self.trust
        sampling = share * np.sqrt(self.model_variance) + self.trust * np.sqrt(noise)
        return sampling**2 + share**2 * (self.error + np.maximum(apart - noise, 0.0))


@compiled
def absorb(
    sums: Sums,
    forecast: Forecast,
    orders: Ints,
    sizes: Ints,
    weights: Floats,
    rewards: Floats,
) -> tuple[int, float]:
    """Add the rewards of one set per row, nan skipped.

    ``weights`` (n, k) are those of the members. Returns how many rewards there were, and the
    largest of their weights.
    """
    weighted, lines, surprises, bend = sums
    worth, gamma, expected, offset = forecast
    told, largest = 0, 0.0
    for i in range(len(orders)):
        r, reward = sizes[i, 0], rewards[i, 0]
        if np.isnan(reward):
            continue
        told += 1
        surprise = reward
        if r > 1:
            missed, slope = 1.0, 0.0
            for a in orders[i, :r]:
                left = miss(worth[a], gamma)
                missed *= left
                slope += worth[a] / left
            value = (1.0 - missed) / gamma
            surprise = reward - value
            slope = (slope * missed - value) / gamma
            bend[0] += slope * slope
            bend[1] += slope * (surprise + slope * gamma)
            surprises[r - 1, 0] += 1.0
            surprises[r - 1, 1] += surprise
            surprises[r - 1, 2] += surprise * surprise
            for a in orders[i, :r]:
                # the gain of a over the others, of whom r - 1 are forecast to bring b
                others = missed / miss(worth[a], gamma)
                gain = worth[a] * others + surprise - offset[r - 2]
                add_point(lines[a], 1.0 - others, gain)
        for j in range(r):
            a, w = orders[i, j], weights[i, j]
            largest = max(largest, w)
            corrected = surprise + expected[r - 1, a] if r > 1 else reward
            cell = weighted[r - 1, a]
            cell[0] += w
            cell[1] += w * corrected
            cell[2] += w * w
            cell[3] += (w * surprise) ** 2
    return told, largest


@compiled
def miss(worth: float, gamma: float) -> float:
    """What an arm leaves to the others, 1 - gamma x, kept above 0."""
    return max(1.0 - gamma * worth, 0.02)


@compiled
def add_point(line: Floats, saturation: float, gain: float) -> None:
    """Add one point to the sums of an arm's line."""
    line[0] += 1.0
    line[1] += saturation
    line[2] += saturation * saturation
    line[3] += gain
    line[4] += saturation * gain


class Alone(NamedTuple):
    """Worth of the arms alone: raw means of n rewards, variance of one, prior, shrunk means."""

    n: Floats
    raw: Floats
    variance: Floats
    centre: float
    between: float
    worth: Floats


def alone(cells: Floats) -> Alone:
    """Shrink the means of single arms (m, 4) towards their common mean (empirical Bayes).

    An arm's variance is its own once it has been seen often, and before that a common one in
    proportion to its worth: a few zeros must not look like a certain zero.
    """
    n, total, _, squares = cells.T
    seen, raw = n > 0, total / np.maximum(n, 1.0)
    if not seen.any():
        half = np.full(len(n), 0.5)
        return Alone(n, raw, 0.5 * half, 0.5, 1.0, half)
    centre = max(float(raw[seen].mean()), 1e-4)
    scatter, freedom = np.maximum(squares - n * raw**2, 0.0), np.maximum(n - 1.0, 0.0)
    pooled = max(scatter.sum() / freedom.sum(), TINY) if freedom.any() else centre**2
    between = float(np.mean((raw[seen] - centre) ** 2 - pooled / n[seen]))
    between = max(between, 0.05 * centre**2)
    variance = np.full(len(n), pooled)
    for _ in range(2):  # variances follow worths, and these follow them
        worth = shrink(raw, variance, n, centre, between)
        relative = np.clip(worth / centre, 0.05, 5.0)
        common = max(scatter.sum() / (freedom * relative).sum(), TINY) if freedom.any() else pooled
        variance = (scatter + OWN * common * relative) / (freedom + OWN)
    worth = shrink(raw, variance, n, centre, between)
    return Alone(n, raw, variance, centre, between, np.maximum(worth, 1e-6))


def shrink(raw: Floats, variance: Floats, n: Floats, centre: float, between: float) -> Floats:
    """Posterior means of normal means with a normal prior."""
    return (raw * n / variance + centre / between) / (n / variance + 1.0 / between)


def forecast_from(sums: Sums, single: Alone) -> tuple[Forecast, Floats]:
    """Make the forecast of what is known now, and the saturation uniformly drawn sets would show.

    Gamma is the least-squares solution of the surprises, in one Gauss-Newton step.
    """
    k = len(sums.weighted)
    highest = 0.95 / single.centre
    fitted = sums.bend[1] / sums.bend[0] if sums.bend[0] > 0.0 else 1.0
    gamma = float(np.clip(fitted, 1e-4, highest))
    left = np.maximum(1.0 - gamma * single.worth, 0.02)
    missed = mean_products(left, k).T  # (k, m): what 0..k-1 random others leave to an arm
    expected = np.ascontiguousarray((1.0 - left * missed) / gamma)
    n, total, _ = sums.surprises.T
    offset = np.where(n > 1.0, total / np.maximum(n, 1.0), 0.0)
    return Forecast(single.worth, gamma, expected, offset), 1.0 - missed.mean(axis=0)


def lines_through(sums: Sums, single: Alone, saturation: Floats) -> tuple[Floats, Floats]:
    r"""Merits and variances by the model: each arm's gain falls on a line :math:`x - d s`.

    x is its worth alone, s the saturation it meets. The line goes through the rewards of the arm
    alone (s = 0) and its gains in larger sets, with the prior :math:`d \sim N(x, (x/2)^2)`, d = x
    being the forecast's own line, and is read off at the saturation of uniformly drawn sets.
    """
    noise = (sums.surprises[:, 2].sum() + 0.25) / (sums.surprises[:, 0].sum() + 1.0)
    one, s, ss, g, sg = 1.5 * sums.lines.T / noise  # fading leaves 3/4 of n as a sum of n/2
    known = 1.0 / single.between + single.n / single.variance
    prior = 1.0 / (SPREAD * single.worth) ** 2
    right = single.n / single.variance * single.raw + single.centre / single.between + g
    xx, xd, dd = known + prior + one, -prior - s, prior + ss
    # the determinant as a sum of what is not negative: xx dd - xd^2 would cancel
    det = prior * (known + one - 2.0 * s + ss) + known * ss + np.maximum(one * ss - s**2, 0.0)
    x, d = (dd * right + xd * sg) / det, (-xx * sg - xd * right) / det
    merit = np.maximum(x - d * saturation, 0.05 * np.maximum(x, 1e-6))
    return merit, (dd + 2.0 * xd * saturation + xx * saturation**2) / det


def weighted_merits(sums: Sums, single: Alone, expected: Floats) -> tuple[Floats, Floats]:
    """Merits and variances without any model, from the weighted means of every size."""
    k, m, _ = sums.weighted.shape
    w, wz, w2, we2 = np.moveaxis(sums.weighted, 2, 0)
    seen, size = w > 0.0, np.arange(1, k + 1)[:, None]
    some = np.where(seen, w, 1.0)
    means = np.where(seen, wz / some, expected)
    scale = np.where(size < k, m / np.maximum(m - size, 1), 1.0)
    parts = scale * (means - np.where(size < k, means.mean(axis=1, keepdims=True), 0.0))
    # with few and uneven weights the largest may still be missing: hence the last factor
    variance = we2 / some**2 * (1.0 + 10.0 * w2 / some**2)
    variance[0] = single.variance / some[0]
    variance = np.where(seen, scale**2 * variance, np.inf)
    return parts.sum(axis=0) / k, variance.sum(axis=0) / k**2


def trust_in(model: Floats, free: Floats, variance: Floats) -> tuple[Floats, float]:
    """How far to go from the model's merits to the free ones, and the model's error variance.

    Empirical Bayes: the model is off by an error common to all arms, found from the differences
    beyond their noise; an arm further off than two standard errors speaks for itself as well.
    """
    unit = float(model.mean()) ** 2
    noise, apart = variance / unit, (free - model) ** 2 / unit
    there = np.isfinite(noise)
    noise, apart = np.where(there, noise, 1.0), np.where(there, apart, 0.0)
    error = ERROR**2
    for _ in range(10):
        telling = there * (error / (error + noise)) ** 2
        error = (2.0 * ERROR**2 + (telling * (apart - noise)).sum()) / (2.0 + telling.sum())
        error = float(np.clip(error, 1e-6, 1.0))
    own = error + np.maximum(apart - 4.0 * noise, 0.0)
    return there * own / (own + noise), error * unit


def conclude(sums: Sums) -> Conclusions:
    """All that follows from the sums."""
    single = alone(sums.weighted[0])
    forecast, saturation = forecast_from(sums, single)
    model, model_variance = lines_through(sums, single, saturation)
    free, free_variance = weighted_merits(sums, single, forecast.expected)
    trust, error = trust_in(model, free, free_variance)
    return Conclusions(model, model_variance, free, free_variance, trust, error, forecast)


FIELDS: Fields = {
    **{name: Field(-1e300, 1e300) for name in Sums._fields},
    **{name: Field(-1e300, 1e300) for name in ("worth", "expected", "offset")},
    "gamma": Field(1e-4, 1e300),
    "told": COUNT,
    "faded": COUNT,
    "largest": Field(1.0, 1e300),
}


class Evidence:
    """What rewards have said so far: the sums, and the forecast that they are taken in against.

    The forecast changes in :meth:`renew` alone. Rows told late are taken in against the present
    forecast, which is better than that of the plan they were drawn from.

    Attributes
    ----------
    told
        Rewards absorbed.
    faded
        How many of them there were at the last :meth:`renew`.
    largest
        Largest importance weight so far; 1 is that of a single arm.
    """

    def __init__(self, m: int, k: int) -> None:
        self.weighted, self.lines = np.zeros((k, m, 4)), np.zeros((m, 5))
        self.surprises, self.bend = np.zeros((k, 3)), np.zeros(2)
        self.told, self.faded, self.largest = 0, 0, 1.0
        self._use(Forecast.blank(m, k))
        self._found: Conclusions | None = None

    def _use(self, forecast: Forecast) -> None:
        self.worth, self.gamma, self.expected, self.offset = forecast

    @property
    def sums(self) -> Sums:
        """All that is remembered of the rewards."""
        return Sums(self.weighted, self.lines, self.surprises, self.bend)

    @property
    def forecast(self) -> Forecast:
        """What sets are expected to bring."""
        return Forecast(self.worth, self.gamma, self.expected, self.offset)

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        self._found = None
        told, largest = absorb(self.sums, self.forecast, *rows, rewards)
        self.told += told
        self.largest = max(self.largest, largest)

    def branch(self) -> "Evidence":
        """Return evidence of no rewards with the same forecast, to be merged into this one."""
        k, m, _ = self.weighted.shape
        other = Evidence(m, k)
        other._use(self.forecast)
        other.faded = self.faded
        return other

    def merge(self, other: "Evidence") -> None:
        """Add what another one absorbed against the same forecast."""
        if self.faded != other.faded or self.gamma != other.gamma:
            raise ValueError("evidence must have the same forecast to be merged; see branch")
        self._found = None
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine += theirs
        self.told += other.told
        self.largest = max(self.largest, other.largest)

    def discount(self, factor: float) -> None:
        """Let what was seen with the help of older forecasts count less."""
        self._found = None
        for array in (self.lines, self.surprises, self.bend):
            array *= factor

    def estimate(self) -> Conclusions:
        """All that follows from the sums."""
        if self._found is None:
            self._found = conclude(self.sums)
        return self._found

    def renew(self) -> Conclusions:
        """Take over the present forecast, and return what it was concluded from."""
        found = self.estimate()
        self._use(found.forecast)
        # reward i of n keeps weight i/n: early surprises are those of poor forecasts
        self.discount((1.0 + self.faded) / (1.0 + self.told))
        self.faded = self.told
        return found

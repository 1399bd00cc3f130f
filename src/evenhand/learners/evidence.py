r"""What rewards of sets of every size say about merits: sums that grow, and what follows from them.

The K-Shapley value needs the mean value :math:`v^+_{ar}` of the r-sets that hold arm a, for every
size r, and nothing else: with :math:`\bar V_r` its mean over arms,

.. math:: \phi_a = \frac1K \Bigl[ \sum_{r<K} \frac{M}{M-r} (v^+_{ar} - \bar V_r) + v^+_{aK} \Bigr],

because :math:`\bar V_r = \frac rM v^+_{ar} + (1 - \frac rM) v^-_{ar}` gives the mean over the sets
without a. Importance weights estimate :math:`v^+_{ar}` for any game whatever; a model of few
numbers (:mod:`evenhand.learners.model`) does so with less noise and some bias.
:meth:`Evidence.estimate` puts the two together.
"""

from typing import NamedTuple

import numpy as np

from evenhand.exchange import Rows
from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners import model
from evenhand.learners.discrepancy import shrink
from evenhand.learners.model import Forecast, Merits, Sums, add_set, add_sets, look, times
from evenhand.learners.noise import curve_of, own_ratios
from evenhand.learners.posterior import Information, Posterior, refine
from evenhand.typing import Columns, Floats, Ints, Shorts, Singles, compiled


class Beliefs(NamedTuple):
    """The estimator's tuned numbers, all of them: what is believed before there are rewards.

    Attributes
    ----------
    spread, spread_arms
        Standard deviation of worths over their mean, a belief worth so many arms.
    extra, extra_arms
        The same for what arms lose to saturation beyond their share, over their worth.
    curve
        Standard deviation of the curvature about 1.
    error
        Of the sum of the model's merits, relative: a belief worth two observations.
    agree
        Arms whose merits the model gets right.
    few
        Weighted means have a variance larger by this over the effective sample size: the largest
        weights may still be missing.
    kept
        Bytes per arm up to which larger sets are kept, to be looked at anew whenever the model
        changes: 800 hold 400 members where there are fewer than 32768 arms.
    hold
        Worths are held above this share of their mean where they enter products or divide.
    """

    spread: float = 1.0
    spread_arms: float = 2.0
    extra: float = 0.1
    extra_arms: float = 10.0
    curve: float = 1.0
    error: float = 0.02
    agree: float = 10.0
    few: float = 10.0
    kept: float = 800.0
    hold: float = 0.05


BELIEFS = Beliefs()
REFIT = 0.02  # the model is fitted anew when rewards have grown by this share: a matter of cost


class Hyper(NamedTuple):
    """What is common to the arms: mean worth, and relative variances of worths and extra losses."""

    centre: float
    spread: float
    extra: float


class Conclusions(NamedTuple):
    """All that follows from the sums.

    Attributes
    ----------
    merit, variance
        (m,) merits and their mean squared errors, as far as these show.
    model, model_variance
        (m,) merits by the model alone.
    free, free_variance
        (m,) merits free of it; infinite variance where an arm has not been seen at every size.
    forecast, hyper
        What the next rewards are to be compared with.
    """

    merit: Floats
    variance: Floats
    model: Floats
    model_variance: Floats
    free: Floats
    free_variance: Floats
    forecast: Forecast
    hyper: Hyper

    @property
    def trust(self) -> Floats:
        """How far merits have moved from the model's to the free ones (m,), in [0, 1]."""
        apart = self.free - self.model
        moved = self.merit - self.model
        return np.clip(np.divide(moved, apart, where=apart != 0.0, out=np.zeros_like(moved)), 0, 1)


@compiled
def absorb(
    singles: Floats,
    weighted: Floats,
    sums: Sums,
    forecast: Forecast,
    low: float,
    keep: bool,
    orders: Ints,
    sizes: Ints,
    weights: Floats,
    rewards: Floats,
) -> tuple[int, float]:
    """Add the rewards of one set per row, nan skipped.

    ``weights`` (n, k) are those of the members. Where larger sets are to be kept they are not added
    to ``sums``. Returns how many rewards there were, and the largest of their weights.
    """
    k = orders.shape[1]
    others = np.empty(k)
    told, largest = 0, 0.0
    for i in range(len(orders)):
        r, y = sizes[i, 0], rewards[i, 0]
        if np.isnan(y):
            continue
        told += 1
        if r == 1:
            cell = singles[orders[i, 0]]
            cell[0] += 1.0
            cell[1] += y
            cell[2] += y * y
            cell[3] += y * y * y
            cell[4] += y * y * y * y
            continue
        seen = look(forecast, low, orders[i], r, others)
        if not keep:
            add_set(sums, forecast, orders[i], r, others, seen, y)
        surprise = y - seen[0] + forecast.met[r - 1] * seen[1]
        for j in range(r):
            a, w = orders[i, j], weights[i, j]
            largest = max(largest, w)
            cell = weighted[r - 1, a]
            cell[0] += w
            cell[1] += w * (surprise + forecast.expected[r - 1, a])
            cell[2] += w * w
            cell[3] += w * w * seen[5]
    return told, largest


def fields(m: int, k: int) -> Fields:
    """What evidence remembers."""
    number, at_least_0 = Field(-1e300, 1e300), Field(0.0, 1e300)
    cells = ("singles", "weighted", "cells", "curve", "saturation", "scatter", "expected", "extra")
    return {
        **dict.fromkeys(cells, number),
        **dict.fromkeys(("weight", "noise", "spread", "extra_spread"), at_least_0),
        **dict.fromkeys(("worth", "reference", "own", "centre"), Field(1e-12, 1e300)),
        "met": number,
        "merit": number,
        "variance": Field(0.0),
        "gamma": Field(1e-4, 1e300),
        "orders": Field(-1, m - 1, (ANY, k), _sets),
        "rewards": Field(-1e30, 1e30, (ANY,)),
        "keeping": Field(0, 1),
        "told": COUNT,
        "due": COUNT,
        "faded": COUNT,
        "largest": Field(1.0, 1e300),
    }


def _sets(orders: Shorts) -> str | None:
    behind = orders < 0
    good = orders.shape[1] == 1 or not behind[:, :2].any()
    return None if good and not (behind[:, :-1] & ~behind[:, 1:]).any() else "must hold larger sets"


class Evidence:
    """What rewards have said so far: the sums, and the forecast that they are taken in against.

    The forecast changes in :meth:`renew` alone. Rows told late are taken in against the present
    forecast, which is better than that of the plan they were drawn from.

    Attributes
    ----------
    singles
        (m, 5) per arm, over its rewards alone: 1, y, y^2, y^3 and y^4.
    weighted
        (k, m, 4) per size and arm, with w a member's weight, z the reward corrected by the forecast
        and v its variance: w, w z, w^2 and w^2 v. Row 0 is not used.
    orders, rewards
        The larger sets that are kept, and what they brought.
    told
        Rewards absorbed.
    merit, variance
        (m,) merits at the last :meth:`renew`, and their variances.
    largest
        Largest importance weight so far; 1 is that of a single arm.
    shown
        Columns of the arms that are in the game; the others have no merit.
    """

    def __init__(self, m: int, k: int, low: float = 0.0, shown: Columns = slice(None)) -> None:
        self.m, self.k, self.low, self.shown = m, k, low, shown
        self.singles, self.weighted = np.zeros((m, 5)), np.zeros((k, m, 4))
        self.told, self.due, self.faded, self.largest = 0, 0, 0, 1.0
        short = np.int16 if m < 2**15 else np.int32
        self.orders, self.rewards = np.zeros((0, k), short), np.zeros(0, np.float32)
        self.keeping = 1  # 0 once enough larger sets were kept
        self.merit, self.variance = np.full(m, 0.5), np.full(m, np.inf)
        self._add(Sums.blank(m, k))
        self._use(Forecast.blank(m, k), Hyper(0.5, BELIEFS.spread**2, BELIEFS.extra**2))
        self._found: Conclusions | None = None

    def _add(self, sums: Sums) -> None:
        self.cells, self.curve, self.saturation, self.scatter, self.weight = sums

    def _use(self, forecast: Forecast, hyper: Hyper) -> None:
        self.worth, self.extra, self.gamma, self.noise, self.own = forecast[:5]
        self.reference, self.expected, self.met = forecast[5:]
        self.centre, self.spread, self.extra_spread = hyper

    @property
    def sums(self) -> Sums:
        """What larger sets say about the model, those that are kept excepted."""
        return Sums(self.cells, self.curve, self.saturation, self.scatter, self.weight)

    @property
    def forecast(self) -> Forecast:
        """What sets are expected to bring."""
        own = self.worth, self.extra, self.gamma, self.noise, self.own
        return Forecast(*own, self.reference, self.expected, self.met)

    @property
    def seen(self) -> Floats:
        """(k, m) sum of weights by size and arm."""
        counts = self.weighted[:, :, 0].copy()
        counts[0] = self.singles[:, 0]
        return counts

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        self._found = None
        against = self.sums, self.forecast, self.low, self.keeping == 1
        told, largest = absorb(self.singles, self.weighted, *against, *rows, rewards)
        self.told += told
        self.largest = max(self.largest, largest)
        if self.keeping:
            large = (rows.sizes[:, 0] > 1) & ~np.isnan(rewards[:, 0])
            self._keep(rows.orders[large], rewards[large, 0])

    def _keep(self, orders: Ints | Shorts, rewards: Floats | Singles) -> None:
        """Keep larger sets; when there are enough, add all of them against the forecast."""
        self.orders = np.concatenate([self.orders, orders.astype(self.orders.dtype)])
        self.rewards = np.concatenate([self.rewards, rewards.astype(np.float32)])
        if self.orders.nbytes > BELIEFS.kept * self.m:
            self._add(self._linearised(self.forecast)[0])
            self.orders, self.rewards = self.orders[:0], self.rewards[:0]
            self.keeping = 0

    def _linearised(self, forecast: Forecast) -> tuple[Sums, Floats]:
        """Sums of the kept sets against a forecast, and what their products need."""
        sums = Sums.blank(self.m, self.k)
        kept = np.empty((len(self.orders), self.k + 2))
        add_sets(sums, forecast, self.low, self.orders, self.rewards, kept)
        return sums, kept

    def branch(self) -> "Evidence":
        """Return evidence of no rewards with the same forecast, to be merged into this one."""
        other = Evidence(self.m, self.k, self.low, self.shown)
        other._use(self.forecast, Hyper(self.centre, self.spread, self.extra_spread))
        other.faded, other.keeping, other.due = self.faded, self.keeping, self.due
        return other

    def merge(self, other: "Evidence") -> None:
        """Add what another one absorbed against the same forecast."""
        if self.faded != other.faded or self.gamma != other.gamma:
            raise ValueError("evidence must have the same forecast to be merged; see branch")
        self._found = None
        if self.keeping and not other.keeping:  # that one had too many, so there are too many here
            self._add(self._linearised(self.forecast)[0])
            self.orders, self.rewards, self.keeping = self.orders[:0], self.rewards[:0], 0
        mine = (self.singles, self.weighted, *self.sums)
        for array, more in zip(mine, (other.singles, other.weighted, *other.sums), strict=True):
            array += more
        self.told += other.told
        self.largest = max(self.largest, other.largest)
        if self.keeping:
            self._keep(other.orders, other.rewards)
        elif len(other.orders):
            for array, more in zip(self.sums, other._linearised(self.forecast)[0], strict=True):
                array += more

    def estimate(self) -> Conclusions:
        """All that follows from the sums."""
        if self._found is None:
            self._found = self._conclude()
        return self._found

    @property
    def upcoming(self) -> tuple[Floats, Floats]:
        """What :meth:`renew` would return now."""
        found = self if self.told < self.due else self.estimate()
        return found.merit, found.variance

    def renew(self) -> tuple[Floats, Floats]:
        """Take over the present forecast if there are enough new rewards.

        Returns the merits and their variances that go with it.
        """
        if self.told < self.due or not self.told:
            return self.merit, self.variance
        found = self.estimate()
        if not self.keeping:
            self._move(found.forecast)
        self._use(found.forecast, found.hyper)
        if not self.keeping:
            # set i of n keeps weight i/n: early surprises are those of poor forecasts
            factor = (1.0 + self.faded) / (1.0 + self.told)
            for array in self.sums[:-1]:
                array *= factor
            self.weight *= np.array([factor, factor**2])
        self.merit, self.variance = found.merit, found.variance
        self.faded, self.due = self.told, self.told + max(1, int(REFIT * self.told))
        return self.merit, self.variance

    def _move(self, forecast: Forecast) -> None:
        """Make surprises over the old forecast into those over a new one."""
        bend = np.array([forecast.gamma - self.gamma])
        step = np.concatenate([forecast.worth - self.worth, forecast.extra - self.extra, bend])
        information = Information(self.sums, self.reference)
        change = information.times(step) / information.up
        self.cells[:, 3] -= change[: self.m]
        self.cells[:, 4] -= change[self.m : -1]
        self.curve[1] -= change[-1]

    def _conclude(self) -> Conclusions:
        forecast, hyper = self.forecast, Hyper(self.centre, self.spread, self.extra_spread)
        if not self.told:
            half, never = np.full(self.m, 0.5), np.full(self.m, np.inf)
            return Conclusions(half, never, half, never, half, never, forecast, hyper)
        sums, kept = self.sums, np.empty((0, self.k + 2))
        for _ in range(2 if self.keeping else 1):  # kept sets can be looked at twice
            if self.keeping:
                sums, kept = self._linearised(forecast)
            found, posterior, forecast, hyper = self._fit(sums, kept, forecast, hyper)
        met = sums.saturation[:, 1] / np.maximum(sums.saturation[:, 0], 1.0)
        expected, merits = self._expect(forecast, met, found)
        forecast = forecast._replace(expected=expected, met=met)
        return self._weigh(forecast, hyper, merits, posterior)

    def _expect(self, forecast: Forecast, met: Floats, found: Floats) -> tuple[Floats, Merits]:
        """Expectations (k, m) over sets of arms shown, and the model's merits of these."""
        shown, expected = self.shown, self.expected.copy()
        some = forecast.worth[shown], forecast.extra[shown], forecast.gamma, met, found[shown]
        expected[:, shown], merits = model.expectations(*some)
        return expected, merits

    def show(self, shown: Columns) -> None:
        """Go on with the game among these arms.

        What arms bring and lose to saturation stays what it is; weighted means move by what is
        forecast of sets of the new arms, less that of sets of the old ones.
        """
        both = np.intersect1d(np.arange(self.m)[shown], np.arange(self.m)[self.shown])
        before = self._expect(self.forecast, self.met, self.worth)[0]
        self.shown, self._found = shown, None
        if self.told:
            self.expected = self._expect(self.forecast, self.met, self.worth)[0]
            moved = (self.expected - before)[:, both]
            self.weighted[:, both, 1] += self.weighted[:, both, 0] * moved
            self.due = self.told  # merits of the game as it was are no longer of use

    def _fit(
        self, sums: Sums, kept: Floats, forecast: Forecast, hyper: Hyper
    ) -> tuple[Floats, Posterior, Forecast, Hyper]:
        """Go one step from a forecast to the next: noise, posterior, hyperparameters.

        Returns the worths as found, the posterior, and both.
        """
        m, (n, y, yy, yyy, yyyy) = self.m, self.singles.T
        x, extra, gamma = forecast.worth, forecast.extra, forecast.gamma
        q = _spread(x, self.low)
        squares = np.maximum(yy - 2.0 * x * y + n * x**2, 0.0)
        fourths = yyyy - 4.0 * x * yyy + 6.0 * x**2 * yy - 4.0 * x**3 * y + n * x**4
        common = 1.0 / (forecast.noise[0] + forecast.noise[1] * q)
        terms = (n, n * q, n * q * q, squares, q * squares)
        noise = curve_of(sums.scatter + np.array([(term * common).sum() for term in terms]))
        variance = noise[0] + noise[1] * q
        own = own_ratios(n, squares, np.maximum(fourths, 0.0), variance, noise)
        # a prior worth so many rewards of the arm's own noise: for single arms the mean of a
        # conjugate prior, which after n rewards of 0 falls like 1/n and not below 0
        centre = hyper.centre
        tau = hyper.spread * centre**2
        rewards = float(variance.mean()) / tau
        held = np.maximum(x, BELIEFS.hold * centre)
        prior = np.empty(2 * m + 1)
        prior[:m] = (rewards + n / own) / variance
        prior[m:-1] = 1.0 / (hyper.extra * held**2)
        prior[-1] = 1.0 / BELIEFS.curve**2
        information = Information(sums, forecast.reference)
        right = information.score.copy()
        right[:m] += (rewards * (centre - x) + (y - n * x) / own) / variance
        right[m:-1] -= prior[m:-1] * extra
        right[-1] += prior[-1] * (1.0 - gamma)
        posterior = Posterior(information, prior)

        def exact(vector: Floats) -> Floats:
            result = prior * vector
            times(self.orders, kept, vector, result)
            return result

        step = refine(posterior, exact, right) if len(kept) else posterior.solve(right)
        found, extra = x + step[:m], extra + step[m:-1]
        variances = posterior.variances()
        # one reward of 1 may always be the next: a centre without it would fall to 0 on its own
        centre = max(float(found.mean()), 1.0 / (self.told + 2.0))
        free = float(np.clip(1.0 - variances[:m] / tau, 0.0, 1.0).sum())
        spread = float(((found - centre) ** 2).sum()) / centre**2
        spread = _mean_of(spread, free, BELIEFS.spread, BELIEFS.spread_arms)
        free = float(np.clip(m - (prior[m:-1] * variances[m:-1]).sum(), 0.0, m))
        loss = m * float((extra**2).sum() / (held**2).sum())
        loss = _mean_of(loss, free, BELIEFS.extra, BELIEFS.extra_arms)
        worth = np.maximum(np.minimum(found, self.low + 1.0), BELIEFS.hold * centre)
        gamma = float(np.clip(gamma + step[-1], 1e-4, 0.95 / centre))
        reference = worth if self.keeping else forecast.reference
        forecast = forecast._replace(
            worth=worth, extra=extra, gamma=gamma, noise=noise, own=own, reference=reference
        )
        return found, posterior, forecast, Hyper(centre, spread, loss)

    def _weigh(
        self, forecast: Forecast, hyper: Hyper, merits: Merits, posterior: Posterior
    ) -> Conclusions:
        """Put the model's merits and the free ones together."""
        free, free_variance, level, level_variance = self._free(forecast)
        variance, shared = posterior.of_merits(merits, self.shown)
        by_model = merits.value
        if np.isfinite(level_variance):
            # full sets give the sum of all merits for any game
            total = float(by_model.sum())
            gap, unit = level - total, total**2
            beyond = max(gap**2 - level_variance - shared.sum(), 0.0) / unit
            error = (2.0 * BELIEFS.error**2 + beyond) / 3.0
            parts = np.maximum(by_model, 0.0)
            shared = shared + error * unit * parts / max(parts.sum(), 1e-12)
            by_model = by_model + shared / (shared.sum() + level_variance) * gap
        merit, total_variance = by_model.copy(), variance.copy()
        known = np.isfinite(free_variance)
        if known.any():
            apart = (free - by_model)[known]
            moved, more = shrink(apart, free_variance[known], BELIEFS.agree)
            merit[known] += moved
            total_variance[known] += more
        total_variance = np.maximum(total_variance, 0.0)
        return Conclusions(
            self._all(merit, 0.0),
            self._all(total_variance, np.inf),
            self._all(by_model, 0.0),
            self._all(variance, np.inf),
            self._all(free, 0.0),
            self._all(free_variance, np.inf),
            forecast,
            hyper,
        )

    def _all(self, found: Floats, other: float) -> Floats:
        """What was found of arms shown, with the same number for all others (m,)."""
        result = np.full(self.m, other)
        result[self.shown] = found
        return result

    def _free(self, forecast: Forecast) -> tuple[Floats, Floats, float, float]:
        """Merits and variances without any model, and those of the sum of all merits."""
        shown, k = self.shown, self.k
        w, wz, w2, w2v = np.moveaxis(self.weighted[:, shown], 2, 0)
        seen, size, m = self.seen[:, shown] > 0.0, np.arange(1, k + 1)[:, None], w.shape[1]
        some = np.where(w > 0.0, w, 1.0)
        means = np.where(seen, wz / some, forecast.expected[:, shown])
        variance = w2v / some**2 * (1.0 + BELIEFS.few * w2 / some**2)
        singles, worth = self.singles[shown], forecast.worth[shown]
        n = np.maximum(singles[:, 0], 1.0)
        means[0] = np.where(seen[0], singles[:, 1] / n, worth)
        noise = forecast.noise[0] + forecast.noise[1] * _spread(worth, self.low)
        variance[0] = forecast.own[shown] * noise / n
        variance = np.where(seen, variance, np.inf)
        level, level_variance = means[-1].mean() * m / k, variance[-1].sum() / k
        scale = np.where(size < k, m / np.maximum(m - size, 1), 1.0)
        parts = scale * (means - np.where(size < k, means.mean(axis=1, keepdims=True), 0.0))
        free = parts.sum(axis=0) / k, (scale**2 * variance).sum(axis=0) / k**2
        return *free, float(level), float(level_variance)


def _spread(mean: Floats, low: float) -> Floats:
    """:func:`evenhand.learners.model.spread` of many means."""
    held = np.clip(mean - low, model.EDGE, 1.0 - model.EDGE)
    return held * (1.0 - held)


def _mean_of(total: float, free: float, believed: float, arms: float) -> float:
    """Mean square of ``free`` arms' worth of squares, and of a belief worth some more."""
    return (total + arms * believed**2) / (free + arms)


def warm() -> None:
    """Take in a larger set, so that all kernels are compiled."""
    some = Evidence(4, 2)
    rows = Rows(np.array([[0, 1], [2, -1]]), np.array([[2], [1]]), np.ones((2, 2)))
    some.absorb(rows, np.full((2, 1), 0.5))
    some.renew()

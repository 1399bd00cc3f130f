r"""A band that holds the merits of any game, however they were drawn and whatever was forecast.

A query of size r that drew the set S under a plan of forecast b has, a share :math:`\delta_r` of
the r-sets being uniform,

.. math:: u = \frac{\omega}{s_r \binom Mr P(S)} \le \frac{\omega}{\delta_r s_r},
    \qquad e = y - b(S) \in [-1, 1],

and with :math:`\xi_a = \frac{M^2}{r(M-r)} (1\{a \in S\} - \frac rM)` for r < K and
:math:`\frac MK 1\{a \in S\}` for r = K, the terms :math:`Y_a = \frac1K u e \xi_a` have mean
:math:`\omega (\phi_a - \phi_a(b))`. The plan's weight :math:`\omega`
(:func:`evenhand.theory.band_weight`) is in inverse proportion to what their squares may be on
average, as long as they are bounded by one number R for ever. Their sums, divided by that of
:math:`\omega`, are the band's centre; the sums of their squares give its width. The documentation's
page on the theorem has the proofs, and what follows for the regret.

Weight, marginals and forecast are those of the plan that a row was drawn from, so that rows told
late keep their mean.
"""

import math
from typing import NamedTuple

import numpy as np

from evenhand.checks import ROWS
from evenhand.exchange import Rows, SetPlan
from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.exchange.plan import by_size
from evenhand.products import product
from evenhand.subsets.combinations import mean_products
from evenhand.theory import band_weight, largest_term
from evenhand.typing import Floats, Ints, compiled

ALPHA = 0.05  # chance that the band ever misses a merit: the usual one, it enters by its logarithm
BAND = 0.25  # share of its width that merits may be off its centre. The bound grows with 1 + c, so
# small; at 1/4 good merits still have room: on synthetic it never binds, on coverage and additive
# at one policy in twenty to thirty-five
LEAST = 0.02  # of what others leave, the least that an arm leaves over: as in the evidence
FLAT = 1e-6  # smallest curvature at which the closed form does not cancel
SCALE = 0.5 ** np.arange(1, 41)  # lambda: widths are good for sums of squares up to R^2 2^80
SLOPE = np.array([sum(x ** (n - 1) / n for n in range(2, 60)) for x in SCALE])  # psi(x) / x
BLOCK = 2**14  # arms whose widths are found at a time
PRICE = np.log(np.arange(1, 41) * np.arange(2.0, 42))  # each is chosen with chance 1/(i (i + 1))


class Terms(NamedTuple):
    """What a plan's rows are taken in with.

    Attributes
    ----------
    worth, gamma, scale
        The forecast of a set of r: ``scale[r - 1]`` times that of worths (m,) and curvature.
    merit
        (m,) K-Shapley value of the forecast.
    weight
        What a row counts.
    unit
        (k,) per size: u is a member's weight times this, over what sets of the size give it.
    above, leaning
        (m,) what the plan gives each arm above an even share, and (k,) how far sets of each size
        lean that way.
    """

    worth: Floats
    gamma: float
    scale: Floats
    merit: Floats
    weight: float
    unit: Floats
    above: Floats
    leaning: Floats


def scaled_forecast(
    worth: Floats, gamma: float, k: int, low: float
) -> tuple[Floats, float, Floats, Floats]:
    """Bring a forecast into [low, low + 1] by a factor per size; return it with its merits.

    A factor per size leaves the merits a closed form. An arm of worth x leaves ``1 - gamma x`` to
    the others; over all r-sets the forecast is largest for the r smallest of these, and smallest
    for the r largest.
    """
    m, gamma = len(worth), max(gamma, FLAT)
    held = np.minimum(np.maximum(worth, low), min(low + 1.0, (1.0 - LEAST) / gamma))
    left = 1.0 - gamma * held
    ordered = np.sort(left)
    top = (1.0 - ordered[:k].cumprod()) / gamma
    bottom = (1.0 - ordered[: -k - 1 : -1].cumprod()) / gamma
    scale, above, below = np.ones(k), top > low + 1.0, bottom < low
    scale[above] = (low + 1.0) / top[above]
    scale[below] = np.minimum(scale[below], low / bottom[below])
    with_arm = (1.0 - left[:, None] * mean_products(left, k)) / gamma
    mean, share = with_arm.mean(axis=0), scale / k
    share[:-1] *= m / (m - np.arange(1.0, k))
    merit = product(with_arm, share) - float(mean[:-1] @ share[:-1])
    return held, gamma, scale, merit


@compiled
def absorb(
    sums: Floats, terms: Terms, orders: Ints, sizes: Ints, weights: Floats, rewards: Floats
) -> int:
    """Add u e and its square to the cells (k, m, 2) of the members, nan skipped; count the rest.

    By size: else the processor guesses where sets end, and half of the time wrong. A block of rows
    at a time, which stay in the cache while they are gone through once per size.
    """
    worth, gamma, scale, _, _, unit, above, leaning = terms
    (n, k), count = orders.shape, 0
    even = k / len(above)
    for start in range(0, n, ROWS):
        places, ends = by_size(sizes[start : start + ROWS], k)
        for r in range(1, k + 1):
            cells, factor, share, lean = sums[r - 1], unit[r - 1], scale[r - 1], leaning[r - 1]
            for place in places[ends[r - 1] : ends[r]]:
                i = np.uintp(start + place)
                reward = rewards[i, 0]
                if np.isnan(reward):
                    continue
                count += 1
                value = 0.0
                for j in range(r):
                    value += worth[np.uintp(orders[i, j])] * (1.0 - gamma * value)
                product = weights[i, 0] * factor * (reward - share * value)
                product /= even + lean * above[np.uintp(orders[i, 0])]
                for j in range(r):
                    cell = cells[np.uintp(orders[i, j])]
                    cell[0] += product
                    cell[1] += product * product
    return count


def totals(sums: Floats) -> tuple[Floats, Floats]:
    """Sum of the terms Y (m,), and of their squares, from the sums over sets with an arm."""
    k, m, _ = sums.shape
    size = np.arange(1.0, k + 1.0)
    factor, outside = np.full(k, m / k**2), -size / m
    factor[:-1] = m / (size * (m - size))[:-1] * m / k
    outside[-1] = 0.0
    every = sums.sum(axis=1) / size[:, None]  # each set of r stands in r cells
    # terms of sets with an arm are larger by 1 than those of the others
    first = product(factor, sums[:, :, 0]) + (factor * outside) @ every[:, 0]
    inside, square = factor**2 * (1.0 + outside) ** 2, factor**2 * outside**2
    without = np.maximum(every[:, 1:] - sums[:, :, 1], 0.0)
    return first, product(inside, sums[:, :, 1]) + product(square, without)


def deviation(squares: Floats, reach: float, log: float) -> Floats:
    """How far sums of terms up to ``reach`` may be off: see :meth:`Band.radius`."""
    least, prices = np.empty_like(squares), reach * (log + PRICE) / SCALE
    for start in range(0, len(squares), BLOCK):
        lines = np.multiply.outer(SLOPE / reach, squares[start : start + BLOCK])
        lines += prices[:, None]
        least[start : start + BLOCK] = lines.min(axis=0)
    return least


FIELDS: Fields = {
    "sums": Field(-1e300, 1e300),
    "before": Field(-1e300, 1e300),
    "merit": Field(-1e300, 1e300),
    "share": Field(0.0, 1e300),
    "last": Field(-1, 2**62),
    "mass": Field(0.0, 1e300),
    "count": COUNT,
    "since": COUNT,
}


class Band:
    r"""Where the merits must be, whatever the game: sums of rewards as they were asked.

    Parameters
    ----------
    m, k
        Arms and budget.
    sizes
        (k,) shares of queries of each size.
    low
        Rewards lie in [low, low + 1], and the empty set's is 0.

    Attributes
    ----------
    sums
        (k, m, 2) per size and arm, over the sets that hold it: u e and its square.
    mass
        Sum of the weights :math:`\omega`.
    last, merit, share
        Number of the plan whose rows came last, merits (m,) of its forecast, and its part of the
        mass.
    before
        (m,) sum of :math:`\omega` times the merits of the forecast, over the rows before these: to
        add to it takes as long as there are arms, and so is done once for all rows of a plan.
    count
        Rewards absorbed.
    since
        Number of the first plan whose rows count: those before were drawn from another game.
    """

    def __init__(self, m: int, k: int, sizes: Floats, low: float = 0.0, since: int = 0) -> None:
        self.m, self.k, self.sizes, self.low, self.since = m, k, sizes, low, since
        self.sums = np.full((k, m, 2), 0.0)  # fetched now, as in Evidence
        self.mass, self.count = 0.0, 0
        self.last, self.merit, self.share, self.before = -1, np.zeros(m), 0.0, np.zeros(m)
        self.reach = largest_term(m, sizes)
        self._terms: tuple[SetPlan, Terms] | None = None  # of the plan absorbed last

    @property
    def base(self) -> Floats:
        r"""Sum of :math:`\omega` times the merits of the forecast (m,), over all rows."""
        return self.before + self.share * self.merit

    def absorb(self, plan: SetPlan, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of a plan, skipping nan."""
        if plan.number < self.since:
            return
        if self._terms is None or self._terms[0] is not plan:
            self._terms = plan, self._terms_of(plan)
        terms = self._terms[1]
        told = absorb(self.sums, terms, rows.orders, rows.sizes.reshape(-1), rows.weights, rewards)
        if told and plan.number != self.last:
            self.before = self.base
            self.last, self.merit, self.share = plan.number, terms.merit, 0.0
        self.share += terms.weight * told
        self.mass += terms.weight * told
        self.count += told

    def _terms_of(self, plan: SetPlan) -> Terms:
        old = self._terms
        if old and old[0].gamma == plan.gamma and np.array_equal(old[0].worth, plan.worth):
            forecast = old[1][:4]  # plans between two fits of the model have the same one
        else:
            worth = plan.worth.astype(np.float64) if len(plan.worth) else np.zeros(self.m)
            forecast = scaled_forecast(worth, plan.gamma, self.k, self.low)
        # w = p / (P C(M-1, r-1)) with p = r/K of what r-sets give, g: 1 / (P C(M, r)) = w K / (M g)
        weight = band_weight(self.m, plan.sizes, plan.uniform)
        unit = weight * self.k / (self.m * plan.sizes)
        return Terms(*forecast, weight, unit, plan.marginals - self.k / self.m, plan.leaning)

    def branch(self) -> "Band":
        """Return a band of no rewards, to be merged into this one."""
        return Band(self.m, self.k, self.sizes, self.low, self.since)

    def merge(self, other: "Band") -> None:
        """Add what another one absorbed."""
        self.sums += other.sums
        self.before += other.base
        self.mass += other.mass
        self.count += other.count

    def radius(self, log: float) -> tuple[Floats, Floats]:
        r"""Return centre and half-width (m,) of intervals, each missing with chance <= 2 exp(-log).

        With :math:`\hat V` the sum of the squares of an arm's terms, the half-width is

        .. math:: \frac1Q \min_{i \ge 1} \Bigl[ 2^i \psi(2^{-i}) \frac{\hat V}R
            + 2^i R (\ell + \log i(i+1)) \Bigr], \qquad \psi(\lambda) = -\log(1-\lambda) - \lambda.

        For a fixed :math:`\ell` it holds at all times together.
        """
        if self.mass == 0.0:
            return np.zeros(self.m), np.full(self.m, np.inf)
        total, squares = totals(self.sums)
        width = deviation(squares, self.reach, log)
        return (self.base + total) / self.mass, width / self.mass

    def interval(self, alpha: float = ALPHA) -> tuple[Floats, Floats]:
        """Return centre and half-width (m,) of the band.

        From t rewards on, the chance that it ever misses the merit of any arm is at most
        alpha / (1 + t).
        """
        return self.radius(math.log(2 * self.m * (1 + self.count) / alpha))

    def hold(self, merit: Floats) -> Floats:
        """Bring merits (m,) to within a quarter of the width from the centre."""
        centre, width = self.interval()
        return np.clip(merit, centre - BAND * width, centre + BAND * width)

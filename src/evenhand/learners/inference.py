"""Merits by a model and merits without one, from the sums of the evidence, put together.

:func:`fit` takes one step towards the posterior of the model's parameters; :func:`weigh` puts
merits by the model and those of :mod:`evenhand.learners.free` together.
"""

import math
from typing import NamedTuple

import numpy as np

from evenhand.learners import model
from evenhand.learners.discrepancy import shrink
from evenhand.learners.free import Free
from evenhand.learners.model import Forecast, Kept, Merits, Sums, binary_variance
from evenhand.learners.noise import all_at_the_ends, both_ends, curve_of, louder, own_ratios
from evenhand.learners.posterior import NOTHING, Information, Posterior, refine
from evenhand.learners.slopes import Slopes
from evenhand.typing import Floats, compiled

LIGHTER = 2.0 ** np.arange(6.0)  # tails that are tried: times the fewest degrees of freedom
ROUNDS, TURNS = 3, 5  # until tails, and where most arms are, stand still


class Beliefs(NamedTuple):
    """The estimator's tuned numbers, all of them: what is believed before there are rewards.

    Attributes
    ----------
    spread, spread_arms
        Scale of worths over their mean, a belief worth so many arms.
    tails
        Fewest degrees of freedom of Student's t that worths come from, as a few arms may bring far
        more than all others: 5 has the kurtosis of exponential ones. Worths say how many more.
    extra, extra_arms
        The same for what arms lose to saturation beyond their share, over their worth.
    curve
        Standard deviation of the curvature about 1; and, at most, of how much arms differ in single
        ones beside what the model says (:mod:`evenhand.learners.slopes`).
    error
        Of the sum of the model's merits, relative: a belief worth two observations.
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
    tails: float = 5.0
    extra: float = 0.1
    extra_arms: float = 10.0
    curve: float = 1.0
    error: float = 0.02
    few: float = 10.0
    kept: float = 800.0
    hold: float = 0.05


BELIEFS = Beliefs()


class Hyper(NamedTuple):
    """Common to arms: mean worth, and relative squares of the scales of worths and extra losses."""

    centre: float
    spread: float
    extra: float

    @classmethod
    def blank(cls) -> "Hyper":
        """As believed before there are rewards."""
        return cls(0.5, BELIEFS.spread**2, BELIEFS.extra**2)


class Conclusions(NamedTuple):
    """All that follows from the sums.

    Attributes
    ----------
    merit, variance
        (m,) merits and their mean squared errors, as far as these show.
    model, model_variance
        (m,) merits by the model, with slopes and the sum of all that full sets give.
    free, free_variance
        (m,) merits free of it; infinite variance where an arm has not been seen at every size.
    smooth
        (m,) these with gains smoothed over sizes, which the model's are compared with.
    forecast, hyper
        What the next rewards are to be compared with.
    """

    merit: Floats
    variance: Floats
    model: Floats
    model_variance: Floats
    free: Floats
    free_variance: Floats
    smooth: Floats
    forecast: Forecast
    hyper: Hyper

    @property
    def trust(self) -> Floats:
        """How far merits have moved from the model's to the free ones (m,), in [0, 1]."""
        apart = self.smooth - self.model
        moved = self.merit - self.model
        part = np.divide(moved, apart, where=apart != 0.0, out=np.zeros_like(moved))
        return np.clip(part, 0.0, 1.0) + 0.0  # no minus before a 0


class Fit(NamedTuple):
    """One step: the worths as found, before they are held above 0, and all that follows.

    Last, the saturation met in all larger sets, as in :class:`Sums`.
    """

    found: Floats
    posterior: Posterior
    forecast: Forecast
    hyper: Hyper
    saturation: Floats


def fit(
    told: int,
    singles: Floats,
    company: Floats,
    sums: Sums,
    kept: Kept,
    later: Sums,
    forecast: Forecast,
    hyper: Hyper,
    low: float,
) -> Fit:
    """Go one step from a forecast to the next: noise, posterior, hyperparameters.

    ``told`` is the number of rewards, ``company`` (m,) how many were of larger sets with each arm;
    ``sums`` are those of the kept sets, ``later`` those of sets that were not kept. What kept sets
    have to say is solved exactly.
    """
    some_later = later.weight[0] > 0.0
    rest = Information(later, forecast.reference).matrix if some_later else NOTHING
    sums = sums.join(later) if some_later else sums
    m, (n, y, yy, yyy, yyyy) = len(singles), singles.T
    x, extra, gamma = forecast.worth, forecast.extra, forecast.gamma
    q = binary_variance(x, low)
    squares = np.maximum(yy - 2.0 * x * y + n * x**2, 0.0)
    fourths = yyyy - 4.0 * x * yyy + 6.0 * x**2 * yy - 4.0 * x**3 * y + n * x**4
    common = 1.0 / (forecast.noise[0] + forecast.noise[1] * q)
    terms = (n, n * q, n * q * q, squares, q * squares)
    scatter = sums.scatter + np.array([(term * common).sum() for term in terms])
    noise = curve_of(scatter, binary=all_at_the_ends(singles, low))
    variance = noise[0] + noise[1] * q
    own, more = np.ones(m), 1.0
    if not both_ends(singles, low):  # else the mean of 0s and 1s says how they scatter
        own = own_ratios(n, squares, np.maximum(fourths, 0.0), variance, noise)
        more = louder(own, company * x, noise, sums.scatter)
    # a prior worth so many rewards of the arm's own noise: for single arms the mean of a
    # conjugate prior, which after n rewards of 0 falls like 1/n and not below 0
    centre = hyper.centre
    typical, weights = weigh_tails(x, centre, hyper.spread * centre**2)
    tau = hyper.spread * centre**2 / weights
    rewards = float(variance.sum()) / m / tau
    held = np.maximum(x, BELIEFS.hold * centre)
    prior = np.empty(2 * m + 1)
    prior[:m] = (rewards + n / own) / variance
    prior[m:-1] = 1.0 / (hyper.extra * held**2)
    prior[-1] = 1.0 / BELIEFS.curve**2
    information = Information(sums, forecast.reference)
    right = information.score
    right[:m] += (rewards * (typical - x) + (y - n * x) / own) / variance
    right[m:-1] -= prior[m:-1] * extra
    right[-1] += prior[-1] * (1.0 - gamma)
    posterior = Posterior(information, prior)
    steep = noise[1] * (1.0 - 2.0 * np.clip(x - low, model.EDGE, 1.0 - model.EDGE)) / variance
    right[-1] += _room(posterior, kept.sinking, prior, forecast, steep, held)

    # of all sets together the kept ones are soon a small part, and less is left to refine; where
    # they are all there is, after eight turns some digits still hung on the order of the rewards
    turns = 1 if some_later else 12
    step = refine(posterior.matrix, rest, prior, kept.orders, kept.looks, right, turns)
    found, extra = x + step[:m], extra + step[m:-1]
    variances = posterior.variances
    # one reward of 1 may always be the next: a centre without it would fall to 0 on its own
    centre = max(float(np.minimum(found, low + 1.0).sum()) / m, 1.0 / (told + 2.0))
    free = float(np.clip(1.0 - variances[0] / tau, 0.0, 1.0).sum())
    typical, weights = weigh_tails(found, centre, hyper.spread * centre**2)
    spread = float((weights * (found - typical) ** 2).sum()) / centre**2
    spread = _mean_of(spread, free, BELIEFS.spread, BELIEFS.spread_arms)
    share = m * held**2 / float((held**2).sum())
    free = float((share * np.clip(1.0 - prior[m:-1] * variances[2], 0.0, 1.0)).sum())
    loss = float((share * (extra / held) ** 2).sum())
    loss = _mean_of(loss, free, BELIEFS.extra, BELIEFS.extra_arms)
    worth = np.maximum(np.minimum(found, low + 1.0), BELIEFS.hold * centre)
    gamma = min(max(gamma + float(step[-1]), 1e-4), _steepest(worth, variances[0], centre))
    noise = np.append(noise, more)
    forecast = forecast._replace(worth=worth, extra=extra, gamma=gamma, noise=noise, own=own)
    return Fit(found, posterior, forecast, Hyper(centre, spread, loss), sums.saturation)


def weigh_tails(worth: Floats, start: float, square: float) -> tuple[float, Floats]:
    """Where most arms are, and how much each counts (m,), less if far from there: Student's t.

    Else one arm that brings far more than all others would leave next to nothing known of these.
    How heavy the tails are the worths themselves say: degrees of freedom from ``tails`` to 32 times
    as many, by how likely each makes them. ``square`` is the squared scale; the search starts at
    ``start``. Where most arms do harm, most are at 0: worths are held above it.
    """
    degrees = np.multiply(BELIEFS.tails, LIGHTER)
    weights = np.empty(len(worth))
    return settle(worth, start, square, degrees, np.empty(len(degrees)), weights), weights


@compiled
def settle(
    worth: Floats, start: float, square: float, degrees: Floats, chance: Floats, weights: Floats
) -> float:
    """Find where most arms are, with chances of the degrees of freedom and weights of the arms."""
    centre, m = start, len(worth)
    for _ in range(ROUNDS):
        best = -np.inf
        for i in range(len(degrees)):
            nu = degrees[i]
            each = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu)
            chance[i] = m * each
            for a in range(m):
                far = (worth[a] - centre) ** 2 / square
                chance[i] -= 0.5 * (nu + 1.0) * math.log1p(far / nu)
            best = max(best, chance[i])
        every = 0.0
        for i in range(len(degrees)):
            chance[i] = math.exp(chance[i] - best)
            every += chance[i]
        for i in range(len(degrees)):
            chance[i] /= every
        for _ in range(TURNS):
            for a in range(m):
                weights[a] = 0.0
            for i in range(len(degrees)):
                most, nu = chance[i] * (degrees[i] + 1.0), degrees[i]
                for a in range(m):
                    weights[a] += most / (nu + (worth[a] - centre) ** 2 / square)
            total = weighted = 0.0
            for a in range(m):
                weight = weights[a]
                total += weight
                weighted += weight * worth[a]
            centre = max(weighted / total, 0.0)
    return centre


def _steepest(worth: Floats, variance: Floats, centre: float) -> float:
    """Largest curvature: no arm leaves less than nothing to the others, as far as it is known.

    What the worthiest is surely worth counts: two standard errors less than found.
    """
    sure = float((worth - 2.0 * np.sqrt(np.maximum(variance, 0.0))).max())
    return 0.95 / max(centre, sure)


def _room(
    posterior: Posterior,
    sinking: Floats,
    prior: Floats,
    forecast: Forecast,
    steep: Floats,
    held: Floats,
) -> float:
    """How the room that data leave to the arms grows with the curvature.

    A curvature is as likely as all values of x and eta with it are together, not as the best of
    them: to the score of these comes the slope of -1/2 log det of the precision, along the ridge
    on which x and eta follow the curvature, with x in the scale in which its prior is the
    conjugate one, and eta over x. Of the posterior the arms' own blocks are taken: equation (10).
    """
    m = len(held)
    x, gamma = forecast.worth, forecast.gamma
    ridge, (xx, xe, ee) = posterior.given_curve()
    ridge = ridge[:m]
    crowd = sinking[:, 0] / np.maximum(1.0 - gamma * x, model.LEAST)
    growth = 1.0 + gamma * float((crowd * ridge).sum()) / max(float((crowd * x).sum()), 1e-300)
    sunk = ((xx + 2.0 * xe + ee) * sinking[:, 0] - (xe + ee) * sinking[:, 1]).sum()
    scales = (1.0 - 0.5 * prior[:m] * xx) * steep * ridge
    scales += (1.0 - prior[m:-1] * ee) * ridge / held
    return growth * float(sunk) - float(scales.sum())


def weigh(
    forecast: Forecast,
    hyper: Hyper,
    merits: Merits,
    posterior: Posterior,
    shape: Slopes,
    without: Free,
) -> Conclusions:
    """Put the model's merits and the free ones together."""
    free, free_variance, smooth, noise, level, level_variance = without
    variance, shared = posterior.of_merits(merits)
    by_model = merits.value + shape.moved
    variance = shape.times**2 * variance + shape.variance
    if np.isfinite(level_variance):
        # full sets give the sum of all merits for any game
        total = float(by_model.sum())
        gap, unit = level - total, total**2
        beyond = max(gap**2 - level_variance - shared.sum(), 0.0) / unit
        error = (2.0 * BELIEFS.error**2 + beyond) / 3.0
        parts = np.maximum(by_model, 0.0)
        shared = shared + error * unit * parts / max(parts.sum(), 1e-12)
        part = shared / (shared.sum() + level_variance)
        by_model = by_model + part * gap
        variance = variance + part**2 * level_variance
    merit, total_variance = by_model.copy(), variance.copy()
    known = np.isfinite(free_variance)
    if known.any():
        moved, more = shrink((smooth - by_model)[known], noise[known])
        merit[known] += moved
        total_variance[known] += more
    total_variance = np.maximum(total_variance, 0.0)
    return Conclusions(
        merit, total_variance, by_model, variance, free, free_variance, smooth, forecast, hyper
    )


def _mean_of(total: float, free: float, believed: float, arms: float) -> float:
    """Mean square of ``free`` arms' worth of squares, and of a belief worth some more."""
    return (total + arms * believed**2) / (free + arms)

"""What somebody who knows the model and the prior would conclude from rewards of sets.

One sampler for shops and one for cascades (that of coverage is :mod:`benchmarks.covering`); each
returns draws (n, m) of the merits from their posterior.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincc, betaincinv, betaln
from scipy.stats import gamma

from benchmarks.told import Told
from evenhand.games import IndependentCascade, NoisyOr
from evenhand.typing import Floats, Ints, compiled

# ---- the shop: a noisy-OR of clipped beta qualities ----


class Clipped(NamedTuple):
    """A beta law of which what lies outside two bounds is moved onto them.

    A share of all arms, ``nothing``, is exactly 0; the law is that of the others.
    """

    a: float
    b: float
    low: float
    high: float
    nothing: float = 0.0


QUALITIES = Clipped(1.2, 12.0, 0.004, 0.9)
NEVER = 1e-12  # chance of arms that bring nothing, by which may be divided
# with mean and variance of what an arm of a rare coverage is worth alone, of which a quarter is 0
COVERED = Clipped(1.17, 41.4, 1e-5, 0.9)
# the same, it being known that a quarter is 0
COVERED_OR_NOTHING = Clipped(2.697, 70.62, 1e-5, 0.9, nothing=0.2525)


def shop(
    told: Told,
    m: int,
    k: int,
    rng: np.random.Generator,
    prior: Clipped = QUALITIES,
    n: int = 1500,
) -> Floats:
    """Merits of a shop by Gibbs sampling of which arms of a successful set were successful.

    Where arms may bring nothing, it takes many times as many draws: that seldom changes.
    """
    trials = _memberships(told, m)
    success = told.rewards == 1.0
    orders, sizes = told.orders[success], told.sizes[success]
    quality, found = np.full(m, prior.a / (prior.a + prior.b)), np.empty((n, m))
    for i in range(-n // 5, n):
        hits = _hits(quality, orders, sizes, rng)
        quality = _qualities(prior, hits, trials - hits, rng)
        if i >= 0:
            found[i] = NoisyOr(quality).kshapley(k)
    return found


def _memberships(told: Told, m: int) -> Floats:
    inside = np.arange(told.orders.shape[1]) < told.sizes[:, None]
    return np.bincount(told.orders[inside], minlength=m).astype(np.float64)


@compiled
def _hits(quality: Floats, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
    """How often each arm was successful, drawn given that one of every set was."""
    hits = np.zeros(len(quality))
    for i in range(len(orders)):
        missed = 1.0
        for j in range(sizes[i]):
            missed *= 1.0 - quality[orders[i, j]]
        needed = True
        for j in range(sizes[i]):
            a = orders[i, j]
            chance = quality[a] / (1.0 - missed) if needed else quality[a]
            missed /= 1.0 - quality[a]
            if j == sizes[i] - 1 and needed:
                chance = 1.0
            if rng.random() < chance:
                hits[a] += 1.0
                needed = False
    return hits


def _qualities(prior: Clipped, hits: Floats, misses: Floats, rng: np.random.Generator) -> Floats:
    """Draw qualities: a beta posterior between the bounds, what was moved onto each, or nothing."""
    a, b, low, high = prior.a + hits, prior.b + misses, prior.low, prior.high
    below, above = betainc(a, b, low), betainc(a, b, high)
    at_low = np.log(betainc(prior.a, prior.b, low)) + hits * np.log(low) + misses * np.log1p(-low)
    with np.errstate(divide="ignore"):
        inside = betaln(a, b) - betaln(prior.a, prior.b) + np.log(above - below)
        at_high = np.log(betaincc(prior.a, prior.b, high)) + hits * np.log(high)
        silent = np.log(np.where(hits > 0.0, 0.0, prior.nothing)) - np.log1p(-prior.nothing)
    at_high += misses * np.log1p(-high)
    keys = np.array([inside, at_low, at_high]) + rng.gumbel(size=(3, len(hits)))
    drawn = betaincinv(a, b, below + (above - below) * rng.random(len(hits)))
    drawn = np.where(keys[0] >= keys[1:].max(axis=0), drawn, np.where(keys[1] > keys[2], low, high))
    found: Floats = np.clip(drawn, low, high)
    if prior.nothing > 0.0:
        some = np.logaddexp.reduce([inside, at_low, at_high])
        found[rng.logistic(size=len(hits)) < silent - some] = NEVER
    return found


# ---- a cascade that hardly spreads ----


class Known(NamedTuple):
    """Prior of a cascade's nodes, as pairs: what each activates besides itself, and its merit."""

    extra: Floats
    merit: Floats


def prior_of(cascades: list[IndependentCascade], k: int) -> Known:
    """Pairs of all nodes of some cascades on acyclic graphs, to the second order in p.

    Paths are counted as if no two led to the same node.
    """
    extra, merit = [], []
    for one in cascades:
        arcs = np.zeros((one.m, one.m))
        arcs[one.edges[:, 0], one.edges[:, 1]] = one.p
        reach = np.linalg.inv(np.eye(one.m) - arcs) - np.eye(one.m)
        others = 0.5 * (k - 1) / (one.m - 1)  # chance that a node stands before another
        extra.append(reach.sum(axis=1))
        merit.append((1.0 + (1.0 - others) * extra[-1] - others * reach.sum(axis=0)) / one.m)
    return Known(np.concatenate(extra), np.concatenate(merit))


def smoothed(prior: Known) -> Known:
    """The prior of somebody who does not know that a node has whole arcs: a gamma law.

    Merits follow what a node activates on a straight line.
    """
    mean, variance = prior.extra.mean(), prior.extra.var()
    levels = (np.arange(len(prior.extra)) + 0.5) / len(prior.extra)
    extra = gamma(mean**2 / variance, scale=variance / mean).ppf(levels)
    merit = np.polyval(np.polyfit(prior.extra, prior.merit, 1), extra)
    return Known(extra, merit.astype(np.float64))


def cascade(told: Told, m: int, prior: Known, rng: np.random.Generator, n: int = 1000) -> Floats:
    """Merits of a cascade's nodes by Metropolis steps from one pair of the prior to another.

    What a seed activates is taken as Poisson, less its chance of having been a seed itself.
    """
    extra = np.rint(told.rewards * m).astype(np.int64) - told.sizes
    inside = np.arange(told.orders.shape[1]) < told.sizes[:, None]
    open_to = np.broadcast_to((1.0 - (told.sizes - 1) / (m - 1))[:, None], inside.shape)
    some = extra > 0
    inside_some = inside[some]
    members = [np.nonzero((told.orders[some] == a) & inside_some)[0] for a in range(m)]
    order = np.argsort(prior.extra)
    rates, merit = np.maximum(prior.extra[order], 1e-9), prior.merit[order]  # none is impossible
    which = np.full(m, len(rates) // 2)
    world = Spread(
        which,
        np.where(inside_some, rates[which[0]], 0.0).sum(axis=1),
        np.bincount(told.orders[inside], open_to[inside], m).astype(np.float64),
        np.concatenate([[0], np.cumsum([len(x) for x in members])]),
        np.concatenate(members),
        extra[some],
    )
    found = np.empty((n, m))
    for i in range(-n // 5, n):
        _renew(world, rates, rng)
        if i >= 0:
            found[i] = merit[world.which]
    return found


class Spread(NamedTuple):
    """Which pair of the prior each arm is, and the sets that activated others, with their rates.

    The sets that hold an arm are ``holders[starts[a]:starts[a + 1]]``.
    """

    which: Ints
    totals: Floats
    exposure: Floats
    starts: Ints
    holders: Ints
    extra: Ints


@compiled
def _renew(world: Spread, rates: Floats, rng: np.random.Generator) -> None:
    """Twenty steps per arm: to any pair of the prior, or to one of nearly the same rate."""
    near = max(1, len(rates) // 50)
    for a in range(len(world.which)):
        for step in range(20):
            now = world.which[a]
            if step % 2 == 0:
                new = int(rng.random() * len(rates))
            else:
                new = now + int(rng.random() * (2 * near + 1)) - near
            if new < 0 or new >= len(rates):
                continue
            by = rates[new] - rates[now]
            chance = -world.exposure[a] * by
            for at in range(world.starts[a], world.starts[a + 1]):
                s = world.holders[at]
                chance += world.extra[s] * np.log1p(max(by / world.totals[s], -1.0 + 1e-9))
            if np.log(rng.random()) < chance:
                world.which[a] = new
                for at in range(world.starts[a], world.starts[a + 1]):
                    world.totals[world.holders[at]] += by

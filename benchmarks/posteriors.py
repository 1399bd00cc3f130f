"""What somebody who knows the model and the prior would conclude from rewards of sets.

One sampler per kind of world; each returns draws (n, m) of the merits from their posterior.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincc, betaincinv, betaln
from scipy.stats import gamma

from evenhand.games import IndependentCascade, NoisyOr
from evenhand.merit.reverse_reachable import _shares
from evenhand.typing import Bools, Floats, Ints, compiled


class Told(NamedTuple):
    """Sets, the first ``sizes[i]`` arms of a row, and their rewards (n,)."""

    orders: Ints
    sizes: Ints
    rewards: Floats


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


# ---- coverage of few items ----

CHANCES, N_ITEMS = (0.005, 0.05), 60
UNITS = 10 * N_ITEMS  # of weight, where items weigh differently


def cover(
    told: Told,
    m: int,
    k: int,
    rng: np.random.Generator,
    n: int = 3000,
    items: int = N_ITEMS,
    units: int = N_ITEMS,
) -> Floats:
    """Merits of a coverage by Metropolis steps: an arm gains, loses or exchanges an item.

    Items share so many units of weight, a multiple of their number, all ways equally likely that
    give each one or more. If there are more than items, some pass from one to another at times.
    """
    sets, successes, failures = _counted(told, m)
    members = [np.flatnonzero(sets[:, a]) for a in range(m)]
    starts = np.concatenate([[0], np.cumsum([len(x) for x in members])])
    world = Coverage(
        np.zeros((m, items), np.bool_),
        np.full(items, units // items),
        np.zeros((items, len(sets)), np.int16),
        np.zeros(len(sets), np.int64),
        starts,
        np.concatenate(members),
        successes,
        failures,
    )
    prior = _log_prior(items)
    with np.errstate(divide="ignore"):
        likely = np.log(np.arange(units + 1) / units), np.log1p(-np.arange(units + 1) / units)
    _start(world, rng)
    shares, found = _shares(m, k), np.empty((n, m))
    for i in range(-n // 4, n):
        _sweep(world, prior, likely[0], likely[1], rng)
        if units > items:
            _pass_on(world, likely[0], likely[1], rng)
        if i >= 0:
            per_item = shares[world.covers.sum(axis=0)] * world.weights
            found[i] = world.covers @ per_item / units
    return found


def compositions(items: int, units: int, rng: np.random.Generator) -> Ints:
    """Draw how many units each item has, at least one, all ways equally likely."""
    ends = np.append(np.sort(rng.choice(units - 1, items - 1, replace=False)) + 1, units)
    return np.diff(ends, prepend=0)


class Coverage(NamedTuple):
    """Who covers which item, what items weigh, how often sets cover each, and how much weight.

    The sets that hold an arm are ``holders[starts[a]:starts[a + 1]]``.
    """

    covers: Bools
    weights: Ints
    times: Ints
    covered: Ints
    starts: Ints
    holders: Ints
    successes: Floats
    failures: Floats


def members(told: Told, m: int) -> Bools:
    """Which arms are in which set (n, m)."""
    rows = np.zeros((len(told.orders), m), np.bool_)
    inside = np.arange(told.orders.shape[1]) < told.sizes[:, None]
    rows[np.nonzero(inside)[0], told.orders[inside]] = True
    return rows


def _counted(told: Told, m: int) -> tuple[Bools, Floats, Floats]:
    """Distinct sets (n, m), and how often each succeeded and failed."""
    sets, which = np.unique(members(told, m), axis=0, return_inverse=True)
    successes: Floats = np.bincount(which, told.rewards, len(sets)).astype(np.float64)
    failures: Floats = np.bincount(which, 1.0 - told.rewards, len(sets)).astype(np.float64)
    return sets, successes, failures


def _log_prior(items: int) -> Floats:
    """Log probability of an arm's items by how many there are, its chance integrated out."""
    chance = np.linspace(*CHANCES, 2001)[:, None]
    n = np.arange(items + 1)
    return np.log(np.mean(chance**n * (1.0 - chance) ** (items - n), axis=0))


def _start(world: Coverage, rng: np.random.Generator) -> None:
    """Give every arm one item, so that no success is impossible."""
    m, items = world.covers.shape
    for a in range(m):
        _change(world, a, int(rng.integers(items)), 1)


@compiled
def _change(world: Coverage, a: int, item: int, by: int) -> None:
    """Add an item to an arm, or take it away."""
    world.covers[a, item] = by > 0
    for at in range(world.starts[a], world.starts[a + 1]):
        s = world.holders[at]
        before = world.times[item, s]
        world.times[item, s] = before + by
        world.covered[s] += world.weights[item] * ((before + by > 0) - (before > 0))


@compiled
def _gain(
    world: Coverage, a: int, lost: int, won: int, log_success: Floats, log_failure: Floats
) -> float:
    """Gain of log likelihood if an arm loses one item and wins another; -1 stands for none."""
    _, weights, times, covered, starts, holders, successes, failures = world
    loses, wins, total = times[lost], times[won], 0.0
    for s in holders[starts[a] : starts[a + 1]]:
        before = after = covered[s]
        if lost >= 0 and loses[s] == 1:
            after -= weights[lost]
        if won >= 0 and wins[s] == 0:
            after += weights[won]
        if after != before:
            total += _by(successes[s], log_success, before, after)
            total += _by(failures[s], log_failure, before, after)
    return total


@compiled
def _by(n: float, logs: Floats, before: int, after: int) -> float:
    """Gain of log likelihood of n rewards, of which there may be none where it is infinite."""
    return n * (logs[after] - logs[before]) if n > 0.0 else 0.0


@compiled
def _pass_on(
    world: Coverage, log_success: Floats, log_failure: Floats, rng: np.random.Generator
) -> None:
    """An offer per item to exchange some weight with another, a lot or a little."""
    _, weights, times, covered, _, _, successes, failures = world
    items, units = len(weights), len(log_success) - 1
    for item in range(items):
        a, b = item, int(rng.random() * items)
        if rng.random() < 0.5:
            a, b = b, a
        by = 1 + int(rng.random() * (2 * units // items if rng.random() < 0.5 else 3))
        if a == b or weights[a] <= by:
            continue
        loses, wins, chance = times[a], times[b], 0.0
        for s in range(len(covered)):
            if (loses[s] > 0) != (wins[s] > 0):
                before = covered[s]
                after = before + (by if wins[s] > 0 else -by)
                chance += _by(successes[s], log_success, before, after)
                chance += _by(failures[s], log_failure, before, after)
        if np.log(rng.random()) < chance:
            weights[a] -= by
            weights[b] += by
            for s in range(len(covered)):
                if (loses[s] > 0) != (wins[s] > 0):
                    covered[s] += by if wins[s] > 0 else -by


@compiled
def _sweep(
    world: Coverage,
    prior: Floats,
    log_success: Floats,
    log_failure: Floats,
    rng: np.random.Generator,
) -> None:
    """Six births or deaths and six exchanges of items per arm."""
    m, items = world.covers.shape
    for a in range(m):
        for step in range(12):
            n = 0
            for i in range(items):
                n += world.covers[a, i]
            birth = step % 2 == 0 and rng.random() < 0.5
            exchange = step % 2 == 1
            if (n == items and (birth or exchange)) or (n == 0 and not birth):
                continue
            lost = -1 if birth else _pick(world.covers[a], True, n, rng)
            won = _pick(world.covers[a], False, items - n, rng) if birth or exchange else -1
            chance = _gain(world, a, lost, won, log_success, log_failure)
            if birth:
                chance += prior[n + 1] - prior[n] + np.log((items - n) / (n + 1))
            elif not exchange:
                chance += prior[n - 1] - prior[n] + np.log(n / (items - n + 1))
            if np.log(rng.random()) < chance:
                if lost >= 0:
                    _change(world, a, lost, -1)
                if won >= 0:
                    _change(world, a, won, 1)


@compiled
def _pick(covers: Bools, covered: bool, n: int, rng: np.random.Generator) -> int:
    """Pick one of the n items that an arm covers, or of those that it does not."""
    left = int(rng.random() * n)
    for i in range(len(covers)):
        if covers[i] == covered:
            if left == 0:
                return i
            left -= 1
    return -1


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

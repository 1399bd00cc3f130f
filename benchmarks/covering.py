"""What somebody who knows that a game is a coverage of few items would conclude from rewards."""

from typing import NamedTuple

import numpy as np

from benchmarks.told import Told, counted
from evenhand.merit.reverse_reachable import _shares
from evenhand.typing import Bools, Floats, Ints, compiled

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
    sets, successes, failures = counted(told, m)
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


def drawn(m: int, rng: np.random.Generator) -> Bools:
    """Draw which arm covers which item (m, n), as games of rare coverage do."""
    return rng.random((m, N_ITEMS)) < rng.uniform(*CHANCES, (m, 1))


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

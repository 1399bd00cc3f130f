"""K-Shapley values from queries: arm by arm as in the paper, and with every set serving all."""

from math import comb

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.combinations import combinations
from evenhand.games.game import Game
from evenhand.merit.estimate import Estimate
from evenhand.predecessors import draw_predecessors
from evenhand.typing import Floats, Ints, compiled

BLOCK_CELLS = 2**22  # cells of the orders drawn at once
PILOT = 10  # one part in so many of the queries says how to spend the others


def monte_carlo(game: Game, k: int, budget: int, rng: np.random.Generator) -> Estimate:
    r"""Estimate merits as the paper's reference does: marginal gains sampled arm by arm.

    For each arm, draw a uniformly random K-set that contains it and a random order; one sample is
    :math:`\hat V(B \cup a) - \hat V(B)` with B the arms before a. A game with ``pull_coupled``
    (a cascade) answers both from one live-edge graph.

    Parameters
    ----------
    game, k
        The game and the budget of a set.
    budget
        Queries that may be spent, at least 4 m: two samples of two queries an arm. It is never
        exceeded; a query of the empty set counts.
    rng
        Source of randomness.

    Returns
    -------
    Estimate
        Values, standard errors and the queries spent.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> found = monte_carlo(game, 2, budget=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.values - game.kshapley(2)) < 4 * found.stderr))
    True
    """
    m, k = check_budget(game.m, k)
    budget = check_integer("budget", budget, 4 * m)
    check_rng(rng)
    pull = getattr(game, "pull_coupled", game.pull)
    n = budget // (2 * m)
    total, square = np.zeros(m), np.zeros(m)
    rows = max(1, BLOCK_CELLS // k)
    for arm in range(m):
        for start in range(0, n, rows):
            arms = np.full(min(rows, n - start), arm)
            orders, sizes = draw_predecessors(arms, m, k, rng)
            rewards = pull(orders, sizes, rng)
            gains = rewards[:, 1] - rewards[:, 0]
            total[arm] += gains.sum()
            square[arm] += (gains * gains).sum()
    return Estimate(total / n, _stderr(total, square, n), 2 * m * n)


def stratified(game: Game, k: int, budget: int, rng: np.random.Generator) -> Estimate:
    r"""Estimate merits from sets in which every query serves all arms.

    .. math:: \phi_a = \frac1K \sum_{s=1}^{K} \left[ E(V(S) \mid |S| = s, a \in S)
              - \mathbf{1}\{s < K\} E(V(S) \mid |S| = s, a \notin S) \right]

    For each size, a random order of the arms is cut into blocks of that size (into their
    complements for s > m/2), the last one filled up at random. Each block is a uniformly random
    set, and every arm is inside at least one and outside at least one: one order is one unbiased
    sample of all arms' differences. Where the queries of a size would do for all its sets,
    these are listed instead, which leaves only the noise of the rewards: at least twice, so that
    it shows, and once where the game says that it has none (``game.noise is None``). A tenth of the
    budget goes to finding out how much the sizes vary, so that the rest can be spent where it
    helps.

    Parameters
    ----------
    game, k
        The game and the budget of a set.
    budget
        Queries that may be spent; two orders of every size must fit. Never exceeded.
    rng
        Source of randomness.

    Returns
    -------
    Estimate
        Values, standard errors and the queries spent.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> found = stratified(game, 2, budget=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.values - game.kshapley(2)) < 4 * found.stderr))
    True
    """
    m, k = check_budget(game.m, k)
    blocks = np.array([_blocks(m, s) for s in range(1, k + 1)])
    budget = check_integer("budget", budget, int(2 * blocks.sum()))
    check_rng(rng)
    noisy, spent = getattr(game, "noise", True) is not None, 0
    spread = np.sqrt(blocks)  # as many orders of every size, as long as nothing is known
    if budget >= PILOT * 2 * blocks.sum() and (noisy or _all_sets(m, k) > budget):
        n_orders = _allocate(blocks, spread, budget // PILOT)
        for s in range(1, k + 1):
            _, error = _by_orders(game, s, int(n_orders[s - 1]), s < k, rng)
            spread[s - 1] = np.sqrt((error**2).mean() * n_orders[s - 1])
        spent += int(n_orders @ blocks)
        spread = np.maximum(spread, 0.1 * spread.max() or 1.0)  # a few orders may miss what is rare
    # nothing of the pilot enters the values: they stay unbiased
    n_orders, listings = _plan(blocks, spread, m, budget - spent, noisy)
    values, variance = np.zeros(m), np.zeros(m)
    for s in range(1, k + 1):
        if listings[s - 1]:
            mean, error = _by_listing(game, s, int(listings[s - 1]), s < k, rng)
            spent += int(listings[s - 1]) * comb(m, s)
        else:
            mean, error = _by_orders(game, s, int(n_orders[s - 1]), s < k, rng)
            spent += int(n_orders[s - 1] * blocks[s - 1])
        values += mean / k
        variance += (error / k) ** 2
    return Estimate(values, np.sqrt(variance), spent)


def _plan(blocks: Ints, spread: Floats, m: int, budget: int, noisy: bool) -> tuple[Ints, Ints]:
    """Orders of each size, and how often its sets are listed instead where that is within reach.

    What listings leave over goes to the other sizes, which may bring them within reach as well.
    """
    k = len(blocks)
    n_orders, listings = np.zeros(k, np.int64), np.zeros(k, np.int64)
    sampled = np.ones(k, np.bool_)
    if not noisy and _all_sets(m, k) <= budget:
        return n_orders, listings + 1
    while sampled.any():
        n_orders[sampled] = _allocate(blocks[sampled], spread[sampled], budget)
        reached = False
        for s in np.flatnonzero(sampled).tolist():
            share, n_sets = int(n_orders[s] * blocks[s]), comb(m, s + 1)
            times = max(2, share // n_sets) if noisy else 1
            if times * n_sets <= share:
                listings[s], budget = times, budget - times * n_sets
                sampled[s], reached = False, True
        if not reached:
            return n_orders, listings
    for s in sorted(range(k), key=lambda s: -comb(m, s + 1)):  # all are listed: what is left over
        again = budget // comb(m, s + 1)
        listings[s], budget = listings[s] + again, budget - again * comb(m, s + 1)
    return n_orders, listings


def _all_sets(m: int, k: int) -> int:
    """How many sets of at most k arms there are."""
    return sum(comb(m, s) for s in range(1, k + 1))


def _by_orders(
    game: Game, size: int, n_orders: int, difference: bool, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean of V with each arm (minus without it) at one size, and its standard error."""
    m = game.m
    cut = _blocks(m, size)
    total, square = np.zeros(m), np.zeros(m)
    step = max(1, BLOCK_CELLS // (cut * size))
    for start in range(0, n_orders, step):
        orders = _cut_orders(m, size, min(step, n_orders - start), rng)
        rewards = game.pull(orders, np.full((len(orders), 1), size), rng)
        _add_contrasts(orders, rewards[:, 0], cut, difference, total, square)
    return total / n_orders, _stderr(total, square, n_orders)


def _by_listing(
    game: Game, size: int, n: int, difference: bool, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the same from n queries of every set of a size; n is 1 only without noise."""
    total, square = np.zeros(game.m), np.zeros(game.m)
    sets = next(combinations(game.m, size, block=comb(game.m, size)))
    sizes = np.full((len(sets), 1), size)
    for _ in range(n):
        rewards = game.pull(sets, sizes, rng)
        _add_contrasts(sets, rewards[:, 0], len(sets), difference, total, square)
    return total / n, _stderr(total, square, n) if n > 1 else np.zeros(game.m)


def _blocks(m: int, size: int) -> int:
    """Blocks an order is cut into: enough for each arm to be inside one and outside one."""
    width = min(size, m - size)
    return 1 if width == 0 else -(-m // width)


def _allocate(blocks: Ints, spread: Floats, budget: int) -> Ints:
    """Orders of each size: at least two, else by what they vary over the root of what they cost.

    (Neyman's allocation.)
    """
    spare = budget - 2 * blocks.sum()
    wish = spread / np.sqrt(blocks)
    return 2 + np.floor(spare * wish / (wish * blocks).sum()).astype(np.int64)


def _stderr(total: Floats, square: Floats, n: int) -> Floats:
    """Standard error of the mean of n samples with this total and sum of squares."""
    return np.sqrt(np.maximum(square - total * total / n, 0.0) / (n - 1) / n)


@compiled
def _cut_orders(m: int, size: int, n: int, rng: np.random.Generator) -> Ints:
    """Cut n random orders into blocks of ``size`` arms, or complements of blocks of m - size."""
    width = min(size, m - size)
    if width == 0:
        orders = np.empty((n, m), np.int64)
        orders[:] = np.arange(m)
        return orders
    if width == 2 and m % 2 == 0:
        return _tournament(m, size, n, rng)
    cut = (m + width - 1) // width
    sets = np.empty((n * cut, size), np.int64)
    arms = np.arange(m)
    for i in range(n):
        _shuffle(arms, m, rng)
        for b in range(cut):
            low, high = b * width, (b + 1) * width
            if high > m:  # fill the last block with a random part of what came before
                _bring_forward(arms, high - m, low, rng)
                low, high = m - width, m
            _write(arms, low, high, size == width, sets[i * cut + b])
    return sets


@compiled
def _tournament(m: int, size: int, n: int, rng: np.random.Generator) -> Ints:
    """Cut n orders into pairs, or their complements, no pair again before every other was there.

    The rounds of a tournament of all against all (the circle method), in random order and with
    arms for players at random.
    """
    sets = np.empty((n * m // 2, size), np.int64)
    arms, rounds, others = np.arange(m), np.arange(m - 1), m - 1
    for i in range(n):
        if i % others == 0:
            _shuffle(arms, m, rng)
            _shuffle(rounds, others, rng)
        r = rounds[i % others]
        for b in range(m // 2):
            first = arms[others if b == 0 else (r + b) % others]
            second = arms[(r - b) % others]
            row, filled = sets[i * m // 2 + b], 0
            for arm in range(m):
                if (arm == first or arm == second) == (size == 2):
                    row[filled] = arm
                    filled += 1
    return sets


@compiled
def _shuffle(arms: Ints, n: int, rng: np.random.Generator) -> None:
    for i in range(n - 1):
        j = rng.integers(i, n)
        arms[i], arms[j] = arms[j], arms[i]


@compiled
def _bring_forward(arms: Ints, count: int, end: int, rng: np.random.Generator) -> None:
    """Move a random choice of arms[:end] to its last ``count`` places."""
    for i in range(count):
        place = end - 1 - i
        j = rng.integers(0, place + 1)
        arms[place], arms[j] = arms[j], arms[place]


@compiled
def _write(arms: Ints, low: int, high: int, inside: bool, row: Ints) -> None:
    """Write arms[low:high], or all the others, into a row."""
    if inside:
        row[:] = arms[low:high]
    else:
        row[:low] = arms[:low]
        row[low:] = arms[high:]


@compiled
def _add_contrasts(
    orders: Ints, rewards: Floats, cut: int, difference: bool, total: Floats, square: Floats
) -> None:
    """Add each order's contrast (mean inside minus mean outside) and its square."""
    m = len(total)
    inside, count = np.empty(m), np.empty(m)
    for first in range(0, len(orders), cut):
        inside[:] = 0.0
        count[:] = 0.0
        everything = 0.0
        for b in range(first, first + cut):
            everything += rewards[b]
            for arm in orders[b]:
                inside[arm] += rewards[b]
                count[arm] += 1.0
        for arm in range(m):
            sample = inside[arm] / count[arm]
            if difference:
                sample -= (everything - inside[arm]) / (cut - count[arm])
            total[arm] += sample
            square[arm] += sample * sample

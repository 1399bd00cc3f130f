"""K-Shapley values from queries of sets of every size, each of which serves all arms."""

from collections.abc import Iterator
from math import comb

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.games.game import Game
from evenhand.merit.blocks import cut_orders, n_blocks
from evenhand.merit.estimate import Estimate, Sums
from evenhand.merit.exact import mean_values
from evenhand.subsets.combinations import count_up_to
from evenhand.typing import Floats, Ints, compiled

BLOCK_CELLS = 2**22  # cells of sets held at once; one order at least
Samples = Iterator[tuple[Floats, Floats]]  # contrasts (n, m) and levels (n,), in blocks
PILOT = 10  # one part in so many of the queries says how to spend the others


def stratified(game: Game, k: int, budget: int, rng: np.random.Generator) -> Estimate:
    r"""Estimate merits from sets in which every query serves all arms.

    With :math:`\bar V_s` the mean value of the s-sets and :math:`D_a(s)` the mean over those with
    arm a minus the mean over those without it,

    .. math:: \phi_a = \frac1K \Bigl[ \sum_{s=1}^{K-1} D_a(s)
              + \frac{M-K}{M} D_a(K) + \bar V_K \Bigr].

    For each size, a random order of the arms is cut into blocks of that size (into their
    complements for s > m/2), the last one filled up at random. Each block is a uniformly random
    set, and every arm is inside at least one and outside at least one: one order is one unbiased
    sample of all arms' differences. What an arm owes to the company it met is taken off, as far as
    the size before tells what each arm adds to a set (a control variate, with the factor that
    the other orders recommend; wrong, it costs accuracy but brings no bias). Where the queries of a
    size would do for all its sets, these are listed instead, which leaves only the noise of the
    rewards: at least twice, so that it shows, and once where the game says that it has none
    (``game.noise is None``). Where the budget is ten times the least or more, a tenth of it goes to
    finding out how much the sizes vary, so that the rest can be spent where it helps.

    Parameters
    ----------
    game, k
        The game and the budget of a set.
    budget
        Queries that may be spent; two orders of every size must fit, or all sets of a game without
        noise. Never exceeded.
    rng
        Source of randomness.

    Returns
    -------
    Estimate
        Values, standard errors and the queries spent. Near the least budget standard errors rest
        on few orders of each size, and are rough themselves.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> found = stratified(game, 2, budget=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.values - game.kshapley(2)) < 4 * found.stderr))
    True
    """
    m, k = check_budget(game.m, k)
    blocks = np.array([n_blocks(m, s) for s in range(1, k + 1)])
    noisy, spent = getattr(game, "noise", True) is not None, 0
    least = int(2 * blocks.sum())
    budget = check_integer("budget", budget, least if noisy else min(least, count_up_to(m, k)))
    check_rng(rng)
    spread = np.sqrt(blocks)  # as many orders of every size, as long as nothing is known
    if budget >= PILOT * least and (noisy or count_up_to(m, k) > budget):
        n_orders = _allocate(blocks, spread, budget // PILOT)
        _, errors = _all_sizes(game, n_orders, np.zeros_like(n_orders), rng)
        spread = np.sqrt((errors**2).mean(axis=1) * n_orders)
        spent += int(n_orders @ blocks)
        spread = np.maximum(spread, 0.1 * spread.max() or 1.0)  # a few orders may miss what is rare
    # nothing of the pilot enters the values: they stay unbiased
    n_orders, listings = _plan(blocks, spread, m, budget - spent, noisy)
    spent += int(n_orders @ blocks) + sum(
        n * comb(m, s) for s, n in enumerate(listings.tolist(), 1)
    )
    parts, errors = _all_sizes(game, n_orders, listings, rng)
    return Estimate(parts.sum(axis=0) / k, np.sqrt((errors**2).sum(axis=0)) / k, spent)


def _all_sizes(
    game: Game, n_orders: Ints, listings: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Each size's part of K merits and its standard error (k, m): from listings or from orders."""
    k, m = len(n_orders), game.m
    parts, errors, before = np.empty((k, m)), np.empty((k, m)), np.zeros(m)
    for s in range(1, k + 1):
        if listings[s - 1]:
            samples = _by_listing(game, s, int(listings[s - 1]), rng)
        else:
            samples = _by_orders(game, s, int(n_orders[s - 1]), before, rng)
        sums, contrast = Sums(m), np.zeros(m)
        for contrasts, levels in samples:
            sums.add(_part(contrasts, levels, s, k))
            contrast += contrasts.sum(axis=0)
        parts[s - 1], errors[s - 1] = sums.mean, sums.stderr
        before = (contrast - contrast.mean()) / sums.n
    return parts, errors


def _plan(blocks: Ints, spread: Floats, m: int, budget: int, noisy: bool) -> tuple[Ints, Ints]:
    """Orders of each size, and how often its sets are listed instead where that is within reach.

    What listings leave over goes to the other sizes, which may bring them within reach as well.
    """
    k = len(blocks)
    n_orders, listings = np.zeros(k, np.int64), np.zeros(k, np.int64)
    sampled = np.ones(k, np.bool_)
    if not noisy and count_up_to(m, k) <= budget:
        return n_orders, listings + 1
    while sampled.any():
        n_orders[sampled] = _allocate(blocks[sampled], spread[sampled], budget)
        reached = False
        for s in np.flatnonzero(sampled).tolist():
            share, n_sets = int(n_orders[s] * blocks[s]), comb(m, s + 1)
            times = max(2, share // n_sets) if noisy else 1
            if times * n_sets <= share:
                listings[s], budget = times, budget - times * n_sets
                sampled[s], n_orders[s], reached = False, 0, True
        if not reached:
            return n_orders, listings
    for s in sorted(range(k), key=lambda s: -comb(m, s + 1)):  # all are listed: what is left over
        again = budget // comb(m, s + 1)
        listings[s], budget = listings[s] + again, budget - again * comb(m, s + 1)
    return n_orders, listings


def _allocate(blocks: Ints, spread: Floats, budget: int) -> Ints:
    """Orders of each size: at least two, else by what they vary over the root of what they cost.

    (Neyman's allocation.)
    """
    spare = budget - 2 * blocks.sum()
    wish = spread / np.sqrt(blocks)
    return 2 + np.floor(spare * wish / (wish * blocks).sum()).astype(np.int64)


def _by_listing(game: Game, size: int, n: int, rng: np.random.Generator) -> Samples:
    """Contrasts and levels of n queries of every set of a size."""

    def pull(sets: Ints) -> Floats:
        return game.pull(sets, np.full((len(sets), 1), size), rng)[:, 0]

    for _ in range(n):
        inside, outside = mean_values(game.m, size, pull)
        yield (inside - outside)[None, :], inside.mean(keepdims=True)


def _by_orders(
    game: Game, size: int, n: int, believed: Floats, rng: np.random.Generator
) -> Samples:
    """Contrasts and levels of n orders; ``believed`` contrasts, of mean 0, help.

    If each arm added (m - 1) / m of them to a set, they would be its contrasts. A sample shows
    something else, and what it is off has mean 0.
    """
    m = game.m
    adds = believed * ((m - 1) / m)
    step = max(1, BLOCK_CELLS // (n_blocks(m, size) * size))
    for start in range(0, n, step):
        count = min(step, n - start)
        sets = cut_orders(m, size, count, rng)
        rewards = game.pull(sets, np.full((len(sets), 1), size), rng)[:, 0]
        contrasts, levels = _contrast(sets, rewards, count, m)
        if size < m:
            shown, _ = _contrast(sets, adds[sets].sum(axis=1), count, m)
            contrasts = _corrected(contrasts, shown - believed)
        yield contrasts, levels


def _corrected(samples: Floats, off: Floats) -> Floats:
    """Samples (n, m) less their regression on ``off``, of mean 0: smaller variance, the same mean.

    One factor for all arms, for each sample from the others alone, so that it is independent of it
    where the samples are independent of each other.
    """
    n = len(samples)
    if n < 3:
        return samples
    others, off_others = samples.sum(axis=0) - samples, off.sum(axis=0) - off
    product, square = (off * samples).sum(axis=1), (off * off).sum(axis=1)
    covariance = product.sum() - product - (off_others * others).sum(axis=1) / (n - 1)
    variance = square.sum() - square
    factor = np.divide(covariance, variance, out=np.zeros(n), where=variance > 0.0)
    return samples - factor[:, None] * off


def _part(contrasts: Floats, levels: Floats, size: int, k: int) -> Floats:
    """What samples of one size add to K merits."""
    n, m = contrasts.shape
    if size < k:
        return contrasts
    whole = np.broadcast_to(levels[:, None], (n, m))
    return whole if k == m else whole + (m - k) / m * contrasts


@compiled
def _contrast(sets: Ints, values: Floats, n: int, m: int) -> tuple[Floats, Floats]:
    """Contrasts (n, m) of n orders, mean inside minus mean outside, and their mean values (n,).

    Where all arms are inside, the mean outside counts as 0; such contrasts are not used.
    """
    cut = len(sets) // n
    contrasts, levels = np.empty((n, m)), np.zeros(n)
    inside, count = np.empty(m), np.empty(m)
    for i in range(n):
        inside[:] = 0.0
        count[:] = 0.0
        total = 0.0
        for b in range(i * cut, (i + 1) * cut):
            total += values[b]
            for arm in sets[b]:
                inside[arm] += values[b]
                count[arm] += 1.0
        levels[i] = total / cut
        for arm in range(m):
            outside = (total - inside[arm]) / max(1.0, cut - count[arm])
            contrasts[i, arm] = inside[arm] / count[arm] - outside
    return contrasts, levels

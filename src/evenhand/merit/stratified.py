"""K-Shapley values from queries of sets of every size, each of which serves all arms."""

from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.checks import check_integer, check_rng
from evenhand.estimate import Estimate
from evenhand.games.game import Game, check_game, chunks
from evenhand.merit.asking import Asked, How, asking
from evenhand.merit.bar import Progress
from evenhand.merit.blocks import cut_orders, n_blocks
from evenhand.merit.cache import Cache
from evenhand.merit.exact import mean_values
from evenhand.merit.running_mean import RunningMean
from evenhand.subsets.combinations import count_up_to
from evenhand.typing import Floats, Ints, compiled

BLOCK_CELLS = 2**22  # cells of sets held at once; one order at least
SETS = 2**12  # sets asked for at once where all are listed: Ctrl-C may lose as many
Samples = Iterator[tuple[Floats, Floats]]  # contrasts (n, m) and levels (n,), in blocks
PILOT = 10  # one query in ten is spent on finding out how to allocate the others


def stratified(
    game: Game,
    k: int,
    queries: int,
    rng: np.random.Generator,
    *,
    executor: Any = None,
    progress: Progress = None,
    cache: Cache | str | Path | None = None,
    batch: int | None = None,
) -> Estimate:
    r"""Estimate merits from random sets of every size, so that each query serves all arms.

    With :math:`\bar V_s` the mean value of the s-sets and :math:`D_a(s)` the mean over those with
    arm a minus the mean over those without it,

    .. math:: \phi_a = \frac1K \Bigl[ \sum_{s=1}^{K-1} D_a(s)
              + \frac{M-K}{M} D_a(K) + \bar V_K \Bigr].

    For each size, a random order of the arms is cut into blocks of that size (into their
    complements for s > m/2), the last one filled up at random. Each block is a uniformly random
    set, and every arm is inside at least one and outside at least one: one order is one unbiased
    sample of all arms' differences.

    Three things reduce the variance. A control variate removes the effect of the other members of
    a set, as predicted from the differences of size s - 1; its factor is a regression on the other
    orders, so that a bad prediction costs accuracy but brings no bias. Where the queries allotted
    to a size suffice for all its sets, these are listed instead, which leaves only the noise of
    the rewards: at least twice, to estimate that noise, or once where the game has none
    (``game.noise is None``). With ten times the least number of queries or more, a tenth of them
    measures how much the sizes vary, and the rest is allotted accordingly.

    Parameters
    ----------
    game, k
        The game and K, the most arms in a set.
    queries
        The most queries to spend: enough for two orders of every size, or for all sets of a game
        without noise.
    rng
        Source of randomness.
    executor, progress, cache, batch
        For slow functions, as for :func:`~evenhand.kshapley`.

    Returns
    -------
    Estimate
        Merits, standard errors and the queries spent. With few queries the standard errors rest
        on few orders of each size, and are rough themselves.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> found = stratified(game, 2, queries=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.merit - game.kshapley(2)) < 4 * found.stderr))
    True
    """
    m, k = check_game(game, k, "pull")
    blocks = np.array([n_blocks(m, s) for s in range(1, k + 1)])
    noisy = getattr(game, "noise", True) is not None
    least = int(2 * blocks.sum())
    queries = check_integer("queries", queries, least if noisy else min(least, count_up_to(m, k)))
    check_rng(rng)
    with asking(game, queries, 1, How(executor, progress, cache, batch)) as asked:
        estimate = _estimate(asked, k, queries, blocks, noisy, rng)
        asked.finish(estimate)
    return estimate


def _estimate(
    game: Asked, k: int, queries: int, blocks: Ints, noisy: bool, rng: np.random.Generator
) -> Estimate:
    m, spent, least = game.m, 0, int(2 * blocks.sum())
    first = first_errors = np.full((k, m), np.nan)
    deviation = np.sqrt(blocks)  # leads to equally many orders of every size
    if queries >= PILOT * least and (noisy or count_up_to(m, k) > queries):
        n_orders = _allocate(blocks, deviation, queries // PILOT)
        first, first_errors = _all_sizes(game, n_orders, np.zeros_like(n_orders), rng)
        deviation = np.sqrt((first_errors**2).mean(axis=1) * n_orders)
        spent += int(n_orders @ blocks)
        # few orders may miss rare values: no size counts as ten times less variable than another
        deviation = np.maximum(deviation, 0.1 * deviation.max() or 1.0)
    if game.stopped:
        return _sum_up(first, first_errors, game.answered)
    # the pilot's rewards are not used again: merits stay unbiased
    n_orders, listings = _plan(blocks, deviation, m, queries - spent, noisy)
    spent += int(n_orders @ blocks) + sum(
        n * comb(m, s) for s, n in enumerate(listings.tolist(), 1)
    )
    parts, errors = _all_sizes(game, n_orders, listings, rng)
    if game.stopped:  # sizes not reached are those of the pilot
        unknown = np.isnan(errors)
        parts, errors = np.where(unknown, first, parts), np.where(unknown, first_errors, errors)
        spent = game.answered
    return _sum_up(parts, errors, spent)


def _sum_up(parts: Floats, errors: Floats, spent: int) -> Estimate:
    """Merits of what each size adds to k times them."""
    k = len(parts)
    return Estimate(parts.sum(axis=0) / k, np.sqrt((errors**2).sum(axis=0)) / k, spent)


def _all_sizes(
    game: Asked, n_orders: Ints, listings: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """What each size adds to K times the merits, and its standard error (k, m).

    From listings of all sets of a size where these are asked for, else from orders. nan for sizes
    that Ctrl-C left without enough of them for a standard error.
    """
    k, m = len(n_orders), game.m
    parts, errors, before = np.empty((k, m)), np.empty((k, m)), np.zeros(m)
    for s in range(1, k + 1):
        if listings[s - 1]:
            samples = by_listing(game, s, int(listings[s - 1]), rng)
        else:
            samples = by_orders(game, s, int(n_orders[s - 1]), before, rng)
        part, contrast = RunningMean(m), np.zeros(m)
        for contrasts, levels in samples:
            part.add(contrasts if s < k else levels[:, None] + (m - k) / m * contrasts)
            contrast += contrasts.sum(axis=0)
        if part.n == 0 or (game.stopped and part.n < 2):
            parts[s - 1 :], errors[s - 1 :] = np.nan, np.nan
            return parts, errors
        parts[s - 1], errors[s - 1] = part.mean, part.stderr
        before = (contrast - contrast.mean()) / part.n
    return parts, errors


def _plan(blocks: Ints, deviation: Floats, m: int, queries: int, noisy: bool) -> tuple[Ints, Ints]:
    """Number of orders of each size, or how often all its sets are listed where that is cheaper.

    Queries that listings leave over go to the other sizes, which may suffice to list those too.
    """
    k = len(blocks)
    n_orders, listings = np.zeros(k, np.int64), np.zeros(k, np.int64)
    if not noisy and count_up_to(m, k) <= queries:
        return n_orders, listings + 1
    while (sampled := np.flatnonzero(listings == 0)).size:
        n_orders[sampled] = _allocate(blocks[sampled], deviation[sampled], queries)
        for s in sampled.tolist():
            share, n_sets = int(n_orders[s] * blocks[s]), comb(m, s + 1)
            times = max(2, share // n_sets) if noisy else 1
            if times * n_sets <= share:
                listings[s], n_orders[s], queries = times, 0, queries - times * n_sets
        if not listings[sampled].any():
            return n_orders, listings
    for s in sorted(range(k), key=lambda s: -comb(m, s + 1)):  # all are listed: spend the rest
        again = queries // comb(m, s + 1)
        listings[s], queries = listings[s] + again, queries - again * comb(m, s + 1)
    return n_orders, listings


def _allocate(blocks: Ints, deviation: Floats, queries: int) -> Ints:
    """Number of orders of each size: two, and Neyman's allocation of the queries left.

    That is, in proportion to the standard deviation over the root of the cost.
    """
    spare = queries - 2 * blocks.sum()
    wish = deviation / np.sqrt(blocks)
    return 2 + np.floor(spare * wish / (wish * blocks).sum()).astype(np.int64)


def by_listing(game: Asked, size: int, n: int, rng: np.random.Generator) -> Samples:
    """Contrasts and levels of n queries of every set of a size."""

    def pull(sets: Ints) -> Floats:
        return _pull(game, sets, rng)

    for part in chunks(n, comb(game.m, size), SETS):
        inside, outside = mean_values(game.m, size, pull, part.stop - part.start)
        if game.stopped:  # go on with the listings that are complete
            whole = np.isfinite(inside).all(axis=1)
            inside, outside = inside[whole], outside[whole]
        if len(inside):
            yield inside - outside, inside.mean(axis=1)
        if game.stopped:
            return


def by_orders(
    game: Asked, size: int, n: int, believed: Floats, rng: np.random.Generator
) -> Samples:
    """Contrasts and levels of n orders, with ``believed`` contrasts, of mean 0, as control variate.

    They are the true contrasts of the additive game in which each arm is worth (m - 1) / m of its
    own. Contrasts of that game on the same sets differ from the true ones by an error that is known
    and has mean 0; the game at hand has a similar error, which is reduced by it.
    """
    m = game.m
    adds = believed * ((m - 1) / m)
    for part in chunks(n, n_blocks(m, size) * size, BLOCK_CELLS):
        count = part.stop - part.start
        sets = cut_orders(m, size, count, rng)
        rewards = _pull(game, sets, rng)
        if game.stopped:  # go on with the orders before the first that is not complete
            cut = n_blocks(m, size)
            whole = np.isfinite(rewards.reshape(count, cut)).all(axis=1)
            count = count if whole.all() else int(whole.argmin())
            sets, rewards = sets[: count * cut], rewards[: count * cut]
            if count == 0:
                return
        contrasts, levels = _contrast(sets, rewards, count, m)
        if size < m:
            shown, _ = _contrast(sets, adds[sets].sum(axis=1), count, m)
            contrasts = _corrected(contrasts, shown - believed)
        yield contrasts, levels
        if game.stopped:
            return


def _pull(game: Asked, sets: Ints, rng: np.random.Generator) -> Floats:
    """Rewards (n,) of sets of one size, beyond what the empty set brings."""
    sizes = np.full((len(sets), 1), sets.shape[1])
    return game.pull(sets, sizes, rng)[:, 0] - game.empty


def _corrected(samples: Floats, off: Floats) -> Floats:
    """Samples (n, m) less their regression on ``off``, of mean 0: smaller variance, the same mean.

    One factor serves all arms of a sample. It is computed from the other samples, and so does not
    depend on the one it is applied to.
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


@compiled
def _contrast(sets: Ints, values: Floats, n: int, m: int) -> tuple[Floats, Floats]:
    """Contrasts (n, m) of n orders, mean inside minus mean outside, and their mean values (n,).

    Where all arms are inside, the mean outside counts as 0; such contrasts get no weight.
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

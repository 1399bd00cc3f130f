"""The full-set value of a game: exact by listing all K-sets, and estimated from some of them."""

from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.checks import check_integer, check_rng
from evenhand.estimate import Estimate
from evenhand.games.game import Game, check_game
from evenhand.merit.asking import Asked, How, asking
from evenhand.merit.bar import Progress
from evenhand.merit.blocks import n_blocks
from evenhand.merit.cache import Cache
from evenhand.merit.exact import listed_by, mean_values
from evenhand.merit.running_mean import RunningMean
from evenhand.merit.stratified import PILOT, by_listing, by_orders
from evenhand.subsets.full_sets import full_set_values
from evenhand.typing import Floats


def full_set_value(
    game: Game,
    k: int,
    *,
    max_sets: int = 10**9,
    executor: Any = None,
    progress: Progress = None,
    cache: Cache | str | Path | None = None,
    batch: int | None = None,
) -> Floats:
    r"""Full-set values of any game by one pass over all sets of exactly k arms.

    .. math:: \psi_a = \frac{\bar V_K}{K} + \frac{M-1}{M-K} (v^+_{aK} - \bar V_K)

    with :math:`\bar V_K` the mean value of the K-sets and :math:`v^+_{aK}` that of those with a.
    It is the one value that is linear, symmetric and K-efficient, looks at K-sets only, and gives
    the arms of an additive game their worths. It is *not* the K-Shapley value, which K-sets alone
    do not determine: an arm that never adds anything can have a full-set value above 0, and
    one below 0 where gains grow. For k = m there is one set, and each arm has V / m.

    Parameters
    ----------
    game
        Any game with an exact mean ``value``.
    k
        Arms in every set, 1 <= k <= m.
    max_sets
        Refuse to list more sets than this.
    executor, progress, cache, batch
        For slow functions, as for :func:`~evenhand.kshapley`.

    Returns
    -------
    (m,) full-set values.

    Examples
    --------
    >>> from evenhand.games import NoisyOr, additive
    >>> full_set_value(additive([0.1, 0.2, 0.3]), k=2).round(6)
    array([0.1, 0.2, 0.3])
    >>> full_set_value(NoisyOr([0.5, 0.5, 0.0]), k=2).round(6)  # the last arm adds nothing
    array([0.375, 0.375, 0.125])
    """
    m, k = check_game(game, k, "value")
    game.value(np.zeros((0, m), np.bool_))  # a game without an exact mean says so here
    if (n_sets := comb(m, k)) > check_integer("max_sets", max_sets, 1):
        raise ValueError(
            f"exact full-set values need max_sets >= {n_sets:.3g} values at m={m}, k={k}, "
            f"got max_sets={max_sets}; estimate them with evenhand.merit.full_set_estimate"
        )

    with asking(game, n_sets, k, How(executor, progress, cache, batch)) as asked:
        inside = mean_values(m, k, listed_by(asked))[0][0]
        asked.finish(None)
    return full_set_values(inside, inside.mean(), k)


def full_set_estimate(
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
    """Estimate full-set values from random sets of exactly k arms, each of which serves all arms.

    Random orders of the arms are cut into sets as in :func:`evenhand.merit.stratified`. With enough
    queries a tenth of them predicts the effect of the other members of a set, which is removed
    from the rest; with enough to list all sets twice (once, if the game has no noise) they are.

    Parameters
    ----------
    game, k
        The game and K, the arms in every set.
    queries
        The most queries to spend: enough for two orders, or for all sets of a game without noise.
    rng
        Source of randomness.
    executor, progress, cache, batch
        For slow functions, as for :func:`~evenhand.kshapley`.

    Returns
    -------
    Estimate
        Full-set values as ``merit``, their standard errors, and the queries spent.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2, 0.4])
    >>> found = full_set_estimate(game, 2, queries=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.merit - full_set_value(game, 2)) < 4 * found.stderr))
    True
    """
    m, k = check_game(game, k, "pull")
    noisy, least = getattr(game, "noise", True) is not None, 2 * n_blocks(m, k)
    least = least if noisy else min(least, comb(m, k))
    queries = check_integer("queries", queries, least)
    check_rng(rng)
    with asking(game, queries, k, How(executor, progress, cache, batch)) as asked:
        estimate = _estimate(asked, k, queries, noisy, rng)
        asked.finish(estimate)
    return estimate


def _estimate(game: Asked, k: int, queries: int, noisy: bool, rng: np.random.Generator) -> Estimate:
    m, blocks, n_sets = game.m, n_blocks(game.m, k), comb(game.m, k)
    found, believed = RunningMean(m), np.zeros(m)
    listings = queries // n_sets if noisy else min(1, queries // n_sets)
    listed = n_sets == blocks  # by every order: sets have 1, m - 1 or m arms
    if listings >= 1 + noisy and not (listed and noisy):
        samples, spent = by_listing(game, k, listings, rng), listings * n_sets
    else:
        orders = queries // blocks
        spent = orders * blocks
        if (pilot := orders // PILOT) > 1 and not listed:
            for contrasts, _ in by_orders(game, k, pilot, believed, rng):
                believed = believed + contrasts.sum(axis=0) / pilot
            believed -= believed.mean()
            orders -= pilot  # whose rewards are not used again: values stay unbiased
        samples = by_orders(game, k, orders, believed, rng)
    for contrasts, levels in samples:
        inside = levels[:, None] + (m - k) / m * contrasts
        found.add(full_set_values(inside, levels[:, None], k))
    if not game.stopped:
        return Estimate(found.mean, found.stderr, spent)
    if found.n < 2:  # Ctrl-C: nothing is known yet
        return Estimate(np.full(m, np.nan), np.full(m, np.nan), game.answered)
    return Estimate(found.mean, found.stderr, game.answered)

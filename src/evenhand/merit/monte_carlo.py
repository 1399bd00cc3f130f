"""K-Shapley values from marginal gains sampled arm by arm, as in the paper."""

from pathlib import Path
from typing import Any

import numpy as np

from evenhand.checks import check_integer, check_rng
from evenhand.estimate import Estimate
from evenhand.games.game import Game, check_game, chunks
from evenhand.merit.asking import How, asking
from evenhand.merit.bar import Progress
from evenhand.merit.cache import Cache
from evenhand.merit.running_mean import GroupedMean
from evenhand.subsets.predecessors import draw_predecessors

BLOCK_CELLS = 2**22  # cells of the orders drawn at once


def monte_carlo(
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
    r"""Estimate merits as the paper's reference does: marginal gains sampled arm by arm.

    For each arm, draw a uniformly random K-set that contains it and a random order; one sample is
    :math:`\hat V(B \cup a) - \hat V(B)` with B the arms before a. A game with ``pull_coupled``
    (a cascade) answers both from one live-edge graph.

    Parameters
    ----------
    game, k
        The game and K, the most arms in a set.
    queries
        The most queries to spend, at least 4 m: two samples of two queries per arm. A query of
        the empty set counts.
    rng
        Source of randomness.
    executor, progress, cache, batch
        For slow functions, as for :func:`~evenhand.kshapley`.

    Returns
    -------
    Estimate
        Merits, standard errors and the queries spent.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> found = monte_carlo(game, 2, queries=3000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.merit - game.kshapley(2)) < 4 * found.stderr))
    True
    """
    m, k = check_game(game, k, "pull")
    n = check_integer("queries", queries, 4 * m) // (2 * m)
    check_rng(rng)
    gains = GroupedMean(m)
    with asking(game, 2 * m * n, 1, How(executor, progress, cache, batch)) as asked:
        for part in chunks(m * n, k, BLOCK_CELLS):
            arms = np.arange(part.start, part.stop) // n
            orders, sizes = draw_predecessors(arms, m, k, rng)
            rewards = asked.pull_coupled(orders, sizes, rng)
            gain = rewards[:, 1] - rewards[:, 0]
            if asked.stopped:
                known = np.isfinite(gain)
                arms, gain = arms[known], gain[known]
            gains.add(arms, gain)
            if asked.stopped:
                break
        spent = asked.answered if asked.stopped else 2 * m * n
        estimate = Estimate(gains.mean, gains.stderr, spent)
        asked.finish(estimate)
    return estimate

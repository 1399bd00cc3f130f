"""K-Shapley values from marginal gains sampled arm by arm, as in the paper."""

import numpy as np

from evenhand.checks import check_integer, check_rng
from evenhand.estimate import Estimate
from evenhand.games.game import Game, check_game, chunks
from evenhand.merit.running_mean import RunningMean
from evenhand.subsets.predecessors import draw_predecessors

BLOCK_CELLS = 2**22  # cells of the orders drawn at once


def monte_carlo(game: Game, k: int, queries: int, rng: np.random.Generator) -> Estimate:
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
    pull = getattr(game, "pull_coupled", game.pull)
    merit, stderr = np.empty(m), np.empty(m)
    for arm in range(m):
        gain = RunningMean(1)
        for part in chunks(n, k, BLOCK_CELLS):
            arms = np.full(part.stop - part.start, arm)
            orders, sizes = draw_predecessors(arms, m, k, rng)
            rewards = pull(orders, sizes, rng)
            gain.add(rewards[:, 1:] - rewards[:, :1])
        merit[arm], stderr[arm] = gain.mean[0], gain.stderr[0]
    return Estimate(merit, stderr, 2 * m * n)

"""K-Shapley values from queries arm by arm, as in the paper."""

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.games.game import Game
from evenhand.merit.estimate import Estimate, Sums
from evenhand.subsets.predecessors import draw_predecessors

BLOCK_CELLS = 2**22  # cells of the orders drawn at once


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
    values, stderr = np.empty(m), np.empty(m)
    rows = max(1, BLOCK_CELLS // k)
    for arm in range(m):
        sums = Sums(1)
        for start in range(0, n, rows):
            arms = np.full(min(rows, n - start), arm)
            orders, sizes = draw_predecessors(arms, m, k, rng)
            rewards = pull(orders, sizes, rng)
            sums.add(rewards[:, 1:] - rewards[:, :1])
        values[arm], stderr[arm] = sums.mean[0], sums.stderr[0]
    return Estimate(values, stderr, 2 * m * n)

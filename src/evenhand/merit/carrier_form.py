"""Any game as a sum of carrier games (the paper's Claim 1)."""

import numpy as np

from evenhand.games.carrier import Carrier
from evenhand.games.game import Game, check_game

MAX_ARMS = 22  # of which all 2^22 subsets are held in memory at once


def carrier_form(game: Game, k: int) -> Carrier:
    r"""Write a game on the sets of at most k arms as a sum of carrier games.

    The coefficients are the Möbius transform
    :math:`\alpha_D = \sum_{S \subseteq D} (-1)^{|D| - |S|} V(S)`; they are unique, and the result
    agrees with the game on every set of at most k arms. Lists all subsets: m <= 22.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> carrier_form(NoisyOr([0.5, 0.2]), k=2).coefficients
    array([ 0.5,  0.2, -0.1])
    """
    m, k = check_game(game, k, "value")
    if m > MAX_ARMS:
        raise ValueError(f"the carrier form lists all subsets: m must be <= {MAX_ARMS}, got m={m}")
    sets = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1
    sizes = sets.sum(axis=1)
    feasible = (sizes >= 1) & (sizes <= k)
    alpha = np.zeros(2**m)  # sets above k stay 0: no feasible D contains them
    alpha[feasible] = game.value(sets[feasible])
    for arm in range(m):
        pairs = alpha.reshape(-1, 2, 2**arm)  # [:, 0] without the arm, [:, 1] with it
        pairs[:, 1] -= pairs[:, 0]
    coalitions = [np.flatnonzero(row).tolist() for row in sets[feasible]]
    return Carrier(coalitions, alpha[feasible], m)

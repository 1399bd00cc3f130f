"""The two instances behind the paper's lower bound."""

from math import comb

import numpy as np

from evenhand.checks import check_budget, check_positive
from evenhand.games.carrier import Carrier
from evenhand.games.noise import Bernoulli
from evenhand.theory import largest_gap


def hard_pair(m: int, k: int, delta: float) -> tuple[Carrier, Carrier]:
    r"""Make the two instances :math:`V_0, V_1` of the paper's lower bound, Bernoulli rewards.

    Both are monotone, submodular and below 1. Of all sets of at most k arms, they differ on one
    only, by ``delta``: :math:`S^\dagger`, arms 1..k here. Under :math:`V_0` arm 0 is due in every
    set, and :math:`S^\dagger` does not hold it, so that trying it costs regret.

    Parameters
    ----------
    m, k
        Number of arms and the most arms in a set, 1 < k < m.
    delta
        The difference, above 0 and at most :math:`\zeta/2 = (k-1)/(8k(m-1))`.

    Examples
    --------
    >>> one, other = hard_pair(m=4, k=2, delta=0.02)
    >>> (other.value(one.members) - one.value(one.members)).round(6)  # each arm, then S
    array([0.  , 0.  , 0.  , 0.  , 0.02])
    """
    m, k = check_budget(m, k)
    most, delta = largest_gap(m, k), check_positive("delta", delta)
    if delta > most:
        raise ValueError(f"delta must be at most zeta/2={most:g}, got delta={delta!r}")
    beta, zeta = 1 / (4 * k), 2 * most
    rho = delta / (k * comb(m - 1, k - 1))
    special = list(range(1, k + 1))
    worth = np.full(m, zeta)
    worth[0] = beta
    worth[special] += rho
    singles = [[a] for a in range(m)]
    return (
        Carrier([*singles, special], [*worth, -delta], m, noise=Bernoulli()),
        Carrier(singles, worth, m, noise=Bernoulli()),
    )

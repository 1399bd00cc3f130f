"""The two instances behind the paper's lower bound."""

from math import comb

import numpy as np

from evenhand.checks import check_budget, check_positive
from evenhand.games.carrier import Carrier
from evenhand.games.noise import Bernoulli


def hard_pair(m: int, k: int, delta: float) -> tuple[Carrier, Carrier]:
    r"""Make the two instances :math:`V_0, V_1` of the paper's lower bound, Bernoulli rewards.

    Both are monotone, submodular and below 1, and they differ by ``delta`` on one feasible set,
    :math:`S^\dagger`, arms 1..k here. Arm 0 is always due under :math:`V_0`, so looking at
    :math:`S^\dagger` costs regret.

    Parameters
    ----------
    m, k
        Arms and budget, 1 < k < m.
    delta
        The difference, above 0 and at most :math:`\zeta/2 = (k-1)/(8k(m-1))`.
    """
    m, k = check_budget(m, k)
    if not 1 < k < m:
        raise ValueError(f"k must satisfy 1 < k < m for the hard pair, got k={k} with m={m}")
    delta = check_positive("delta", delta)
    beta = 1 / (4 * k)
    zeta = (k - 1) / (m - 1) * beta
    if delta > zeta / 2:
        raise ValueError(f"delta must be at most zeta/2={zeta / 2:g}, got delta={delta:g}")
    rho = delta / (k * comb(m - 1, k - 1))
    special = list(range(1, k + 1))
    worth = np.full(m, zeta)
    worth[0] = beta
    worth[special] += rho
    singles = [[a] for a in range(m)]
    v0 = Carrier([*singles, special], [*worth, -delta], m, noise=Bernoulli())
    v1 = Carrier(singles, worth, m, noise=Bernoulli())
    return v0, v1

"""From merits to marginals: how often each arm is due."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_vector
from evenhand.typing import Floats, compiled


def fair_policy(merit: ArrayLike, k: int) -> Floats:
    r"""Marginals proportional to merit, capped at 1.

    :math:`\pi^*_a = K \phi_a / \sum_b \phi_b` where no entry exceeds 1 (the paper assumes so).
    Where one does, exact proportionality is impossible: it is cut to 1 and the rest shared in
    proportion again, see :func:`waterfill`.

    Parameters
    ----------
    merit
        Non-negative merits (m,), for instance from :func:`evenhand.kshapley`.
    k
        Budget, 1 <= k <= m.

    Returns
    -------
    (m,) marginals in [0, 1] that sum to k.

    Examples
    --------
    >>> fair_policy([0.4, 0.4, 0.2], k=1)
    array([0.4, 0.4, 0.2])
    >>> fair_policy([0.8, 0.1, 0.1], k=2)
    array([1. , 0.5, 0.5])
    """
    if hasattr(merit, "stderr"):
        raise TypeError(f"merit must be a vector, got {type(merit).__name__}; pass its .values")
    remedy = "np.maximum(merit, 0) counts harm and noise as nothing; nan is an arm not yet seen"
    return waterfill(check_vector("merit", merit, 0.0, np.inf, remedy), k)


def waterfill(scores: ArrayLike, k: int) -> Floats:
    r"""Capped proportional marginals :math:`\min(1, \lambda s_a)` that sum to k.

    If fewer than k scores are positive, those arms get 1 and the others share the rest equally
    (the paper's appendix, "Waterfilling").

    Parameters
    ----------
    scores
        Non-negative scores (m,).
    k
        Budget, 1 <= k <= m.

    Examples
    --------
    >>> waterfill([3.0, 1.0, 0.0, 0.0], k=3)
    array([1. , 1. , 0.5, 0.5])
    """
    vector = check_vector("scores", scores, 0.0, np.inf)
    _, k = check_budget(len(vector), k)
    return fill(vector, k)


def project_l1(target: ArrayLike, k: int) -> Floats:
    r"""Nearest marginals in the :math:`\ell_1` norm, keeping proportions where it can.

    The nearest point of :math:`\{p \in [0,1]^M : \sum p = K\}` is not unique: cutting entries to
    [0, 1] and then only raising, or only lowering, is optimal however the mass is spread.
    Here it is spread by :func:`waterfill`. A target that sums to k moves by twice its excess
    above 1.

    Parameters
    ----------
    target
        Any finite vector (m,).
    k
        Budget, 1 <= k <= m.

    Examples
    --------
    >>> project_l1([1.5, 0.3, 0.2], k=2)
    array([1. , 0.6, 0.4])
    """
    vector = check_vector("target", target, -np.inf, np.inf)
    _, k = check_budget(len(vector), k)
    return fill(np.clip(vector, 0.0, 1.0), k)


@compiled
def fill(scores: Floats, k: int) -> Floats:
    """Waterfilling without checks: cap what exceeds 1, share the rest again, until none does."""
    m = len(scores)
    full = np.zeros(m, np.bool_)
    left, positive = k, np.count_nonzero(scores)
    if positive <= k:
        rest = 0.0 if positive == m else (k - positive) / (m - positive)
        return np.where(scores > 0.0, 1.0, rest)
    top = scores.max()  # scaled by the largest: no sum overflows
    while True:
        total = 0.0
        for a in range(m):
            if not full[a]:
                total += scores[a] / top
        capped = 0
        for a in range(m):
            if not full[a] and left * (scores[a] / top) > total:
                full[a] = True
                capped += 1
        left -= capped
        if capped == 0 or left == 0:
            break
    marginals = np.zeros(m)
    for a in range(m):
        marginals[a] = 1.0 if full[a] else left * (scores[a] / top) / total
    return marginals


@compiled
def clip_to_sum(scores: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Find x_a = clip(c s_a, low_a, high_a) with the given sum, for scores above 0.

    The sum grows with c, piecewise linearly: Newton's step is exact on the right piece, and
    halving finds that piece.
    """
    below, above = 0.0, (high / scores).max()
    c = min(total / scores.sum(), above)
    x = np.empty_like(scores)
    for _ in range(200):
        lacking, slope = total, 0.0
        for a in range(len(scores)):
            x[a] = min(max(c * scores[a], low[a]), high[a])
            lacking -= x[a]
            if low[a] < x[a] < high[a]:
                slope += scores[a]
        if abs(lacking) <= 1e-14 * total or not below < above:
            break
        if lacking > 0.0:
            below = max(below, c)
        else:
            above = min(above, c)
        step = c + lacking / slope if slope > 0.0 else np.inf
        c = step if below < step < above else 0.5 * (below + above)
    return x

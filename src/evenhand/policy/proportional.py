"""Marginals in proportion to merits, and within bounds."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_vector
from evenhand.estimate import Estimate
from evenhand.policy.terms import Terms
from evenhand.typing import Floats, compiled


def fair_policy(merit: ArrayLike | Estimate, k: int, terms: Terms | None = None) -> Floats:
    r"""Marginals proportional to merit, capped at 1, or within terms.

    :math:`\pi^*_a = K \phi_a / \sum_b \phi_b` where no entry exceeds 1 (the paper assumes so).
    Where one does, exact proportionality is impossible: it is cut to 1 and the rest shared in
    proportion again, see :func:`waterfill`. With terms, they are the nearest to proportional
    that floors, caps and groups allow, see :class:`Terms`.

    Parameters
    ----------
    merit
        Non-negative merits (m,), for instance from :func:`evenhand.kshapley`; or an estimate, of a
        learner or an estimator, in which what is below 0 counts as 0.
    k
        Budget, 1 <= k <= m.
    terms
        Floors, caps, groups and a power of merit. Arms are named in them by their number, or as in
        the estimate.

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
    names = merit.names if isinstance(merit, Estimate) else None
    if isinstance(merit, Estimate):
        merit = np.maximum(merit.merit, 0.0)
    remedy = "np.maximum(merit, 0) counts harm and noise as nothing; nan is an arm not yet seen"
    if terms is None:
        return waterfill(check_vector("merit", merit, 0.0, np.inf, remedy), k)
    if not isinstance(terms, Terms):
        raise TypeError(f"terms must be Terms(...), got {terms!r}")
    vector = check_vector("merit", merit, 0.0, np.inf, remedy)
    terms.check_known(np.arange(len(vector)), names)
    return terms.policy(vector, k, names=names)


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
    """Waterfill unchecked scores; if at most k are positive, these get 1, others share the rest."""
    m, n, top = len(scores), 0, 0.0
    for score in scores:
        n += score > 0.0
        top = score if score > top else top
    marginals = np.empty(m)
    if n <= k:
        rest = 0.0 if n == m else (k - n) / (m - n)
        for a in range(m):
            marginals[a] = 1.0 if scores[a] > 0.0 else rest
        return marginals
    for a in range(m):
        marginals[a] = scores[a] / top  # no sum overflows
    c, left, among = find_scale(marginals, 0.0, 1.0, float(k))
    for a in range(m):
        share = marginals[a]
        marginals[a] = 1.0 if c * share > 1.0 else left * share / among
    return marginals


def clip_to_sum(scores: Floats, low: float, high: float, total: float) -> Floats:
    """Find x_a = clip(c s_a, low, high) with the given sum, for positive scores."""
    c, _, _ = find_scale(scores, low, high, float(total))
    return np.minimum(np.maximum(c * scores, low), high)


@compiled
def find_scale(scores: Floats, low: float, high: float, total: float) -> tuple[float, float, float]:
    """Find c at which clip(c s_a, low, high) sum to the total.

    Returns c, what the clipped entries leave of the total, and the sum of the other scores; c is
    the second over the third. The sum is piecewise linear in c and grows with it, so that Newton's
    step is exact on the right piece. Without a lower bound the steps are the rounds of waterfilling
    and never pass the solution; with one, bisection brings back those that do.
    """
    smallest, sum_of_scores = np.inf, 0.0
    for score in scores:
        smallest = score if score < smallest else smallest
        sum_of_scores += score
    below, above = 0.0, high / smallest
    c, at_bounds, among = total / sum_of_scores, np.nan, np.nan
    for _ in range(200):
        last_bounds, last_among = at_bounds, among
        lacking, at_bounds, among = total, 0.0, 0.0
        for a in range(len(scores)):
            x = c * scores[a]
            free = low <= x <= high
            x = low if x < low else x  # min and max would look for nan, at a cost
            x = high if x > high else x
            lacking -= x
            at_bounds += 0.0 if free else x
            among += scores[a] if free else 0.0
        if abs(lacking) <= 1e-14 * total or (last_bounds == at_bounds and last_among == among):
            break  # the right piece
        if lacking > 0.0:
            below = c
        else:
            above = c
        c = c + lacking / among if among > 0.0 else np.inf
        if not below < c < above:
            c, among = 0.5 * (below + above), np.nan
    return c, total - at_bounds, among

"""Finding the log weights of a maximum-entropy design from its marginals."""

import numpy as np

from evenhand.designs.poisson_binomial import centre, centred_coins, condition, sigmoid
from evenhand.typing import Floats, Ints, compiled

MAX_STEPS = 500
NEAR = 0.01  # how well log-odds are centred, in standard deviations: P(N = k) is then large

# log weights, the marginals they give and their log-odds (nan for arms without a choice); arms with
# a choice, arms always in, the free coins p and 1 - p, and log Z of their weights. No named tuple:
# handing one out of compiled code costs as much as a small fit.
Law = tuple[Floats, Floats, Floats, Ints, Ints, Floats, Floats, float]


@compiled
def describe(log_weights: Floats, k: int) -> Law:
    """Work out the law of log weights, their free part shifted near enough to the centre."""
    free = np.flatnonzero(np.isfinite(log_weights))
    n_always = np.sum(log_weights == np.inf)
    theta = log_weights[free]
    if len(theta) == 0:
        return _law(log_weights, theta, theta, theta, 0.0, theta, theta)
    theta, p, q = centred_coins(theta, k - n_always, NEAR)
    log_heads, given, rest = condition(p, q, k - n_always)
    return _law(log_weights, theta, p, q, log_heads, given, np.log(given / rest))


@compiled
def _law(
    log_weights: Floats,
    theta: Floats,
    p: Floats,
    q: Floats,
    log_heads: float,
    given: Floats,
    logits: Floats,
) -> Law:
    """Put free and certain arms together."""
    always = np.flatnonzero(log_weights == np.inf)
    free = np.flatnonzero(np.isfinite(log_weights))
    centred, marginals = log_weights.copy(), np.zeros(len(log_weights))
    log_odds = np.full(len(log_weights), np.nan)
    centred[free], marginals[free], log_odds[free], marginals[always] = theta, given, logits, 1.0
    # chance of k heads over that of none: few logarithms of long products
    log_tails, product = 0.0, 1.0
    for a in range(len(theta)):
        if q[a] < 1e-100:
            log_tails += theta[a]
        else:
            product *= q[a]
        if product < 1e-100:
            log_tails -= np.log(product)
            product = 1.0
    log_tails -= np.log(product)
    return centred, marginals, log_odds, free, always, p, q, log_heads + log_tails


@compiled
def split_certain(target: Floats, k: int) -> tuple[Floats, Floats, int]:
    """Log-odds of the target, infinite where it leaves no choice; free ones; their budget."""
    theta = np.log(target / (1.0 - target))  # infinite at 0 and 1
    theta[target < 1e-300] = -np.inf
    free = np.flatnonzero(np.isfinite(theta))
    k_free = k - np.sum(target == 1.0)
    if k_free <= 0 or k_free >= len(free):  # the free entries are 0 or 1 but for rounding
        theta[free] = np.inf if k_free > 0 else -np.inf
        return theta, np.empty(0), 0
    wanted = theta[free]
    wanted += centre(wanted, k_free)  # what the sum lacks to an integer
    theta[free] = wanted
    return theta, wanted, k_free


@compiled
def calibrate(
    target: Floats, start: Floats, start_log_odds: Floats, k: int, tol: float
) -> tuple[Law, float, int]:
    """Find the law whose marginals are the target; also the error left and the steps taken.

    ``start`` are log weights to begin with and ``start_log_odds`` those of their marginals; nan
    where there are none.
    """
    theta, wanted, k_free = split_certain(target, k)
    free = np.flatnonzero(np.isfinite(theta))
    if len(free) == 0:
        return describe(theta, k), 0.0, 0
    # conditioning raises log-odds by about pi / variance, up to a constant (Hajek, 1964)
    chances, others = sigmoid(wanted)
    begin = wanted - chances / max(1.0, (chances * others).sum())
    begin = np.where(np.isfinite(start[free]), start[free], begin)
    step = wanted - start_log_odds[free]  # the first one, where the beginning is a known design
    if not np.isfinite(step).all() or np.isfinite(start_log_odds).sum() != len(free):
        step = step[:0]
    found, p, q, log_heads, given, logits, steps = _fit(begin, step, wanted, chances, k_free, tol)
    law = _law(theta, found, p, q, log_heads, given, logits)
    return law, np.abs(given - chances).max(), steps


@compiled
def _fit(
    theta: Floats, step: Floats, wanted: Floats, target: Floats, k: int, tol: float
) -> tuple[Floats, Floats, Floats, float, Floats, Floats, int]:
    """Fixed point of the logits; ``wanted`` are the target's log-odds."""
    length, n = 1.0, 0
    if len(step) > 0:
        theta, n = theta + step, 1
    while True:
        theta, p, q = centred_coins(theta, k, NEAR)
        log_heads, given, rest = condition(p, q, k)
        logits = np.log(given / rest)
        if np.abs(given - target).max() <= tol or n >= MAX_STEPS:
            return theta, p, q, log_heads, given, logits, n
        lacking = wanted - logits
        if n > 0:  # Barzilai-Borwein: the length that would have made the last step right
            change = step - lacking
            length = length * (step * change).sum() / (change * change).sum()
            length = min(1.0, max(0.25, length))
        step = lacking
        theta = theta + length * step
        n += 1

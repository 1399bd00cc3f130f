"""Finding the coins of a maximum-entropy design from its marginals.

A law is an array of five rows with one column per arm: log weights, marginals, 1 minus the
marginals, and p and 1 - p of the arm's coin. Independent coins with these p, given that they show k
heads, show that of an arm with the chance of its marginal. p and 1 - p are kept apart because each
has to be right in all its digits, however small. Fitting works on the coins alone: odds are
multiplied, and a step needs no exponential and no logarithm per arm.
"""

import math

import numpy as np

from evenhand.designs.poisson_binomial import (
    by_contour,
    by_recursion,
    centre,
    condition,
    sigmoid,
)
from evenhand.typing import Floats, Ints, compiled, part

LOG_WEIGHTS, MARGINALS, REST, HEADS, TAILS = range(5)  # the rows of a law
MAX_STEPS = 500
# Factor by which the odds of an old coin may differ from the likely ones for a fit to start there.
# A step sees a ratio r as 2 (r - 1) / (r + 1), which is 1.96 at r = 100 and never above 2: beyond
# that it hardly sees how far off the coin is.
MAX_START_RATIO = 100.0
# standard deviations between k and the expected heads that are near enough for a large P(N = k)
NEAR = 0.01
NOTHING = np.empty((5, 0))  # no law to begin with


def describe(log_weights: Floats, k: int, law: Floats) -> float:
    """Work out the law of log weights, shifted near enough to the centre; returns log Z."""
    finite = np.isfinite(log_weights)
    free: Ints | slice = slice(None) if finite.all() else finite.nonzero()[0]
    theta, p, q = law[LOG_WEIGHTS], law[HEADS], law[TAILS]
    theta[:], p[:], q[:] = log_weights, log_weights == np.inf, log_weights == -np.inf
    if finite.any():
        k_free = k - int(np.count_nonzero(p))
        theta[free] += centre(log_weights[free], k_free, NEAR)
        p[free], q[free] = sigmoid(theta[free])
    log_heads = condition(p, q, k, law[MARGINALS], law[REST])
    return _log_normaliser(law, log_heads)


@compiled
def calibrate(
    target: Floats, k: int, tol: float, old: Floats, law: Floats, points: Floats | None
) -> tuple[float, float, int]:
    """Find the law whose marginals are the target; returns log Z, the error left and the steps.

    ``old`` is a law to begin with, or :data:`NOTHING`; ``points`` is what conditioning needs.
    Entries of the target are 0 or 1 where the others leave no choice.
    """
    given, rest, p, q = law[MARGINALS], law[REST], law[HEADS], law[TAILS]
    damping, step = np.empty(len(target)), np.empty(len(target))
    length, n = 1.0, _begin(target, old, p, q, damping, step)
    while True:
        _recentre(p, q, k)
        if points is None:  # then no contour is compiled
            log_heads = by_recursion(p, q, k, given, rest)
        else:
            log_heads = by_contour(p, q, k, given, rest, points)
        error = 0.0
        for a in range(len(target)):
            if not abs(given[a] - target[a]) <= error:  # nan shows
                error = abs(given[a] - target[a])
        if error <= tol or n >= MAX_STEPS:
            for a in range(len(target)):
                law[LOG_WEIGHTS, a] = math.log(p[a] / q[a])
            return _log_normaliser(law, log_heads), error, n
        length = _lengthen(target, given, rest, damping, step, length, n)
        for a in range(len(target)):
            if 0.0 < target[a] < 1.0:
                up, down = target[a] * rest[a], (1.0 - target[a]) * given[a]
                p[a], q[a] = _tilt(p[a], q[a], up, down, length * damping[a])
        n += 1


@part
def _begin(target: Floats, old: Floats, p: Floats, q: Floats, damping: Floats, step: Floats) -> int:
    """Choose the first coins; returns how many steps of the fit that was, 0 or 1.

    Conditioning adds about pi / variance to log-odds, up to a constant (Hajek, 1964). So likely
    coins have the target's odds times exp(-x), x = pi / variance <= 1, here by its Pade approximant
    (12 - 6x + x^2) / (12 + 6x + x^2), whose relative error x^5 / 720 is small beside Hajek's. And
    log-odds of marginals grow faster than those of coins, by 1 + pi (1 - pi) / variance; one over
    that is the ``damping``. Old coins that are not far from the likely ones take their first step
    here.
    """
    variance = 0.0
    for t in target:
        variance += t * (1.0 - t)
    variance = 1.0 if variance < 1.0 else variance
    for a in range(len(target)):
        t = target[a]
        p[a], q[a], damping[a] = t, 1.0 - t, variance / (variance + t * (1.0 - t))
        step[a] = 0.0
        if 0.0 < t < 1.0:
            x = t / variance
            p[a], q[a] = _tilt(t, 1.0 - t, 12.0 - x * (6.0 - x), 12.0 + x * (6.0 + x), 1.0)
    if old.shape[1] == 0:
        return 0
    far = 0
    for a in range(len(target)):  # nothing in it is skipped by a jump: several arms at a time
        t = target[a]
        odds, likely = old[HEADS, a] * q[a], old[TAILS, a] * p[a]
        near = (odds <= MAX_START_RATIO * likely) & (likely <= MAX_START_RATIO * odds)
        free = (0.0 < t) & (t < 1.0)
        far += free & (not near)
        if free & near:
            up, down = t * old[REST, a], (1.0 - t) * old[MARGINALS, a]
            p[a], q[a] = _tilt(old[HEADS, a], old[TAILS, a], up, down, damping[a])
            step[a] = damping[a] * _log_ratio(up, down)
    return 0 if far > 0 else 1


@part
def _lengthen(
    target: Floats,
    given: Floats,
    rest: Floats,
    damping: Floats,
    step: Floats,
    length: float,
    n: int,
) -> float:
    """Write what the coins' log-odds lack into ``step``; return which fraction of it to add.

    By Barzilai and Borwein: the fraction that would have made the last step right.
    """
    product = square = 0.0
    for a in range(len(target)):
        if 0.0 < target[a] < 1.0:
            up, down = target[a] * rest[a], (1.0 - target[a]) * given[a]
            lacking = damping[a] * _log_ratio(up, down)
            change = step[a] - lacking
            product += step[a] * change
            square += change * change
            step[a] = lacking
    if n == 0 or square == 0.0:
        return length
    length = length * product / square
    return 0.25 if length < 0.25 else 1.0 if length > 1.0 else length


@part
def _recentre(p: Floats, q: Floats, k: int) -> None:
    """Multiply all odds by one factor until about k heads are expected; they are rarely far off."""
    for _ in range(MAX_STEPS):
        heads, variance = -float(k), 0.0
        for a in range(len(p)):
            heads += p[a]
            variance += p[a] * q[a]
        if abs(heads) <= NEAR * math.sqrt(variance):
            return
        log_factor = -heads / variance
        factor = math.exp(-1.0 if log_factor < -1.0 else 1.0 if log_factor > 1.0 else log_factor)
        for a in range(len(p)):
            p[a], q[a] = _tilt(p[a], q[a], factor, 1.0, 1.0)


@part
def _tilt(p: float, q: float, up: float, down: float, power: float) -> tuple[float, float]:
    """Multiply a coin's odds by (up / down)^power, for powers up to 1.

    The power is taken to second order in up / down - 1: r^w is ((1+w) r + 1-w) / ((1-w) r + 1+w),
    exact for w = 1; a huge ratio moves the odds by (1+w) / (1-w).
    """
    up, down = up / (up + down), down / (up + down)  # else small numbers would be squared
    more, less = 1.0 + power, 1.0 - power
    head, tail = p * (more * up + less * down), q * (less * up + more * down)
    return head / (head + tail), tail / (head + tail)


@part
def _log_ratio(up: float, down: float) -> float:
    """Return log(up / down) to second order in up / down - 1."""
    return 2.0 * (up - down) / (up + down)


@compiled
def _log_normaliser(law: Floats, log_heads: float) -> float:
    """Log of the chance of k heads over that of none, by few logarithms of long products.

    Marginals of arms without a choice are made exact on the way.
    """
    log_tails, product = 0.0, 1.0
    for a in range(law.shape[1]):
        theta, q = law[LOG_WEIGHTS, a], law[TAILS, a]
        if not np.isfinite(theta):
            law[MARGINALS, a], law[REST, a] = theta > 0.0, theta < 0.0
        elif q < 1e-100:
            log_tails += theta
        else:
            product *= q
        if product < 1e-100:
            log_tails -= math.log(product)
            product = 1.0
    return log_heads + log_tails - math.log(product)

"""How much rewards scatter: one curve for all, and each arm's own ratio to it."""

import numpy as np

from evenhand.learners.model import EDGE
from evenhand.typing import Floats, compiled

PSEUDO = 4.0  # rewards of 0/1 kind that the curve starts from


def all_at_the_ends(singles: Floats, low: float) -> bool:
    """Whether arms alone have brought rewards, nothing but ``low`` or ``low + 1``, or all 0."""
    n, y, yy = singles[:, :3].sum(axis=0)
    inside = y - n * low - (yy - 2.0 * low * y + n * low * low)  # sum of (y - low) (low + 1 - y)
    return bool(n > 0.0 and (inside <= 1e-9 * n or yy == 0.0))


def curve_of(scatter: Floats, binary: bool = False) -> Floats:
    """Fit alpha + beta q to squared surprises, both at least 0.

    ``scatter`` holds the sums of 1, q, q^2, e^2 and q e^2 over the variance. Divided by variances,
    not by their squares, these give beta as a ratio of sums: weak arms whose rewards happened to be
    all 0 say little, where else they would say that nothing scatters. For the same reason rewards
    that are ``binary`` have all together at least the variance that their means say: as long as
    nothing but 0 has come, it would seem that nothing ever scatters.
    """
    one, q, qq, e, qe = scatter + 0.25 * PSEUDO * np.array([0.0, 0.0, 1.0, 0.0, 1.0])
    det = one * qq - q * q
    beta = (one * qe - q * e) / det if det > 1e-12 * one * qq else -1.0
    alpha = (e - beta * q) / one if one > 0.0 else 0.0
    if beta <= 0.0 < one:
        alpha, beta = e / one, 0.0
    if alpha <= 0.0:
        alpha, beta = 0.0, qe / qq
    more = max(1.0, q / (alpha * one + beta * q)) if binary and q > 0.0 else 1.0
    return np.array([max(more * alpha, 1e-9), more * beta])


@compiled
def surprises(
    singles: Floats, worth: Floats, noise: Floats, low: float
) -> tuple[Floats, Floats, Floats]:
    """Sums of squared and fourth powers of surprises of single arms (m,), and their scatter (5,).

    The latter is as :func:`curve_of` takes it, by the variance that was expected before.
    """
    m = len(worth)
    squares, fourths, scatter = np.empty(m), np.empty(m), np.zeros(5)
    for a in range(m):
        n, y, yy = singles[a, 0], singles[a, 1], singles[a, 2]
        yyy, yyyy, x = singles[a, 3], singles[a, 4], worth[a]
        held = min(max(x - low, EDGE), 1.0 - EDGE)  # as :func:`binary_variance`
        q = held * (1.0 - held)
        square = yy - 2.0 * x * y + n * x * x
        fourth = yyyy - 4.0 * x * yyy + 6.0 * x * x * yy - 4.0 * x * x * x * y + n * x * x * x * x
        squares[a] = square if square > 0.0 else 0.0
        fourths[a] = fourth if fourth > 0.0 else 0.0
        common = 1.0 / (noise[0] + noise[1] * q)
        scatter[0] += common * n
        scatter[1] += common * n * q
        scatter[2] += common * n * q * q
        scatter[3] += common * squares[a]
        scatter[4] += common * squares[a] * q
    return squares, fourths, scatter


@compiled
def own_ratios(
    n: Floats, squares: Floats, fourths: Floats, variance: Floats, noise: Floats
) -> Floats:
    """Variance of each arm's rewards relative to the curve, by empirical Bayes.

    From sums of squared and fourth powers of surprises of single arms. A ratio's own error follows
    from how large surprises are when there are any: rare 0/1 rewards say next to nothing about it,
    and keep the curve's; rewards of steady size say it soon.
    """
    m, told = len(n), 0.0
    ratio, error, between = np.empty(m), np.empty(m), 0.0
    square = fourth = typical = 0.0
    for a in range(m):
        ratio[a] = 1.0
        told = n[a] if n[a] > told else told
        square += squares[a]
        fourth += fourths[a]
        typical += PSEUDO * variance[a] / m
    if told <= 1.0 or square <= 0.0:
        return ratio
    size = (fourth + typical * (noise[1] + 3.0 * noise[0])) / (square + typical)
    for a in range(m):
        off = size / variance[a] - 1.0
        error[a] = off if off > 0.1 else 0.1
        if n[a] > 1.0:
            error[a] /= n[a]
            ratio[a] = squares[a] / (n[a] * variance[a])
    for _ in range(5):
        weights = apart = 0.0
        for a in range(m):
            if n[a] > 1.0:
                spread, off = between + error[a], ratio[a] - 1.0
                weights += 1.0 / (spread * spread)
                apart += (off * off - error[a]) / (spread * spread)
        between = apart / weights if apart > 0.0 else 0.0
    for a in range(m):
        moved = 1.0 + between / (between + error[a]) * (ratio[a] - 1.0)
        ratio[a] = moved if moved > 1e-3 else 1e-3
    return ratio

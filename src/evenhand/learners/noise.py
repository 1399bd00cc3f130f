"""How much rewards scatter: one curve for all, and each arm's own ratio to it."""

import numpy as np

from evenhand.products import product
from evenhand.typing import Floats

PSEUDO = 4.0  # rewards of 0/1 kind that the curve starts from


def all_at_the_ends(singles: Floats, low: float) -> bool:
    """Whether arms alone have brought rewards, nothing but ``low`` or ``low + 1``, or all 0."""
    n, y, yy = singles[:, :3].sum(axis=0)
    inside = y - n * low - (yy - 2.0 * low * y + n * low * low)  # sum of (y - low) (low + 1 - y)
    return bool(n > 0.0 and (inside <= 1e-9 * n or yy == 0.0))


def both_ends(singles: Floats, low: float) -> bool:
    """Whether arms alone have brought both ``low`` and ``low + 1``, and nothing else."""
    n, y, yy = singles[:, :3].sum(axis=0)
    return bool(n * yy - y * y > 1e-9 * n * n) and all_at_the_ends(singles, low)


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


def own_ratios(
    n: Floats, squares: Floats, fourths: Floats, variance: Floats, noise: Floats
) -> Floats:
    """Variance of each arm's rewards relative to the curve, by empirical Bayes.

    From sums of squared and fourth powers of surprises of single arms. A ratio's own error follows
    from how large surprises are when there are any: rare 0/1 rewards say next to nothing about it,
    and keep the curve's; rewards of steady size say it soon.
    """
    known = n > 1.0
    if not known.any() or squares.sum() <= 0.0:
        return np.ones(len(n))
    n = np.maximum(n, 1.0)
    typical = PSEUDO * float(variance.mean())
    size = (fourths.sum() + typical * (noise[1] + 3.0 * noise[0])) / (squares.sum() + typical)
    ratio = np.where(known, squares / (n * variance), 1.0)
    error = np.maximum(size / variance - 1.0, 0.1) / n
    apart, between = (ratio - 1.0) ** 2 - error, 0.0
    for _ in range(5):
        weight = known / (between + error) ** 2
        between = max(float((weight * apart).sum() / weight.sum()), 0.0)
    return np.maximum(1.0 + between / (between + error) * (ratio - 1.0), 1e-3)


def louder(own: Floats, held: Floats, noise: Floats, scatter: Floats) -> float:
    """How many times more larger sets scatter than the ratios (m,) of their arms say, at least 1.

    Arms that bring the same each time alone may still scatter in company; without this, what a few
    sets happened to bring would be taken for certain. ``held`` (m,) is each arm's worth times how
    many larger sets held it, and ``scatter`` the larger sets' sums, see :func:`curve_of`: their
    squared surprises are compared with the curve as it is now.
    """
    curve = noise[0] * scatter[0] + noise[1] * scatter[1]
    expected = float(product(held, own)) * float(curve)
    return max(1.0, float(scatter[3] * held.sum()) / expected) if expected > 0.0 else 1.0

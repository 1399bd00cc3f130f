"""How far what arms bring has moved at each boundary between two stretches of time."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from evenhand.learners.evidence import Evidence
from evenhand.learners.model import binary_variance
from evenhand.typing import Bools, Floats, Singles

LIKELY = 0.05  # chance of what makes one look closer
FEW = 5  # rewards, of equal weight, before and after a boundary to compare them
EVERY = slice(None)


def variance_at(evidence: Evidence, mean: Floats) -> Floats:
    """Variance of rewards with these means, but for the arms' own share of it."""
    alpha, beta = evidence.noise[:2]
    return alpha + beta * binary_variance(mean, evidence.low)


def held(evidence: Evidence, total: Floats, n: Floats) -> Floats:
    """Mean with half a reward at either end of the range more: one of 0s alone may yet be above."""
    return (total + 0.5 + evidence.low) / (n + 1.0)


def one_of(m: int) -> float:
    """Squared standard errors that one of so many arms may have by chance."""
    return 2.0 * math.log(2 * m)


def moved_lately(evidence: Evidence, before: Floats) -> bool:
    """Whether arms alone have brought something else than before, more than is likely."""
    n, y = (evidence.singles[:, :2] - before[:, :2]).T
    both = (n > 0.0) & (before[:, 0] >= FEW)
    n, y, old, x = n[both], y[both], before[both, 0], before[both, 1]
    variance = evidence.own[both] * variance_at(evidence, held(evidence, x, old))
    squares = (y / n - x / old) ** 2 / (variance * (1.0 / n + 1.0 / old))
    return bool(squares.sum() > chdtri(max(len(n), 1), LIKELY))


class Moved(NamedTuple):
    """How far arms have moved at each boundary (l - 1, m), in squared standard errors.

    ``loosely`` is how far they have if it is known that many have, and ``sums`` (2, l - 1) are over
    arms: of these squares, and of errors of arms that may move together.
    """

    squares: Floats
    loosely: Floats
    sums: Floats


Mover = Callable[[Evidence, Singles, slice, bool], Moved]


def alone_moved(
    evidence: Evidence,
    alone: Singles,
    arms: slice = EVERY,
    exact: bool = True,
    most: float = math.inf,
) -> Moved:
    """How far means of arms have moved; in the sums no arm counts for more than ``most``.

    If not exact, an upper bound of that, which is sooner known: the variance, a concave function,
    is smallest at the ends of the integral.
    """
    sums = np.cumsum(alone, axis=0, dtype=np.float64)
    before, (n, y, square) = sums[:-1].transpose(2, 0, 1), sums[-1].T
    common = y / np.maximum(n, 1.0)
    at_common = variance_at(evidence, held(evidence, y, n))
    counts = np.stack([before[0], n - before[0]])
    seen = counts > 0.0
    means = np.divide(np.stack([before[1], y - before[1]]), counts, where=seen, out=seen * common)
    squares = counts * (means - common) ** 2 / evidence.own[arms]
    squares[:, (counts < FEW).any(axis=0)] = 0.0
    if not exact:
        rate = 1.0 / np.minimum(at_common, variance_at(evidence, means))
        moved = (squares * rate).sum(axis=0)
        return Moved(moved, moved, _over_arms(moved, most))
    rate = 1.0 / at_common  # the integral by Simpson's rule, twice
    for place, times in ((0.25, 3.0), (0.5, 1.0), (0.75, 1.0)):
        rate = rate + times / variance_at(evidence, common + place * (means - common))
    squares *= rate / 6.0
    seen = np.maximum(np.stack([before[2], square - before[2]]) - counts * means**2, 0.0)
    forecast = evidence.own[arms] * counts * variance_at(evidence, means)
    # an arm's own noise is hardly known early on. Where rewards are mostly the same and seldom far
    # off, the first of those few would look like a change beside all the others: so each side has
    # the spread of its own rewards, unless many arms have moved
    moved = (squares / _excess(seen, forecast)).sum(axis=0)
    loosely = (squares / _excess(seen.sum(axis=0), forecast.sum(axis=0))).sum(axis=0)
    return Moved(moved, loosely, _over_arms(loosely, most))


def _over_arms(moved: Floats, most: float) -> Floats:
    return np.stack([np.minimum(moved, most).sum(axis=1), np.zeros(len(moved))])


def _excess(seen: Floats, forecast: Floats) -> Floats:
    """How many times as much rewards spread about the means of their sides as forecast, or 1."""
    return np.maximum(seen / np.maximum(forecast, 1e-12), 1.0)


def company_moved(
    evidence: Evidence, company: Singles, _: slice = EVERY, exact: bool = True
) -> Moved:
    """The same for larger sets: 0 where weighted rewards have not moved along, but in the sums.

    If not exact, wherever weighted rewards may have moved.
    """
    sums = np.cumsum(company[..., :3], axis=0, dtype=np.float64).transpose(2, 0, 1)
    parts = np.stack([sums[:, :-1], sums[:, -1:] - sums[:, :-1]], axis=1)  # before and after
    counts = np.maximum(parts[0], 1.0)
    surprise = parts[1] / counts
    # a few rewards of 0 or 1 that are unlike all before have a variance unlike theirs too
    _, e, ee = sums[:, -1] / np.maximum(sums[0, -1], 1.0)
    noise = np.maximum(parts[2] / counts - surprise**2, np.maximum(ee - e**2, 1e-12))
    errors = (surprise[0] - surprise[1]) / np.sqrt((noise / counts).sum(axis=0))
    errors[(parts[0] < FEW).any(axis=0)] = 0.0
    squares = errors**2
    over_arms = np.stack([squares.sum(axis=1), errors.sum(axis=1)])
    if exact:
        squares[~_moved_along(evidence, company[..., 3:], errors)] = 0.0
    return Moved(squares, squares, over_arms)


def _moved_along(evidence: Evidence, weighted: Singles, errors: Floats) -> Bools:
    """Whether weighted rewards have moved (l - 1, m) as surprises did, in standard errors.

    Variances are those forecast; at least that of their mean, as forecasts may be wrong: it is not
    too small on average, the variance being a concave function of the mean.
    """
    sums = np.cumsum(weighted, axis=0, dtype=np.float64).transpose(2, 0, 1)
    w, y, square, _ = sums[:, -1]
    rewards = w**2 / np.maximum(square, 1e-12)  # of equal weight
    least = variance_at(evidence, held(evidence, y / np.maximum(w, 1e-12) * rewards, rewards))
    parts = np.stack([sums[:, :-1], sums[:, -1:] - sums[:, :-1]], axis=1)  # before and after
    weights = np.maximum(parts[0], 1e-12)
    before, after = parts[1] / weights
    gap = before - after
    error = (np.maximum(parts[3], least * parts[2]) / weights**2).sum(axis=0)
    enough = (weights**2 > FEW * parts[2] + 1e-12).all(axis=0)
    result: Bools = enough & (errors * gap > 0.0) & (gap**2 > one_of(evidence.m) * error)
    return result

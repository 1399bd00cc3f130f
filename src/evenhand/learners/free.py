"""Means over the sets of a size that hold an arm, without any model of what sets bring."""

from typing import NamedTuple

import numpy as np

from evenhand.learners.model import EDGE, Forecast, binary_variance
from evenhand.learners.smoothing import smooth
from evenhand.products import product
from evenhand.typing import Floats, compiled, part

Totals = tuple[float, float]


class Free(NamedTuple):
    """Merits without any model of what sets bring.

    Attributes
    ----------
    merit, variance
        (m,) merits and their variances, infinite where an arm has not been seen at every size.
    smooth, smooth_variance
        (m,) the same, gains being smoothed over sizes.
    level, level_variance
        The sum of all merits.
    """

    merit: Floats
    variance: Floats
    smooth: Floats
    smooth_variance: Floats
    level: float
    level_variance: float


def means_by_size(
    singles: Floats,
    weighted: Floats,
    carried: Floats,
    now: Forecast,
    before: Forecast,
    low: float,
    few: float,
) -> tuple[Floats, Floats]:
    """Means (k, m) of the sets of each size with an arm, and their variances.

    What is expected, with infinite variance, where an arm was not seen. ``weighted`` and
    ``carried`` are as in :class:`~evenhand.learners.evidence.Evidence`: rewards in the latter go
    with the forecast of now, and variances of both were taken in with that before.
    """
    k, m = now.expected.shape
    mean, variance = now.expected.copy(), np.full((k, m), np.inf)
    n, alone = singles[:, 0], singles[:, 0] > 0.0
    noise = now.noise[0] + now.noise[1] * binary_variance(now.worth, low)
    mean[0] = now.worth
    np.divide(singles[:, 1], n, out=mean[0], where=alone)
    np.divide(now.own * noise * (n + few), n * n, out=variance[0], where=alone)
    fill_larger(weighted, carried, now, before, low, few, mean, variance)
    return mean, variance


def free_merits(mean: Floats, variance: Floats, now: Forecast) -> Free:
    """Merits for which the forecast need not be right, from means by size, written over."""
    level = _level(mean[-1], now.expected[-1], variance[-1], len(mean))
    left = 1.0 - now.gamma * float(now.worth.mean())
    return Free(*_together(mean, variance, left), *level)


@compiled
def fill_larger(
    weighted: Floats,
    carried: Floats,
    now: Forecast,
    before: Forecast,
    low: float,
    few: float,
    mean: Floats,
    variance: Floats,
) -> None:
    """Write means of sets of two arms and more, and their variances, where an arm was seen."""
    sizes, m, _ = weighted.shape
    totals, earlier = weigh_all(now), weigh_all(before)
    for r in range(2, sizes + 2):
        for a in range(m):
            w, wz, w2, w2v = weighted[r - 2, a]
            if len(carried):
                more = carried[r - 2, a]
                w, w2, w2v = w + more[0], w2 + more[2], w2v + more[3]
                wz += more[1] + more[0] * now.expected[r - 1, a]
            if w > 0.0:
                w2v *= noisier(now, before, totals, earlier, low, r, a)
                mean[r - 1, a] = wz / w
                variance[r - 1, a] = w2v * (1.0 + few * w2 / (w * w)) / (w * w)


@compiled
def renoise(sums: Floats, now: Forecast, before: Forecast, low: float) -> None:
    """Let sums of weighted means (k - 1, m, 4) have the variances that another forecast gives.

    What sets scattered by when they were told was read off the forecast of that time, and the
    first few of all would outweigh thousands that came when noise was known.
    """
    sizes, m, _ = sums.shape
    totals, earlier = weigh_all(now), weigh_all(before)
    for r in range(2, sizes + 2):
        for a in range(m):
            sums[r - 2, a, 3] *= noisier(now, before, totals, earlier, low, r, a)


@part
def weigh_all(forecast: Forecast) -> Totals:
    """Sum of all worths, and of these times the arms' own ratios."""
    worths = owns = 0.0
    for a in range(len(forecast.worth)):
        worths += forecast.worth[a]
        owns += forecast.own[a] * forecast.worth[a]
    return worths, owns


@part
def noisier(
    now: Forecast, before: Forecast, totals: Totals, earlier: Totals, low: float, r: int, a: int
) -> float:
    """How many times the variance by one forecast is that by another, of r-sets with an arm."""
    return typical_noise(now, totals, low, r, a) / typical_noise(before, earlier, low, r, a)


@part
def typical_noise(forecast: Forecast, totals: Totals, low: float, r: int, a: int) -> float:
    """Variance that rewards of r-sets with an arm have, at their mean."""
    worth, edge, noise = forecast.worth[a], max(forecast.edge[a], EDGE), forecast.noise
    own, others = forecast.own[a] * worth, (r - 1.0) / max(len(forecast.worth) - 1, 1)
    held = min(max(forecast.expected[r - 1, a] - low, edge), 1.0 - edge)
    ratio = (own + others * (totals[1] - own)) / (worth + others * (totals[0] - worth))
    return (noise[0] + noise[1] * held * (1.0 - held)) * ratio * noise[2]


def _together(mean: Floats, variance: Floats, left: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Merits and variances (m,), as they are and smoothed, from means (k, m) of sets with an arm.

    Equation (1), with what an arm adds over the sets without it in place of the means, which are
    written over.
    """
    (k, m), total = mean.shape, float(mean[-1].mean())
    scale, share = m / np.arange(m - 1.0, m - k, -1.0), np.full(k, 1.0 / k)
    scale = np.append(scale, m / (m - k) if k < m else 1.0)[:, None]
    if k < m:
        share[-1] = (1.0 - k / m) / k
    mean -= mean.mean(axis=1, keepdims=True)
    mean *= scale
    variance *= scale**2
    merit, spread = total / k + product(share, mean), product(share**2, variance)
    smoother, less = merit.copy(), spread.copy()
    known = np.flatnonzero(np.isfinite(spread) & (variance > 0.0).all(axis=0))
    if 2 < k < m and len(known):
        taken, relief = smooth(mean, variance, known, share, left)
        smoother[known] -= taken
        less[known] = np.maximum(less[known] - relief, 1e-12 * less[known])
    return merit, spread, smoother, less


def _level(means: Floats, expected: Floats, variance: Floats, k: int) -> tuple[float, float]:
    """The sum of all merits, and its variance, from the means of full sets with each arm.

    Full sets with an arm that has not been in one, such as a newcomer, are taken to bring as much
    more than expected as those with the others do; of the sum nothing is known before most arms
    have been in one.
    """
    seen = np.isfinite(variance)
    part = float(seen.mean())
    if part <= 0.5:
        return float(expected.sum() / k), np.inf
    gap = float((means - expected)[seen].sum()) / part
    return (float(expected.sum()) + gap) / k, float(variance[seen].sum()) / (k * part**2)

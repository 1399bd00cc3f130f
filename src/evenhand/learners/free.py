"""Means over the sets of a size that hold an arm, without any model of what sets bring."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from evenhand.learners.model import EDGE, Forecast, binary_variance
from evenhand.learners.smoothing import smooth
from evenhand.typing import Floats


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


def by_size(weighted: Floats, carried: Floats, expected: Floats) -> Iterator[Floats]:
    """Sums (m, 4) of weighted means by size, those carried over completed by what is expected."""
    if not len(carried):
        yield from weighted
    for sums, more, mean in zip(weighted, carried, expected[1:], strict=False):
        every = sums + more
        every[:, 1] += more[:, 0] * mean
        yield every


def typical_noise(forecast: Forecast, low: float) -> Iterator[Floats]:
    """By size from 2 on, variance (m,) that rewards of sets with each arm have, at their mean."""
    m, worth, own = len(forecast.worth), forecast.worth, forecast.own * forecast.worth
    edge = np.maximum(forecast.edge, EDGE)
    most, other_worths, others_own = 1.0 - edge, worth.sum() - worth, own.sum() - own
    for r, expected in enumerate(forecast.expected[1:], start=2):
        held = np.minimum(np.maximum(expected - low, edge), most)
        others = (r - 1.0) / max(m - 1, 1)
        ratio = own + others * others_own
        ratio /= worth + others * other_worths
        yield (forecast.noise[0] + forecast.noise[1] * held * (1.0 - held)) * ratio


def free_merits(
    singles: Floats,
    larger: Iterable[tuple[Floats, Floats]],
    forecast: Forecast,
    low: float,
    few: float,
) -> Free:
    """Merits for which the forecast need not be right.

    ``larger`` are the sums (m, 4) of weighted means of each size from 2 on, and how many times the
    variance (m,) they were taken in with is that of now: one after the other, since all of them at
    once take much memory where there are many arms.
    """
    k, m = forecast.expected.shape
    mean, variance = forecast.expected.copy(), np.full((k, m), np.inf)
    n, alone = singles[:, 0], singles[:, 0] > 0.0
    noise = forecast.noise[0] + forecast.noise[1] * binary_variance(forecast.worth, low)
    mean[0] = forecast.worth
    np.divide(singles[:, 1], n, out=mean[0], where=alone)
    np.divide(forecast.own * noise * (n + few), n * n, out=variance[0], where=alone)
    for r, (sums, noisier) in enumerate(larger, start=1):
        w, wz, w2, w2v = sums.T
        seen = w > 0.0
        square = np.where(seen, w * w, 1.0)
        np.divide(wz, w, out=mean[r], where=seen)
        np.divide(w2v * noisier * (1.0 + few * w2 / square), square, out=variance[r], where=seen)
    level = _level(mean[-1], forecast.expected[-1], variance[-1], k)
    left = 1.0 - forecast.gamma * float(forecast.worth.mean())
    return Free(*_together(mean, variance, left), *level)


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
    merit, spread = total / k + share @ mean, share**2 @ variance
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

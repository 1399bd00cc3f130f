"""Means over the sets of a size that hold an arm, without any model of what sets bring."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from evenhand.learners.model import EDGE, Forecast, binary_variance
from evenhand.typing import Floats


class Free(NamedTuple):
    """Merits and variances (m,) without any model, and those of the sum of all merits."""

    merit: Floats
    variance: Floats
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
    mean, variance = forecast.worth.copy(), np.full(m, np.inf)
    n, alone = singles[:, 0], singles[:, 0] > 0.0
    noise = forecast.noise[0] + forecast.noise[1] * binary_variance(forecast.worth, low)
    np.divide(singles[:, 1], n, out=mean, where=alone)
    np.divide(forecast.own * noise, n, out=variance, where=alone)
    merit, spread, offset = np.zeros(m), np.zeros(m), 0.0
    for r, (sums, noisier) in enumerate(larger, start=2):
        scale = m / (m - r + 1.0)
        merit, spread = merit + scale * mean, spread + scale**2 * variance
        offset += scale * float(mean.mean())
        w, wz, w2, w2v = sums.T
        seen = w > 0.0
        square = np.where(seen, w * w, 1.0)
        mean, variance = forecast.expected[r - 1].copy(), np.full(m, np.inf)
        np.divide(wz, w, out=mean, where=seen)
        np.divide(w2v * noisier * (1.0 + few * w2 / square), square, out=variance, where=seen)
    level = _level(mean, forecast.expected[-1], variance, k)
    return Free((merit + mean - offset) / k, (spread + variance) / k**2, *level)


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

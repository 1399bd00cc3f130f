"""Statistical checks with a fixed false-alarm rate that refuse to pass without power."""

import math

import numpy as np
from scipy.stats import chi2, norm

ALPHA = 1e-9  # false alarms of one check, whatever the number of coordinates


def check_mean(samples, expected, *, resolution):
    """Check a Monte Carlo mean; the check must be able to see an error of ``resolution``."""
    samples, expected = np.asarray(samples, float), np.asarray(expected, float)
    stderr = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    check_estimate(samples.mean(axis=0), stderr, expected, resolution=resolution)


def check_estimate(values, stderr, expected, *, resolution, rounding=1e-12):
    """Check an estimate against the truth by its own standard errors."""
    values, expected = np.asarray(values, float), np.asarray(expected, float)
    tolerance = norm.isf(ALPHA / 2 / max(1, expected.size)) * np.asarray(stderr) + rounding
    assert np.all(tolerance <= resolution), f"too few samples: {np.max(tolerance):.2g}"
    gap = np.abs(values - expected)
    assert np.all(gap <= tolerance), f"mean is off by {gap}, tolerance {tolerance}"


def check_frequencies(counts, probabilities):
    """Chi-square check of integer counts against exact probabilities."""
    counts = np.asarray(counts)
    expected = counts.sum() * np.asarray(probabilities, float)
    assert np.issubdtype(counts.dtype, np.integer), "pass counts, not frequencies"
    assert not counts[expected == 0].any(), "an impossible outcome was drawn"
    cells = expected > 0
    assert expected[cells].min() >= 10, "too few samples for the chi-square law"
    statistic = ((counts[cells] - expected[cells]) ** 2 / expected[cells]).sum()
    assert statistic <= chi2.isf(ALPHA, max(1, cells.sum() - 1)), f"chi-square {statistic:.1f}"


def count_sets(rows, sets):
    """How often each of the listed sets (any order within a row) is among the rows."""
    index = {tuple(sorted(s)): i for i, s in enumerate(np.asarray(sets).tolist())}
    counts = np.zeros(len(index), np.int64)
    drawn, times = np.unique(np.sort(rows, axis=1), axis=0, return_counts=True)
    for row, n in zip(drawn.tolist(), times, strict=True):
        counts[index[tuple(row)]] += n
    return counts

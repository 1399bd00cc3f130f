"""Statistical checks with a fixed false-alarm rate that fail where there are too few samples."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm

from evenhand.typing import Ints

ALPHA = 1e-9  # false alarms of one check, whatever the number of coordinates
MIN_EXPECTED = 10  # draws expected of an outcome, for the chi-square law to hold


def check_mean(samples: ArrayLike, expected: ArrayLike, *, resolution: float) -> None:
    """Check that samples (n, ...) have the expected mean (...).

    The tolerance is some six standard errors, so that the seed of the samples does not matter.
    There must be enough samples to see an error of ``resolution``.

    Examples
    --------
    >>> coins = np.random.default_rng(1).random(100_000) < 0.5
    >>> check_mean(coins, 0.5, resolution=0.01)
    """
    drawn = np.asarray(samples, float)
    stderr = drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
    check_estimate(drawn.mean(axis=0), stderr, expected, resolution=resolution)


def check_estimate(
    values: ArrayLike,
    stderr: ArrayLike,
    expected: ArrayLike,
    *,
    resolution: float,
    rounding: float = 1e-12,
) -> None:
    """Check estimates against the truth by their own standard errors, as in :func:`check_mean`."""
    found, truth = np.asarray(values, float), np.asarray(expected, float)
    tolerance = norm.isf(ALPHA / 2 / max(1, truth.size)) * np.asarray(stderr) + rounding
    assert np.all(tolerance <= resolution), (
        f"too few samples: an error of {resolution:g} must show, "
        f"but the tolerance is {np.max(tolerance):.2g}"
    )
    found, truth, tolerance = np.broadcast_arrays(found, truth, tolerance)
    excess = np.abs(found - truth) - tolerance
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    where = f" of entry {tuple(int(i) for i in worst)}" if worst else ""
    assert excess[worst] <= 0.0, (  # nan, the worst of all, does not pass
        f"the mean{where} is off: got {found[worst]:.6g}, expected {truth[worst]:.6g}, "
        f"which differs by more than the tolerance of {tolerance[worst]:.2g}"
    )


def check_frequencies(counts: ArrayLike, probabilities: ArrayLike) -> None:
    """Check how often each outcome was drawn against exact probabilities, by chi-square.

    Examples
    --------
    >>> check_frequencies([497, 503], [0.5, 0.5])
    """
    drawn = np.asarray(counts)
    expected = drawn.sum() * np.asarray(probabilities, float)
    assert np.issubdtype(drawn.dtype, np.integer), "pass counts, not frequencies"
    assert not drawn[expected == 0].any(), "an impossible outcome was drawn"
    cells = expected > 0
    least = expected[cells].min()
    assert least >= MIN_EXPECTED, (
        f"too few samples for the chi-square law: {least:.2g} draws expected of an outcome, "
        f"at least {MIN_EXPECTED} needed"
    )
    statistic = ((drawn[cells] - expected[cells]) ** 2 / expected[cells]).sum()
    limit = chi2.isf(ALPHA, max(1, cells.sum() - 1))
    assert statistic <= limit, (
        f"chi-square of {statistic:.1f} over {cells.sum()} outcomes, at most {limit:.1f} expected: "
        "they were not drawn with these probabilities"
    )


def count_sets(rows: ArrayLike, sets: ArrayLike) -> Ints:
    """How often each of the listed sets (any order within a row) is among the rows."""
    index = {tuple(sorted(s)): i for i, s in enumerate(np.asarray(sets).tolist())}
    counts = np.zeros(len(index), np.int64)
    drawn, times = np.unique(np.sort(rows, axis=1), axis=0, return_counts=True)
    for row, n in zip(drawn.tolist(), times, strict=True):
        counts[index[tuple(row)]] += n
    return counts

"""How far merits by the model are from merits without one: shrunk by empirical Bayes."""

import numpy as np

from evenhand.typing import Floats

STEP = 2.0  # between the scales of the mixture: its answer hardly depends on it
TURNS = 20


def shrink(apart: Floats, variance: Floats, null: float) -> tuple[Floats, Floats]:
    """Posterior means and variances of what lies behind noisy differences.

    The prior is a mixture of normals about 0 of many scales, 0 among them, whose shares are fitted
    (adaptive shrinkage); ``null`` is the number of differences of 0 that it starts from.

    References
    ----------
    M. Stephens, "False discovery rates: a new deal", Biostatistics 18 (2017).
    """
    low = 0.1 * np.sqrt(variance.min())
    high = 2.0 * np.sqrt(max(float((apart * apart - variance).max()), 64.0 * low * low))
    count = int(np.ceil(np.log(high / low) / np.log(STEP))) + 1
    scales = np.concatenate([[0.0], (low * STEP ** np.arange(count)) ** 2])
    total = scales[:, None] + variance
    log = -0.5 * (apart * apart / total + np.log(total))
    likelihood = np.exp(log - log.max(axis=0))
    pseudo = np.zeros(len(scales))
    pseudo[0] = null - 1.0
    share = np.full(len(scales), 1.0 / len(scales))
    for _ in range(TURNS):
        share = likelihood @ (1.0 / (share @ likelihood)) * share + pseudo
        share /= share.sum()
    chance = share[:, None] * likelihood
    chance /= chance.sum(axis=0)
    kept = scales[:, None] / total
    mean = (chance * kept).sum(axis=0) * apart
    second = (chance * (kept * variance + (kept * apart) ** 2)).sum(axis=0)
    return mean, second - mean * mean

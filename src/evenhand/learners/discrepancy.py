"""How far merits by the model are from merits without one: shrunk by empirical Bayes."""

import numpy as np

from evenhand.typing import Floats, compiled

STEP = 2.0  # between the scales of the mixture: answers depend on it by a fraction of their errors
TURNS = 200  # until shares stand still: after 20 much of the flat start is left on large scales


def shrink(apart: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Posterior means and variances of what lies behind noisy differences.

    The prior is a mixture of normals about 0 of many scales, 0 among them, whose shares are fitted
    (adaptive shrinkage).

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
    share = np.full(len(scales), 1.0 / len(scales))
    fit_shares(share, likelihood, np.ascontiguousarray(likelihood.T), TURNS)
    chance = share[:, None] * likelihood
    chance /= chance.sum(axis=0)
    kept = scales[:, None] / total
    mean = (chance * kept).sum(axis=0) * apart
    second = (chance * (kept * variance + (kept * apart) ** 2)).sum(axis=0)
    return mean, second - mean * mean


@compiled
def fit_shares(share: Floats, likelihood: Floats, by_arm: Floats, turns: int) -> None:
    """Fit the shares (s,) of a mixture to likelihoods (s, n) by expectation maximisation.

    ``by_arm`` (n, s) are the same once more: so both loops go along rows.
    """
    (s, n), each = likelihood.shape, 1.0 / likelihood.shape[1]
    total, seen = np.empty(n), np.empty(s)
    for _ in range(turns):
        for a in range(n):
            total[a] = 0.0
        for i in range(s):
            part = share[i]
            seen[i] = 0.0
            for a in range(n):
                total[a] += part * likelihood[i, a]
        for a in range(n):
            chance = each / total[a]
            for i in range(s):
                seen[i] += chance * by_arm[a, i]
        for i in range(s):
            share[i] *= seen[i]

"""Noise around a mean in [0, 1] that keeps the mean and stays in [0, 1]."""

import math
from typing import Protocol

import numpy as np

from evenhand.checks import check_positive
from evenhand.typing import Floats, compiled


class Noise(Protocol):
    """Draws rewards with given means."""

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for every mean."""


class Bernoulli:
    """Rewards 0 or 1 with the given mean."""

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for every mean."""
        return (rng.random(means.shape) < means).astype(np.float64)


class TruncatedGaussian:
    r"""Gaussian noise truncated symmetrically to :math:`\pm\min(\text{width}, V, 1-V)`.

    The truncation keeps every reward in [0, 1] and its mean exactly V.

    Parameters
    ----------
    sd
        Standard deviation of the Gaussian before truncation.
    width
        Where it is cut at most.
    """

    def __init__(self, sd: float = 0.1, width: float = 0.1) -> None:
        self.sd = check_positive("sd", sd)
        self.width = check_positive("width", width)

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for every mean."""
        width = np.minimum(self.width, np.minimum(means, 1.0 - means))
        return np.clip(means + _draws(width, self.sd, rng), 0.0, 1.0)  # clips rounding alone


@compiled
def _draws(width: Floats, sd: float, rng: np.random.Generator) -> Floats:
    drawn = np.empty_like(width)
    for i in range(len(width)):
        drawn[i] = truncated_gaussian(width[i], sd, rng)
    return drawn


@compiled
def truncated_gaussian(width: float, sd: float, rng: np.random.Generator) -> float:
    """Draw a centred Gaussian conditioned on [-width, width], by rejection."""
    if width > 1.25 * sd:  # here a Gaussian proposal is accepted more often than a uniform one
        while True:
            x = sd * rng.standard_normal()
            if abs(x) <= width:
                return x
    while True:
        x = width * (2.0 * rng.random() - 1.0)
        t = 0.5 * (x / sd) ** 2
        u = rng.random()
        if u <= 1.0 - t or u <= math.exp(-t):  # 1 - t <= exp(-t) saves most exponentials
            return x

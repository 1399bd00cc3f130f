"""Noise around a mean in [0, 1] that keeps the mean and stays in [0, 1]."""

import math
from typing import Protocol

import numpy as np

from evenhand.checks import check_positive
from evenhand.randomness.splitmix import draw_row_word, start_row, uniform
from evenhand.typing import Floats, compiled

# coefficients of AS 241 (M. J. Wichura, Applied Statistics 37, 1988), highest power first
A = (
    *(3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4),
    *(1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2),
    3.3871328727963666080,
)
B = (
    *(2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4),
    *(5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1),
    1.0,
)


class Noise(Protocol):
    """Draws rewards in [0, 1] with given means."""

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for each of the means (n,)."""


class Bernoulli:
    """Rewards 0 or 1 with the given mean.

    Examples
    --------
    >>> Bernoulli().observe(np.array([0.0, 1.0]), np.random.default_rng(1))
    array([0., 1.])
    """

    def __repr__(self) -> str:
        return "Bernoulli()"

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for each of the means (n,)."""
        return (rng.random(means.shape) < means).astype(np.float64)


class TruncatedGaussian:
    r"""Gaussian noise truncated symmetrically to :math:`\pm\min(\text{width}, V, 1-V)`.

    The truncation keeps every reward in [0, 1] and its mean exactly V.

    Parameters
    ----------
    sd
        Standard deviation of the Gaussian before truncation.
    width
        The truncation where V is neither near 0 nor near 1.

    Examples
    --------
    >>> drawn = TruncatedGaussian(sd=0.2).observe(np.full(1000, 0.03), np.random.default_rng(1))
    >>> bool(drawn.min() >= 0.0 and drawn.max() <= 0.06)
    True
    """

    def __init__(self, sd: float = 0.1, width: float = 0.1) -> None:
        self.sd = check_positive("sd", sd)
        self.width = check_positive("width", width)

    def __repr__(self) -> str:
        return f"TruncatedGaussian(sd={self.sd:g}, width={self.width:g})"

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for each of the means (n,)."""
        width = np.minimum(self.width, np.minimum(means, 1.0 - means))
        drawn = _draws(width, half_mass(width, self.sd), self.sd, rng.random(width.shape))
        return np.clip(means + drawn, 0.0, 1.0)  # only rounding is clipped


def half_mass(width: Floats, sd: float) -> Floats:
    """Probability that a centred Gaussian falls between 0 and the width."""
    from scipy.special import erf  # a fifth of a second to import: only where it is needed

    return 0.5 * erf(width / (sd * math.sqrt(2.0)))


@compiled
def _draws(width: Floats, half: Floats, sd: float, numbers: Floats) -> Floats:
    drawn = np.empty_like(width)
    for i in range(len(width)):
        drawn[i] = truncated_gaussian(width[i], half[i], sd, numbers[i])
    return drawn


@compiled
def truncated_gaussian(width: float, half: float, sd: float, number: float) -> float:
    """Turn a number in [0, 1) into a Gaussian conditioned on [-width, width].

    ``half`` is its mass between 0 and the width. Up to 0.425 by inversion: there the quantile
    function is a quotient of polynomials, to 1e-16 (the central part of Wichura's algorithm
    AS 241), and needs no branches. Wider ones by rejection.
    """
    if half > 0.425:
        state = start_row(number)
        while True:  # Box and Muller; 1 - u is never 0
            word, state = draw_row_word(state)
            radius = sd * math.sqrt(-2.0 * math.log(1.0 - uniform(word)))
            word, state = draw_row_word(state)
            x = radius * math.cos(2.0 * math.pi * uniform(word))
            if abs(x) <= width:
                return x
    q = (2.0 * number - 1.0) * half
    r = 0.180625 - q * q
    top = 2.5090809287301226727e3
    for a in A:
        top = top * r + a
    bottom = 5.2264952788528545610e3
    for b in B:
        bottom = bottom * r + b
    return min(width, max(-width, sd * q * top / bottom))

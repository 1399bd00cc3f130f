r"""By how much arms differ more, or less, in sets of each size than a model says.

Where most sets are full, a model is made to fit them, and what it says of small sets follows from
its shape alone. That may be wrong in the same way for all arms: arms that are worth something only
in company differ less in small sets than it says, arms that get in each other's way differ more. So
differences at size r are taken to be :math:`1 + b_r` times the model's, b being a random walk that
starts at 0 for full sets. How far it goes is common to all sizes; a few scales, 0 among them, are
averaged over by how likely rewards make each.

With s the surprise in the mean over r-sets with an arm, v its variance, c how much the model has
the arm differ from others there, and V the variance of the model's own mean, all b near 0 have

.. math:: \text{score}_r = \sum_a \frac{c s - V}{v}, \qquad
    \text{information}_{rq} = [r = q] \sum_a \frac{c^2}{v}
        - \sum_a \frac{c_r c_q \sqrt{V_r V_q}}{v_r v_q} + \sum_a \frac{V_r V_q}{v_r v_q},

the arms' worths being integrated over: the model has seen the very rewards that it is compared
with. (Without V, b would undo that worths are shrunk.) As b moves, so do worths. Nowhere do arms
differ the other way: b is at least -1.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evenhand.learners.model import LEAST, Forecast
from evenhand.products import product
from evenhand.typing import Floats

SCALES = np.array([0.0, 0.25, 0.5, 1.0])  # how far b may go, times what is believed of the shape
LEAST_NOISE = 1e-24  # variance: rewards span 1
WAVES = 6  # sines that a walk is made of, at most: these have 97 % of its variance
BLOCK = 2**13  # arms looked at together, so that memory does not grow with sizes times arms


class Slopes(NamedTuple):
    """What merits by a model gain by them.

    Attributes
    ----------
    moved, variance
        (m,) by how much each merit moves, and the variance that comes with it.
    times
        How many times the model's own errors are larger, at least 1: they grow with differences.
    """

    moved: Floats
    variance: Floats
    times: float


def slopes(
    means: Floats, noise: Floats, forecast: Forecast, unsure: Floats, believed: float
) -> Slopes:
    """Find by how much merits move.

    Parameters
    ----------
    means, noise
        (k, m) means of the r-sets with each arm, without a model, and their variances.
    forecast
        What the model says of them.
    unsure
        (m,) variances of the worths by the model.
    believed
        Standard deviation that b may have for single arms.
    """
    k, m = means.shape
    if k == 1:
        return Slopes(np.zeros(m), np.zeros(m), 1.0)
    arms = _Arms(means, noise, forecast, unsure)
    told = _add_up(arms)
    mean, spread = _walk(told.information, told.score, believed)
    return _move(arms, told.moves / m, _held(mean, arms.waves), spread)


class _Arms:
    """What is compared of arms, a block of them at a time."""

    def __init__(self, means: Floats, noise: Floats, forecast: Forecast, unsure: Floats) -> None:
        self.means, self.noise, self.forecast, self.unsure = means, noise, forecast, unsure
        self.k, self.m = means.shape
        self.waves, self.gains = _waves(self.k), _gains(self.k, self.m)
        self.starts = range(0, self.m, BLOCK)
        self._all = self._look(0) if self.m <= BLOCK else None
        self.expected, self.surprise, self.every = self._centres()

    def look(self, start: int) -> tuple[Floats, Floats, Floats, Floats]:
        """What is seen of a block of arms: of many it is looked at again, not kept."""
        return self._look(start) if self._all is None else self._all

    def _look(self, start: int) -> tuple[Floats, Floats, Floats, Floats]:
        """What is expected of some arms, surprises, how far the former are off, certainties."""
        at = slice(start, start + BLOCK)
        e, worth = self.forecast.expected[:, at], self.forecast.worth[at]
        gamma = self.forecast.gamma
        sure = 1.0 / np.maximum(self.noise[:, at], LEAST_NOISE)
        left = np.maximum(1.0 - gamma * e, LEAST) / np.maximum(1.0 - gamma * worth, LEAST)
        left = np.minimum(left, 1.0)
        # no less is known of worths than the means themselves say
        most = 1.0 / np.maximum((sure * left * left).sum(axis=0), 1e-300)
        off = left * np.sqrt(np.clip(self.unsure[at], 0.0, most))
        return e, self.means[:, at] - e, off, sure

    def _centres(self) -> tuple[Floats, Floats, Floats]:
        """Of all arms at each size: what is expected and surprises, as far as sure, and plainly."""
        total, expected, surprise, every = np.zeros((4, self.k))
        for start in self.starts:
            e, s, _, sure = self.look(start)
            total += sure.sum(axis=1)
            expected += (sure * e).sum(axis=1)
            surprise += (sure * s).sum(axis=1)
            every += e.sum(axis=1)
        total = np.maximum(total, 1e-300)
        return expected / total, surprise / total, every / self.m

    def follow(self, start: int) -> Floats:
        """How worths follow the waves (j, n), in standard deviations, but for the sign."""
        e, _, off, sure = self.look(start)
        return product(self.waves, (e - self.expected[:, None]) * off * sure)


class _Told(NamedTuple):
    """Slope and curvature of the waves' log likelihood, and how merits of all arms move with them.

    The latter by what the arms' own worths do, and up to its sign.
    """

    score: Floats
    information: Floats
    moves: Floats


def _add_up(arms: _Arms) -> _Told:
    waves, k = arms.waves, arms.k
    differ, score, moves = np.zeros(k), np.zeros(k), np.zeros(len(waves))
    taken = np.zeros((len(waves), len(waves)))
    for start in arms.starts:
        e, s, off, sure = arms.look(start)
        c = e - arms.expected[:, None]
        differ += (sure * c * c).sum(axis=1)
        part = off * off * sure
        score += (sure * c * (s - arms.surprise[:, None]) - part).sum(axis=1)
        follow, part = arms.follow(start), product(waves, part)
        taken += product(follow, follow.T) - product(part, part.T)
        moves += (follow * product(arms.gains, off)).sum(axis=1)
    return _Told(waves @ score, (waves * differ) @ waves.T - taken, moves)


def _move(arms: _Arms, moves: Floats, mean: Floats, spread: Floats) -> Slopes:
    """What becomes of merits by waves with this mean and covariance."""
    moved, variance, along, own = np.empty(arms.m), np.empty(arms.m), 0.0, 0.0
    for start in arms.starts:
        e, _, off, _ = arms.look(start)
        at, apart = slice(start, start + BLOCK), arms.gains[:, None] * (e - arms.every[:, None])
        shape, whole = product(arms.waves, apart), apart.sum(axis=0)
        along += float(product(product(mean, shape), whole))
        own += float(product(whole, whole))
        shape -= arms.follow(start) * product(arms.gains, off) - moves[:, None]
        moved[at] = product(mean, shape)
        variance[at] = np.maximum((shape * product(spread, shape)).sum(axis=0), 0.0)
    return Slopes(moved, variance, max(1.0, 1.0 + along / own) if own > 0.0 else 1.0)


def _walk(information: Floats, score: Floats, believed: float) -> tuple[Floats, Floats]:
    """Mean and covariance of a walk's waves, averaged over scales by how likely each is."""
    size, axes = np.linalg.eigh(information)
    size, along = np.maximum(size, 0.0), score @ axes
    square = (believed * SCALES[:, None]) ** 2
    variance = square / (1.0 + square * size)
    log = 0.5 * (variance * along**2 - np.log1p(square * size)).sum(axis=1)
    chance = np.exp(log - log.max())
    chance /= chance.sum()
    means = variance * along
    mean = chance @ means
    apart = means - mean
    spread = np.diag(chance @ variance) + (chance[:, None] * apart).T @ apart
    return axes @ mean, axes @ spread @ axes.T


def _held(mean: Floats, waves: Floats) -> Floats:
    """The waves' mean, made smaller where it would have arms differ the other way at any size."""
    lowest = float((mean @ waves).min())
    return mean / max(1.0, -lowest)


@lru_cache(maxsize=16)
def _waves(k: int) -> Floats:
    """The sines (j, k) of a walk from full sets to single arms, of variance 1 there."""
    numbers = np.arange(1.0, min(k - 1, WAVES) + 1.0)[:, None] - 0.5
    time = np.arange(k - 1.0, -1.0, -1.0) / (k - 1.0)
    result: Floats = np.sqrt(2.0) * np.sin(numbers * np.pi * time) / (numbers * np.pi)
    return result


@lru_cache(maxsize=16)
def _gains(k: int, m: int) -> Floats:
    """What a mean of sets of each size (k,) counts in a merit: equation (1) of the evidence."""
    gains = np.full(k, 1.0 / k)
    gains[:-1] *= m / (m - np.arange(1.0, k))
    return gains

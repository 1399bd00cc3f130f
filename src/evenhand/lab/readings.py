"""How far a learner's claims hold: its errors, its shares and its intervals beside the truth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenhand.checks import ROUNDING
from evenhand.policy import fair_policy
from evenhand.typing import Floats

SERVED = 0.02  # an arm whose due marginal is larger counts in what the worst-served arm is given


class Reading(NamedTuple):
    """What a learner said of the arms (m,) of one world at one time, and the true merits."""

    k: int
    merit: Floats
    estimate: Floats
    stderr: Floats
    marginals: Floats
    low: Floats
    high: Floats

    @property
    def z(self) -> Floats:
        """Errors in units of what the learner claims."""
        return (self.estimate - self.merit) / self.stderr

    @property
    def due(self) -> Floats:
        """The fair marginals; harm, or the noise of an estimate, counts as 0."""
        return fair_policy(np.maximum(self.merit, 0.0), self.k)

    @property
    def misplaced(self) -> float:
        """Share of the slots that other arms are due: half the distance to the fair marginals."""
        return float(np.abs(self.marginals - self.due).sum() / (2 * self.k))

    @property
    def least(self) -> float:
        """What the worst-served of the arms that are due something is given of that."""
        due = self.due
        return float((self.marginals[due > SERVED] / due[due > SERVED]).min())


class Honesty(NamedTuple):
    """Readings of several worlds, condensed.

    Attributes
    ----------
    worlds
        How many.
    within
        Share of arms whose error is at most two claimed standard errors.
    largest
        Largest error of any arm in standard errors, with its sign.
    rms
        Root mean square of the errors in standard errors; and ``thirds`` that of the third of the
        arms of lowest merit in their world, the middle third and the highest.
    misplaced, least
        Means over worlds, and ``misplaced_stderr``, ``least_stderr`` their standard errors.
    covered, width
        Share of intervals that hold the true merit, and their median width.
    """

    worlds: int
    within: float
    largest: float
    rms: float
    thirds: tuple[float, float, float]
    misplaced: float
    misplaced_stderr: float
    least: float
    least_stderr: float
    covered: float
    width: float


def condense(readings: Sequence[Reading]) -> Honesty:
    """Condense readings of several worlds of one kind."""
    z = np.array([one.z for one in readings])
    ranks = np.array([one.merit.argsort(kind="stable").argsort() for one in readings])
    third = 3 * ranks // z.shape[1]
    misplaced = np.array([one.misplaced for one in readings])
    least = np.array([one.least for one in readings])
    low, high, merit = (
        np.array([getattr(r, n) for r in readings]) for n in ("low", "high", "merit")
    )
    inside = (low <= merit + ROUNDING) & (merit <= high + ROUNDING)
    return Honesty(
        len(readings),
        float(np.mean(np.abs(z) <= 2.0)),
        float(z.flat[np.abs(z).argmax()]),
        _rms(z),
        (_rms(z[third == 0]), _rms(z[third == 1]), _rms(z[third == 2])),
        float(misplaced.mean()),
        _stderr(misplaced),
        float(least.mean()),
        _stderr(least),
        float(inside.mean()),
        float(np.median(high - low)),
    )


def _rms(z: Floats) -> float:
    return float(np.sqrt(np.mean(z**2)))


def _stderr(values: Floats) -> float:
    """Standard error of the mean, 0 for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

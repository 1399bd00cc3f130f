r"""Notices when what arms bring has changed: per arm, alone and in company.

Rewards are summed over stretches of time, short ones lately and longer ones long ago. At every
boundary between two stretches the mean before and the mean after are compared, in two ways:

* **alone**: rewards of single arms. With the variance of rewards a function v of their mean, the
  means of both sides are compared with the common one by their (quasi-)deviance
  :math:`2 n \int_{\bar m}^m \frac{m - t}{v(t)} dt`, which is right for rare 0/1 rewards too.
* **in company**: surprises of larger sets with the arm, as they were drawn. While nothing changes
  their mean moves, as the forecast learns and other sets are drawn; that of rewards weighted to all
  sets equally does not. When other arms change and the forecast follows, it is the other way round.
  So an arm has changed if surprises have moved, and weighted rewards, which are noisier, as well.

A difference is taken for a change beyond :math:`2 \log (M n / (1 + c))` in squared standard errors,
n being the rewards so far and c the changes noticed.
"""

import math
from typing import NamedTuple

import numpy as np

from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners.evidence import Evidence
from evenhand.learners.model import binary_variance
from evenhand.typing import Floats, Ints, Singles

STRETCHES = 2  # of every length, before two are put together: the least that keeps newer ones short
ROUNDS = 5  # queries per arm between two looks
LAG = 500  # or this part of what is remembered, if that is more: what noticing late may cost
FEW = 5  # rewards, of equal weight, before and after a boundary to compare them
ALSO = 2.0  # standard errors that weighted rewards must have moved, where surprises have
SHOWN = 100  # changes that are told of


class Cut(NamedTuple):
    """From when on an arm is another.

    Attributes
    ----------
    column
        The arm's.
    start
        How many rewards had been told when it changed.
    alone
        What it has brought alone since, n, y and y^2; None where it changed in company only.
    """

    column: int
    start: int
    alone: Floats | None


FIELDS: Fields = {
    "spans": Field(1, 2**62, (ANY,)),
    "ends": Field(0, 2**62, (ANY,)),
    "looked": COUNT,
    "cuts": COUNT,
}


def fields(m: int) -> Fields:
    """What a watch remembers."""
    sums = Field(-1e30, 1e30, (ANY, m, 3)), Field(-1e30, 1e30, (ANY, m, 7))
    marks = Field(-1e300, 1e300)
    return FIELDS | {
        "alone": sums[0],
        "company": sums[1],
        "alone_mark": marks,
        "company_mark": marks,
    }


class Watch:
    """Sums of rewards by stretches of time, oldest first.

    Attributes
    ----------
    spans, ends
        (l,) how many looks each stretch holds, and how many rewards had been told at its end.
    alone
        (l, m, 3) of single arms: 1, y and y^2.
    company
        (l, m, 7) of larger sets: 1, surprises and their squares; weights, weighted rewards,
        weights^2, and these times the variance forecast.
    alone_mark, company_mark
        (m, 3) and (m, 7) what the evidence's sums were at the start of the present stretch.
    cuts
        Changes noticed so far.
    """

    def __init__(self, m: int, k: int, sizes: Floats) -> None:
        self.m, self.k = m, k
        larger = sizes * np.arange(1, k + 1)
        larger[0] = 0.0
        # how often an arm of a larger set is in one of each size
        self.mix = larger / max(larger.sum(), 1e-300)
        self.spans, self.ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.alone = np.zeros((0, m, 3), np.float32)
        self.company = np.zeros((0, m, 7), np.float32)
        self.alone_mark, self.company_mark = np.zeros((m, 3)), np.zeros((m, 7))
        self.looked, self.cuts = 0, 0

    def interval(self, evidence: Evidence) -> int:
        """Rewards between two looks."""
        return max(ROUNDS * self.m, evidence.age // LAG)

    def mark(self, evidence: Evidence) -> None:
        """Begin a stretch: after the forecast, or anything that is summed, has changed."""
        self.alone_mark = evidence.singles[:, :3].copy()
        self.company_mark = _in_company(evidence)

    def _fresh(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Sums of the present stretch."""
        alone = evidence.singles[:, :3] - self.alone_mark
        company = _in_company(evidence) - self.company_mark
        # surprises of all sizes have about the same mean; what is expected is that of any size
        company[:, 4] += company[:, 3] * (self.mix @ evidence.expected)
        return alone, company

    def end(self, evidence: Evidence) -> None:
        """End the present stretch: before the forecast changes."""
        alone, company = self._fresh(evidence)
        self.alone = np.append(self.alone, alone[None].astype(np.float32), axis=0)
        self.company = np.append(self.company, company[None].astype(np.float32), axis=0)
        self.spans, self.ends = np.append(self.spans, 1), np.append(self.ends, evidence.told)
        self._merge()

    def _merge(self) -> None:
        """Put the two oldest stretches of a length together where there are too many of it."""
        length = 1
        while np.sum(self.spans == length) > STRETCHES:
            i = int(np.argmax(self.spans == length))  # the oldest of them, and the one behind it
            self.alone[i + 1] += self.alone[i]
            self.company[i + 1] += self.company[i]
            self.spans[i + 1] += self.spans[i]
            self.alone, self.company = np.delete(self.alone, i, 0), np.delete(self.company, i, 0)
            self.spans, self.ends = np.delete(self.spans, i), np.delete(self.ends, i)
            length *= 2

    def due(self, evidence: Evidence) -> bool:
        """Whether it is time for a look."""
        return evidence.told - self.looked >= self.interval(evidence)

    def look(self, evidence: Evidence) -> list[Cut]:
        """End the present stretch; find arms that have changed and forget what was before."""
        self.looked = evidence.told
        self.end(evidence)
        self.mark(evidence)
        if len(self.spans) < 2 or evidence.told < 5 * ROUNDS * self.m:
            return []
        limit = 2.0 * math.log(self.m * evidence.told / (1 + self.cuts))
        alone = _alone_moved(evidence, self.alone)
        company = _company_moved(evidence, self.company)
        cuts = []
        for column in np.flatnonzero(np.maximum(alone, company).max(axis=0) > limit).tolist():
            by_itself = bool(alone[:, column].max() > limit)
            moved = alone if by_itself else company
            first = int(np.argmax(moved[:, column])) + 1  # stretch after the change
            if by_itself:
                self.alone[:first, column] = 0.0
            self.company[:, column] = 0.0
            recent = self.alone[first:, column].sum(axis=0, dtype=np.float64)
            start = int(self.ends[first - 1])
            cuts.append(Cut(column, start, recent if by_itself else None))
        self.cuts += len(cuts)
        return cuts

    def rearrange(self, source: Ints) -> None:
        """Go on with other arms: newcomers where the source is -1 or a paused arm."""
        stays = (source >= 0) & (source < self.m)
        self.alone, self.company = (
            np.where(stays[:, None], x[:, np.where(stays, source, 0)], np.float32(0.0))
            for x in (self.alone, self.company)
        )
        self.m = len(source)


def _in_company(evidence: Evidence) -> Floats:
    """Sums (m, 7) over all larger sets with an arm, surprises in the place of rewards."""
    weighted = evidence.weighted.sum(axis=0)
    weighted[:, 1] -= (evidence.weighted[:, :, 0] * evidence.expected[1:]).sum(axis=0)
    return np.concatenate([evidence.together, weighted], axis=1)


def _variance(evidence: Evidence, mean: Floats) -> Floats:
    alpha, beta = evidence.noise
    return alpha + beta * binary_variance(mean, evidence.low)


def _held(evidence: Evidence, total: Floats, n: Floats) -> Floats:
    """Mean with half a reward at either end of the range more: one of 0s alone may yet be above."""
    return (total + 0.5 + evidence.low) / (n + 1.0)


def _alone_moved(evidence: Evidence, alone: Singles) -> Floats:
    """How far means have moved at each boundary (l - 1, m), in squared standard errors."""
    sums = np.cumsum(alone[..., :2], axis=0, dtype=np.float64)
    before, whole = sums[:-1], sums[-1]
    common = whole[:, 1] / np.maximum(whole[:, 0], 1.0)
    at_common = _variance(evidence, _held(evidence, whole[:, 1], whole[:, 0]))
    moved = np.zeros(before.shape[:2])
    for part in (before, whole - before):
        n = part[..., 0]
        mean = np.where(n > 0.0, part[..., 1] / np.maximum(n, 1.0), common)
        # the integral by Simpson's rule
        rate = 1.0 / at_common + 2.0 / _variance(evidence, (mean + common) / 2.0)
        moved += n * (mean - common) ** 2 * rate / (3.0 * evidence.own)
    return np.where((before[..., 0] >= FEW) & (whole[:, 0] - before[..., 0] >= FEW), moved, 0.0)


def _company_moved(evidence: Evidence, company: Singles) -> Floats:
    """The same for larger sets: 0 where weighted rewards have not moved along.

    Variances of weighted rewards are those forecast; at least that of their mean, as forecasts may
    be wrong: it is not too small on average, the variance being a concave function of the mean.
    """
    sums = np.cumsum(company, axis=0, dtype=np.float64)
    n, e, ee, w, y, square, _ = sums[-1].T
    noise = np.maximum(ee / np.maximum(n, 1.0) - (e / np.maximum(n, 1.0)) ** 2, 1e-12)
    rewards = w**2 / np.maximum(square, 1e-12)  # of equal weight
    least = _variance(evidence, _held(evidence, y / np.maximum(w, 1e-12) * rewards, rewards))
    surprise, error, reward, slack = np.zeros((4, *sums[:-1].shape[:2]))
    enough = np.ones(surprise.shape, np.bool_)
    for sign, part in ((1.0, sums[:-1]), (-1.0, sums[-1] - sums[:-1])):
        n, w = np.maximum(part[..., 0], 1.0), np.maximum(part[..., 3], 1e-12)
        surprise += sign * part[..., 1] / n
        error += noise / n
        reward += sign * part[..., 4] / w
        slack += np.maximum(part[..., 6], least * part[..., 5]) / w**2
        enough &= w**2 > FEW * part[..., 5] + 1e-12
    enough &= (surprise * reward > 0.0) & (reward**2 > ALSO**2 * slack)
    return np.where(enough, surprise**2 / error, 0.0)

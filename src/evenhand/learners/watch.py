r"""Notices when what arms bring has changed: per arm, alone and in company.

Rewards are summed over stretches of time, short ones lately and longer ones long ago. At every
boundary between two stretches the mean before and the mean after are compared, in two ways:

* **alone**: rewards of single arms. With the variance of rewards a function v of their mean, the
  means of both sides are compared with the common one by their (quasi-)deviance
  :math:`2 n \int_{\bar m}^m \frac{m - t}{v(t)} dt`, which is right for rare 0/1 rewards too.
* **in company**: weighted surprises of larger sets with the arm. While nothing changes, the mean of
  rewards does not move, but that of surprises does, as the forecast learns; when other arms change
  and the forecast follows, it is the other way round. An arm has changed if both have moved.

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
SHOWN = 100  # changes that are told of


class Change(NamedTuple):
    """A change that was noticed.

    Attributes
    ----------
    queries
        After how many queries it was noticed.
    arm
        Whose: the arm's name, or its id.
    alone
        Whether the arm by itself brings something else, or only together with others.
    """

    queries: int
    arm: str | int
    alone: bool


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
    sums = Field(-1e30, 1e30, (ANY, m, 3)), Field(-1e30, 1e30, (ANY, m, 4))
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
        (l, m, 4) of larger sets: weights, weighted surprises, weights^2, and the weights times
        what was forecast.
    alone_mark, company_mark
        (m, 3) what the evidence's sums were at the start of the present stretch.
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
        self.company = np.zeros((0, m, 4), np.float32)
        self.alone_mark, self.company_mark = np.zeros((m, 3)), np.zeros((m, 3))
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
        level = self.mix @ evidence.expected
        return alone, np.column_stack([company, company[:, 0] * level])

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
    """Sums (m, 3) over all larger sets with an arm: weights, weighted surprises, weights^2."""
    weight, reward, square, _ = np.moveaxis(evidence.weighted, 2, 0)
    surprise = reward - weight * evidence.expected[1:]
    return np.column_stack([x.sum(axis=0) for x in (weight, surprise, square)])


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
    """The same for larger sets."""
    sums = np.cumsum(company, axis=0, dtype=np.float64)
    w, surprise, square, level = sums[-1].T
    rewards = w**2 / np.maximum(square, 1e-12)  # of equal weight
    mean = (surprise + level) / np.maximum(w, 1e-12)
    noise = _variance(evidence, _held(evidence, mean * rewards, rewards))
    before, after = sums[:-1], sums[-1] - sums[:-1]
    w, rest = np.maximum(before[..., 0], 1e-12), np.maximum(after[..., 0], 1e-12)
    apart = before[..., 1] / w - after[..., 1] / rest
    rewards_apart = apart + before[..., 3] / w - after[..., 3] / rest
    error = noise * (before[..., 2] / w**2 + after[..., 2] / rest**2)
    enough = (w**2 >= FEW * before[..., 2]) & (rest**2 >= FEW * after[..., 2])
    moved = np.minimum(apart**2, rewards_apart**2)
    return np.divide(moved, error, where=enough & (error > 0.0), out=np.zeros_like(moved))

r"""Notices when what arms bring has changed: per arm, alone and in company.

Rewards are summed over stretches of time, short ones lately and longer ones long ago. At every
boundary between two stretches the mean before and the mean after are compared, in two ways:

* **alone**: rewards of single arms. With the variance of rewards a function v of their mean, the
  means of both sides are compared with the common one by their (quasi-)deviance
  :math:`2 n \int_{\bar m}^m \frac{m - t}{v(t)} dt`, which is right for rare 0/1 rewards too. Where
  the rewards of a side spread more than v says, that counts: so a first one far off is no change.
* **in company**: surprises of larger sets with the arm, as they were drawn. While nothing changes
  their mean moves, as the forecast learns and other sets are drawn; that of rewards weighted to all
  sets equally does not. When other arms change and the forecast follows, it is the other way round.
  So an arm has changed if surprises have moved, and weighted rewards, which are noisier, as well.
  That is watched from when the first larger sets, which are kept, have settled the forecast.

A difference is taken for a change beyond :math:`2 \log (2 M n / (1 + c))` in squared standard
errors, n being the rewards so far and c the changes noticed. Where several arms have changed at
once, all arms together show it before any arm does: if squares summed over arms are beyond what
chance :math:`(1 + c) / 2n` leaves to chi-square, arms beyond :math:`2 \log 2M`, the limit for one
of M, have changed.

Such a look takes long beside the few rewards since the last one. So there is one only every few
times, or where a glance shows that arms alone have lately brought something else than before.

Pairs of arms are watched by :mod:`evenhand.learners.pairs`; where most arms change little by
little, all that is known fades as :mod:`evenhand.learners.rates` says.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners import pairs, rates
from evenhand.learners.evidence import Evidence
from evenhand.learners.moves import (
    Moved,
    Mover,
    alone_moved,
    company_moved,
    held,
    moved_lately,
    one_of,
    variance_at,
)
from evenhand.learners.pairs import ROOM, Pairs
from evenhand.learners.rates import Rates
from evenhand.learners.stretches import joined, merged, next_ends
from evenhand.products import product
from evenhand.typing import Floats, Ints, Singles

ROUNDS = 5  # queries per arm between two glances
LAG = 500  # or this part of what is remembered, if that is more: what noticing late may cost
SELDOM = 3  # glances per look: a matter of cost
SKEW = 1.25  # squares of few rewards of 0 or 1 are about chi-square: their mean is up to 1.2
BLOCK = 2**14  # arms looked at together: all at once take much memory
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


class Seen(NamedTuple):
    """What a look has shown: arms that changed, and the share of what is known that still counts.

    The share is below 1 where arms change little by little.
    """

    cuts: list[Cut]
    share: float


NOTHING = Seen([], 1.0)
FIELDS: Fields = {
    "spans": Field(1, 2**62, (ANY,)),
    "ends": Field(0, 2**62, (ANY,)),
    "glances": COUNT,
    "glanced": COUNT,
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
        **{f"pairs.{name}": field for name, field in pairs.fields(m).items()},
        **{f"rates.{name}": field for name, field in rates.fields(m).items()},
    }


class Limits(NamedTuple):
    """How far one arm, all together, and one where all together have, may move by chance."""

    one: float
    all: float
    some: float

    @classmethod
    def of(cls, m: int, chance: float) -> "Limits":
        """Limits, in squared standard errors, that are passed with about this chance."""
        together = SKEW * chdtri(m, min(chance, 1.0))
        return cls(2.0 * math.log(m / chance), float(together), one_of(m))


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
    pairs
        The same for pairs of arms.
    rates
        How well forgetting at several rates has forecast.
    glances, glanced
        How many glances there were, and how many rewards had been told at the last.
    cuts
        Changes noticed so far.
    """

    def __init__(self, m: int, k: int, sizes: Floats) -> None:
        self.m = m
        larger = sizes * np.arange(1, k + 1)
        larger[0] = 0.0
        # how often an arm of a larger set is in one of each size
        self.mix = larger / max(larger.sum(), 1e-300)
        self.spans, self.ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.alone = np.zeros((0, m, 3), np.float32)
        self.company = np.zeros((0, m, 7), np.float32)
        self.alone_mark, self.company_mark = np.zeros((m, 3)), np.zeros((m, 7))
        self.pairs, self.rates = Pairs(m), Rates(m)
        self.glances, self.glanced, self.cuts = 0, 0, 0

    def interval(self, evidence: Evidence) -> int:
        """Rewards between two glances."""
        least = ROUNDS * self.m
        if evidence.told <= LAG * least:  # no need to find out how much of it is remembered
            return least
        return max(least, evidence.age // LAG)

    def mark(self, evidence: Evidence) -> None:
        """Begin a stretch: after the forecast, or anything that is summed, has changed."""
        self.alone_mark = evidence.singles[:, :3].copy()
        self.company_mark = _in_company(evidence)

    def _fresh(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Sums of the present stretch."""
        alone = evidence.singles[:, :3] - self.alone_mark
        company = _in_company(evidence) - self.company_mark
        # surprises of all sizes have about the same mean; what is expected is that of any size
        company[:, 4] += company[:, 3] * product(self.mix, evidence.expected)
        if evidence.keeping:  # the forecast is found anew from all larger sets at every renewal
            company[:] = 0.0
        return alone, company

    def end(self, evidence: Evidence) -> None:
        """End the present stretch: before the forecast changes."""
        alone, company = self._fresh(evidence)
        self.rates.note(alone)
        spans, starts = merged([*self.spans.tolist(), 1])
        self.spans, self.ends = np.array(spans), next_ends(self.ends, evidence.told, starts)
        self.alone = joined(self.alone, alone, starts)
        self.company = joined(self.company, company, starts)

    def _forecast(self, evidence: Evidence) -> None:
        n, y = self.rates.sums[0].T
        variance = evidence.own[: len(n)] * variance_at(evidence, held(evidence, y, n))
        self.rates.see(variance, evidence.told, ROUNDS * self.m)

    def half_life(self, evidence: Evidence) -> float:
        """Rewards after which what was told counts half: infinite unless arms change slowly."""
        return ROUNDS * self.m * self.rates.half_life(self._chance(evidence))

    def _chance(self, evidence: Evidence) -> float:
        """Chance that a look is to be mistaken with."""
        return (1 + self.cuts) / (2.0 * max(evidence.told, 1))

    def due(self, evidence: Evidence) -> bool:
        """Whether it is time for a glance."""
        return evidence.told - self.glanced >= self.interval(evidence)

    def glance(self, evidence: Evidence) -> Seen:
        """Look if it is time to, or if arms alone seem to have changed."""
        self.glanced, self.glances = evidence.told, self.glances + 1
        if self.glances % SELDOM and not moved_lately(evidence, self.alone_mark):
            return NOTHING
        return self.look(evidence)

    def look(self, evidence: Evidence) -> Seen:
        """End the present stretch; find arms that have changed and forget what was before."""
        self.pairs.room = ROOM
        self.end(evidence)
        self.mark(evidence)
        new = evidence.told - self.rates.told
        self._forecast(evidence)
        if len(self.spans) < 2 or evidence.told < 5 * ROUNDS * self.m:
            return NOTHING
        limits = Limits.of(self.m, self._chance(evidence))
        alone_capped = partial(alone_moved, most=limits.one)  # among all, none counts for more
        alone = self._changed(alone_capped, self.alone, evidence, limits)
        company = self._changed(company_moved, self.company, evidence, limits)
        cuts = self._cut(alone, company)
        if self.pairs.due(evidence.told, self.interval(evidence)):
            cuts += self._of_pairs(evidence, {cut.column for cut in cuts})
        self.pairs.forget(np.array([cut.column for cut in cuts], np.int64))
        # many that are told at once are mostly new themselves
        share = 0.5 ** min(new / self.half_life(evidence), 1.0)
        if share < 1.0:
            self._fade(share)
        self.cuts += len(cuts)
        return Seen(cuts, share)

    def _fade(self, share: float) -> None:
        """Let all sums of arms count for less; squares of weights fade twice as fast."""
        self.alone *= np.float32(share)
        self.company *= np.array([share] * 5 + [share**2] * 2, np.float32)

    def _of_pairs(self, evidence: Evidence, besides: set[int]) -> list[Cut]:
        """Find arms of pairs that have changed, besides some that have anyway."""
        found = self.pairs.look(evidence.told, self.cuts)
        columns = [column for column in found if column not in besides]
        self.company[:, columns] = 0.0
        return [Cut(column, found[column], None) for column in columns]

    def _changed(self, moved: Mover, sums: Singles, evidence: Evidence, limits: Limits) -> Ints:
        """Return the first stretch (m,) after each arm changed, 0 where not; by bounds first."""

        def by_blocks(exact: bool) -> list[Moved]:
            return [moved(evidence, sums[:, arms], arms, exact) for arms in self._blocks()]

        if not self._passed(by_blocks(exact=False), limits):
            return np.zeros(self.m, np.int64)
        found = by_blocks(exact=True)
        together = self._together(found)
        return np.concatenate([_first(one, together, limits) for one in found])

    def _blocks(self) -> Iterator[slice]:
        return (slice(first, first + BLOCK) for first in range(0, self.m, BLOCK))

    def _passed(self, moved: list[Moved], limits: Limits) -> bool:
        """Whether any arm, or all of them together, have moved beyond the limits."""
        most = max(float(one.squares.max()) for one in moved)
        return bool(most > limits.one or self._together(moved).max() > limits.all)

    def _together(self, moved: list[Moved]) -> Floats:
        """How far all arms have moved (l - 1,).

        What they have moved alike does not count: those in the same sets move together.
        """
        squares, total = np.sum([one.sums for one in moved], axis=0)
        result: Floats = squares - total**2 / self.m
        return result

    def _cut(self, alone: Ints, company: Ints) -> list[Cut]:
        """Forget what was before arms changed, in the stretches given."""
        cuts = []
        for column in np.flatnonzero(alone | company).tolist():
            by_itself = bool(alone[column])
            first = int((alone if by_itself else company)[column])
            if by_itself:
                self.alone[:first, column] = 0.0
            self.company[:, column] = 0.0
            recent = self.alone[first:, column].sum(axis=0, dtype=np.float64)
            if by_itself:
                self.rates.restart(column, recent[0], recent[1])
            start = int(self.ends[first - 1])
            cuts.append(Cut(column, start, recent if by_itself else None))
        return cuts

    def rearrange(self, source: Ints) -> None:
        """Go on with other arms: newcomers where the source is -1 or a paused arm."""
        stays = (source >= 0) & (source < self.m)
        self.alone, self.company = (
            np.where(stays[:, None], x[:, np.where(stays, source, 0)], np.float32(0.0))
            for x in (self.alone, self.company)
        )
        self.rates.rearrange(np.where(stays, source, -1))
        self.m = len(source)
        self.pairs.rearrange(source)


def _in_company(evidence: Evidence) -> Floats:
    """Sums (m, 7) over all larger sets with an arm, surprises in the place of rewards."""
    weighted = evidence.weighted.sum(axis=0)
    weighted[:, 1] -= (evidence.weighted[:, :, 0] * evidence.expected[1:]).sum(axis=0)
    return np.concatenate([evidence.together, weighted], axis=1)


def _first(moved: Moved, together: Floats, limits: Limits) -> Ints:
    """Return the first stretch (m,) after each arm changed, 0 where it has not.

    ``together`` (l - 1,) is how far all arms have moved.
    """
    changed, first = moved.squares.max(axis=0) > limits.one, np.argmax(moved.squares, axis=0)
    place = int(np.argmax(together))
    if together[place] > limits.all:
        also = ~changed & (moved.loosely[place] > limits.some)
        first[also] = place
        changed |= also
    return np.where(changed, first + 1, 0)

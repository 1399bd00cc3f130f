r"""The point of the terms that is nearest to scores: a KL projection onto floors, caps and groups.

The answer minimises :math:`\sum_a \pi_a \log(\pi_a / s_a)` among the marginals that the terms
allow. Inside a pool of arms with a given total it is :math:`\pi_a = \mathrm{clip}(c s_a, low_a,
high_a)`; all arms are one pool but for groups that end up at their floor or cap, which are pools of
their own with a scale c of their own. Scores of 0 stand for equal scores that go to 0: such arms
have their floors as long as others can take the rest, and then share it equally, as far as floors
and caps allow.
"""

import math
from typing import NamedTuple

import numpy as np

from evenhand.typing import Floats, Ints, compiled

LEAST = 1e-300  # the smallest score above 0, relative to the largest


class Bounds(NamedTuple):
    """Terms for the arms at hand, in marginals.

    Attributes
    ----------
    low, high
        (m,) floor and cap of each arm. A cap of 0 takes the arm out.
    group
        (m,) the group of each arm, -1 for those in none.
    group_low, group_high
        (g,) floor and cap of the groups' totals.
    """

    low: Floats
    high: Floats
    group: Ints
    group_low: Floats
    group_high: Floats

    def narrowed(self, low: Floats, high: Floats) -> "Bounds":
        """Return the bounds with further floors and caps per arm."""
        return self._replace(low=np.maximum(self.low, low), high=np.minimum(self.high, high))


def project(scores: Floats, bounds: Bounds, k: int) -> Floats:
    """Marginals (m,) nearest to scores of at least 0, within feasible bounds; they sum to k."""
    scores = relative(scores)
    if not len(bounds.group_low):
        return pour(scores, bounds.low, bounds.high, float(k))
    totals = group_totals(scores, *bounds, float(k))
    result, pooled, left = np.empty(len(scores)), bounds.group < 0, float(k)
    for g, total in enumerate(totals):
        inside = bounds.group == g
        if math.isnan(total):  # neither floor nor cap is felt
            pooled |= inside
        else:
            pool = scores[inside], bounds.low[inside], bounds.high[inside]
            result[inside] = pour(*pool, total)
            left -= total
    pool = scores[pooled], bounds.low[pooled], bounds.high[pooled]
    result[pooled] = pour(*pool, left)
    return result


def relative(scores: Floats) -> Floats:
    """Scores over the largest; none that is above 0 becomes 0."""
    top = scores.max()
    if not top > 0.0:
        return np.zeros(len(scores))
    return np.where(scores > 0.0, np.maximum(scores / top, LEAST), 0.0)


def pour(scores: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Fill a pool, its sum right to the last digits however many arms there are."""
    result = fill_between(scores, low, high, total)
    free = (low < result) & (result < high)
    if free.any():
        lacking = total - result.sum()
        result[free] *= 1.0 + lacking / result[free].sum()
    return np.minimum(np.maximum(result, low), high)


@compiled
def fill_between(scores: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Find clip(c s, low, high) with this sum; arms of score 0 come last, and are then alike."""
    m, room = len(scores), 0.0
    for a in range(m):
        room += high[a] if scores[a] > 0.0 else low[a]
    positive_first = room >= total
    result, active, left = np.empty(m), np.empty(m), total
    for a in range(m):
        moves = (scores[a] > 0.0) == positive_first
        active[a] = 0.0 if not moves else scores[a] if positive_first else 1.0
        if not moves:
            result[a] = low[a] if positive_first else high[a]
            left -= result[a]
    below, above = 1e-18, 2.0 / LEAST
    for _ in range(80):  # the sum grows with the scale
        c = math.sqrt(below) * math.sqrt(above)
        found = 0.0
        for a in range(m):
            if active[a] > 0.0:
                found += min(max(c * active[a], low[a]), high[a])
        if found < left:
            below = c
        else:
            above = c
    free = 0.0
    for a in range(m):
        x = above * active[a]
        if active[a] > 0.0 and low[a] < x < high[a]:
            free += active[a]
        elif active[a] > 0.0:
            result[a] = low[a] if x <= low[a] else high[a]
            left -= result[a]
    for a in range(m):
        x = above * active[a]
        if active[a] > 0.0 and low[a] < x < high[a]:
            result[a] = min(max(left * active[a] / free, low[a]), high[a])
    return result


@compiled
def group_totals(
    scores: Floats,
    low: Floats,
    high: Floats,
    group: Ints,
    group_low: Floats,
    group_high: Floats,
    total: float,
) -> Floats:
    """Totals of the groups that are held at their floor or cap; nan for the others."""
    n = len(group_low)
    sums = np.empty(n + 1)  # the last is that of arms in no group
    positive_first = True
    below, above = 1e-18, 2.0 / LEAST
    for step in range(81):
        # first with all scores above 0 at their caps, to see which of the arms move
        c = math.inf if step == 0 else math.sqrt(below) * math.sqrt(above)
        _sum_groups(c, positive_first, scores, low, high, group, sums)
        found = sums[n]
        for g in range(n):
            found += min(max(sums[g], group_low[g]), group_high[g])
        if step == 0:
            positive_first = found >= total
        elif found < total:
            below = c
        else:
            above = c
    _sum_groups(above, positive_first, scores, low, high, group, sums)
    result = np.full(n, math.nan)
    for g in range(n):
        if sums[g] <= group_low[g]:
            result[g] = group_low[g]
        elif sums[g] >= group_high[g]:
            result[g] = group_high[g]
    return result


@compiled
def _sum_groups(
    c: float,
    positive_first: bool,
    scores: Floats,
    low: Floats,
    high: Floats,
    group: Ints,
    sums: Floats,
) -> None:
    """Sum what the arms of each group have at scale c, those in no group in the last place."""
    n = len(sums) - 1
    for g in range(n + 1):
        sums[g] = 0.0
    for a in range(len(scores)):
        if scores[a] > 0.0:
            x = min(max(c * scores[a], low[a]), high[a]) if positive_first else high[a]
        else:
            x = low[a] if positive_first else min(max(c, low[a]), high[a])
        sums[group[a] if group[a] >= 0 else n] += x

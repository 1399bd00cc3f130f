"""Rewards taken in: one pass over the sets, for the sums of the model and for those without one."""

from typing import NamedTuple

import numpy as np

from evenhand.learners.model import EDGE, LEAST, Forecast, Kept, Sums, rates, sinking
from evenhand.typing import Floats, Ints, Singles, compiled


class Means(NamedTuple):
    """Sums that need no model, and what rewards are corrected by.

    Attributes
    ----------
    singles, weighted, together
        As in :class:`~evenhand.learners.evidence.Evidence`; larger sets are not added where
        ``weighted`` is empty.
    expected
        (k, m) mean over all r-sets with an arm of what is subtracted from rewards.
    """

    singles: Floats
    weighted: Floats
    together: Floats
    expected: Floats

    @classmethod
    def none(cls, m: int, k: int) -> "Means":
        """Of larger sets that are to be added to the model alone."""
        return cls(np.zeros((0, 5)), np.zeros((0, m, 4)), np.zeros((0, 3)), np.zeros((k, 0)))


@compiled
def add_rewards(
    sums: Sums,
    means: Means,
    forecast: Forecast,
    low: float,
    orders: Ints,
    sizes: Ints,
    weights: Floats,
    rewards: Floats,
    looks: Floats,
    adds: bool,
) -> tuple[int, float]:
    """Add the rewards (n, 1) of one set per row, nan skipped, to all sums.

    ``weights`` (n, k) are those of the members. What is seen of larger sets is written into the
    first rows of ``looks`` (n, k + 3), see :class:`Kept`; if they are not to be added to the model
    they are only looked at. Returns how many rewards there were, and the largest of their weights.

    Rows are listed first, single arms and larger sets: among each other at random they would have
    the processor guess, and often wrong. Larger sets, whose sizes it cannot guess either, are gone
    through once for all sums.
    """
    cells, curve, saturation, scatter, weight = sums
    singles, weighted, together, expected = means
    worth, extra, gamma, noise, own, reference, _, met, edges = forecast
    (n, k), some, many = orders.shape, 0, 0
    alone, large = np.empty(n, np.uintp), np.empty(n, np.uintp)  # of signed numbers each is
    for i in range(n):  # looked at for its sign
        told, single = rewards[i, 0] == rewards[i, 0], sizes[i, 0] == 1
        alone[some], large[many] = i, i
        some += told & single
        many += told & (not single)
    for place in range(some):
        i = alone[place]
        y = rewards[i, 0]
        cell, square = singles[np.uintp(orders[i, 0])], y * y
        cell[0] += 1.0
        cell[1] += y
        cell[2] += square
        cell[3] += square * y
        cell[4] += square * square
    largest, free = 0.0, len(weighted) > 0
    # sums over all sets by themselves: in an array each would wait for the one before
    c0, c1 = curve[0], curve[1]
    s0, s1, s2, s3, s4 = scatter[0], scatter[1], scatter[2], scatter[3], scatter[4]
    w0, w1 = weight[0], weight[1]
    for place in range(many):
        i = large[place]
        r, y = sizes[i, 0], rewards[i, 0]
        missed, ratio, total, edge = 1.0, 0.0, 0.0, EDGE
        for j in range(r):
            a = np.uintp(orders[i, j])
            looks[place, j] = missed  # what those before leave
            left = 1.0 - gamma * worth[a]
            missed *= left if left > LEAST else LEAST
            ratio += own[a] * worth[a]
            total += worth[a]
            edge = edges[a] if edges[a] > edge else edge
        value, slope, behind = (1.0 - missed) / gamma, 0.0, 1.0
        loss, lost, along, by_reference = 0.0, 0.0, 0.0, 0.0
        for j in range(r - 1, -1, -1):
            a = np.uintp(orders[i, j])
            others = looks[place, j] * behind
            looks[place, j] = others
            left = 1.0 - gamma * worth[a]
            behind *= left if left > LEAST else LEAST
            slope += worth[a] * others
            loss += extra[a]
            lost += extra[a] * (1.0 - others)
            along += others
            by_reference += others * reference[a]
        slope = (slope - value) / gamma
        held = value - lost - low  # as :func:`binary_variance`
        held = edge if held < edge else 1.0 - edge if held > 1.0 - edge else held
        q = held * (1.0 - held)
        common = 1.0 / (noise[0] + noise[1] * q)
        share = common * total / (ratio * noise[2])
        error, surprise = y - (value - lost), y - value + met[r - 1] * loss
        looks[place, k], looks[place, k + 1], looks[place, k + 2] = slope, share, surprise
        if free:
            variance = 1.0 / share
            for j in range(r):
                a, w = np.uintp(orders[i, j]), weights[i, j]
                largest = w if w > largest else largest
                cell = together[a]
                cell[0] += 1.0
                cell[1] += surprise
                cell[2] += surprise * surprise
                cell = weighted[r - 2, a]
                cell[0] += w
                cell[1] += w * (surprise + expected[r - 1, a])
                cell[2] += w * w
                cell[3] += w * w * variance
        if not adds:
            continue
        for j in range(r):
            cell, others = cells[np.uintp(orders[i, j])], looks[place, j]
            x, eta = others * share, (others - 1.0) * share
            cell[0] += x * others
            cell[1] += eta * others
            cell[2] += eta * (others - 1.0)
            cell[3] += x * error
            cell[4] += eta * error
            cell[5] += x * along
            cell[6] += eta * along
            cell[7] += x * by_reference
            cell[8] += eta * by_reference
            cell[9] += x * (along - r)
            cell[10] += eta * (along - r)
            cell[11] += x * slope
            cell[12] += eta * slope
        c0 += slope * slope * share
        c1 += slope * error * share
        saturation[r - 1, 0] += r
        saturation[r - 1, 1] += r - along
        s0 += common
        s1 += q * common
        s2 += q * q * common
        s3 += error * error * common
        s4 += q * error * error * common
        w0 += 1.0
        w1 += 1.0
    curve[0], curve[1] = c0, c1
    scatter[0], scatter[1], scatter[2], scatter[3], scatter[4] = s0, s1, s2, s3, s4
    weight[0], weight[1] = w0, w1
    return some + many, largest


def linearised(orders: Ints, rewards: Singles, forecast: Forecast, low: float) -> tuple[Sums, Kept]:
    """Sums of larger sets (n, k) against a forecast, and what products with them need."""
    m, (n, k) = len(forecast.worth), orders.shape
    sums, looks, slopes = Sums.blank(m, k), np.empty((n, k + 3)), np.zeros((m, 2))
    # einsum, as a sum over a short axis takes three times as long
    sizes = np.einsum("ij->i", (orders >= 0).astype(np.int64))[:, None]
    rows = orders, sizes, np.zeros((0, k)), rewards.astype(np.float64)[:, None]
    add_rewards(sums, Means.none(m, k), forecast, low, *rows, looks, True)
    sinking(orders, looks, rates(forecast.worth, forecast.gamma), slopes)
    return sums, Kept(orders, looks, slopes)

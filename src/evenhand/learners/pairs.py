r"""Notices when what two arms bring together has changed, while each alone brings what it did.

Larger sets are of four kinds: with both arms of a pair, with one of them, with the other, and with
neither. With :math:`\bar y` the mean of a kind,

.. math:: \bar y_{ab} - \bar y_{a \setminus b} - \bar y_{b \setminus a} + \bar y_{\emptyset}

is by how much both bring more than each would. Before and after each boundary between two stretches
of time it is compared twice: for surprises of sets as they were drawn, and for rewards weighted so
that all sets of a size count alike, which are noisier, but do not move with the policy or the
forecast. A pair has changed if surprises have moved, and weighted rewards along with them.

Standard errors are by Bernstein's inequality or Hoeffding's, the sharper one, so that few rewards
count for what they are. An interaction that moves leaves one pair and comes to another: so
surprises of one pair are to be beyond what chance :math:`2 (1 + c) / n` leaves to one of all pairs,
or those of two beyond what it leaves to two of them, n being the rewards so far and c the changes
noticed. That is as rarely per reward as :mod:`evenhand.learners.watch`, which looks more often,
takes an arm for changed.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from evenhand.exchange import Rows, SetPlan
from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners.stretches import joined, merged, next_ends
from evenhand.typing import Floats, Ints, Singles, compiled

MOST = 64  # arms up to which pairs are watched: of more, two are shown together too rarely
RARELY = 8  # glances at arms per look at pairs, of which there are more
ROOM = 1536  # rewards taken in between two looks at arms: late in a run there are many


def n_pairs(m: int) -> int:
    """How many pairs of arms are watched."""
    return m * (m - 1) // 2 if 2 <= m <= MOST else 0


def fields(m: int) -> Fields:
    """What is remembered of pairs."""
    return {
        "spans": Field(1, 2**62, (ANY,)),
        "ends": Field(0, 2**62, (ANY,)),
        "sums": Field(-1e30, 1e30, (ANY, _rows(m), 6)),
        "now": Field(-1e300, 1e300),
        "looked": COUNT,
        "room": COUNT,
    }


class Pairs:
    """Sums of rewards of larger sets by stretches of time, oldest first.

    Attributes
    ----------
    spans, ends
        (l,) how many looks each stretch holds, and how many rewards had been told at its end.
    sums
        (l, p + 1 + m, 6) over larger sets with each pair, all of them, and those with each arm: 1,
        the surprise e, weight w, w y, w y^2 and w^2, y being the reward.
    now
        (p + 1 + m, 6) the same since the start of the present stretch.
    looked
        Rewards told at the last look.
    room
        Rewards to take in until the next look at arms.
    """

    def __init__(self, m: int) -> None:
        self.m = m
        self.spans, self.ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.sums, self.now = np.zeros((0, _rows(m), 6), np.float32), np.zeros((_rows(m), 6))
        self.looked, self.room = 0, ROOM

    def absorb(self, plan: SetPlan, rows: Rows, rewards: Floats) -> None:
        """Add rewards (n, 1) of rows of one set each, skipping nan."""
        if len(self.now) and self.room:
            told = np.flatnonzero(~np.isnan(rewards[:, 0]))[: self.room]
            if len(told) < len(rewards):
                rows, rewards = rows.pick(told), rewards[told]
            self.room -= len(told)
            above = self.m / plan.k * plan.marginals - 1.0
            worth = plan.worth if len(plan.worth) else np.zeros(self.m, np.float32)
            gamma = max(plan.gamma, 1e-4)
            add_sets(self.now, *rows, rewards, above, plan.leaning, worth, gamma)

    def due(self, told: int, interval: int) -> bool:
        """Whether it is time for a look, if arms are looked at that often."""
        return len(self.now) > 0 and told - self.looked >= RARELY * interval

    def look(self, told: int, cuts: int) -> dict[int, int]:
        """End the present stretch; return the arms of pairs that have changed, and since when."""
        self.looked = told
        spans, starts = merged([*self.spans.tolist(), 1])
        self.spans, self.ends = np.array(spans), next_ends(self.ends, told, starts)
        self.sums = joined(self.sums, self.now, starts)
        self.now[:] = 0.0
        if len(spans) < 2 or n_pairs(self.m) < 2:
            return {}
        limits = Limits.of(n_pairs(self.m), min(1.0, RARELY * (1 + cuts) / (4.0 * told)))
        found: dict[int, int] = {}
        both = np.column_stack(np.triu_indices(self.m, 1))
        for place, pair in _changed(self.moved(limits), limits):
            since = int(self.ends[place])
            found |= {arm: max(since, found.get(arm, 0)) for arm in both[pair].tolist()}
        return found

    def moved(self, limits: "Limits") -> Floats:
        """How far pairs have moved at each boundary (l - 1, p), in squared standard errors.

        0 where weighted rewards have not moved along, and everywhere if no pair has moved enough.
        """
        n, e = self._sides(slice(0, 2))
        noise = _noise(self.sums.sum(axis=0, dtype=np.float64), self.m)[:, None, None]
        gap, shares = _difference(e, n), 1.0 / np.maximum(n, 1.0)
        error = (noise * shares).sum(axis=(0, 1)) + shares.max(axis=(0, 1)) * np.abs(gap) / 3.0
        error = np.minimum(error, 0.25 * shares.sum(axis=(0, 1)))
        moved = np.where((n >= 1.0).all(axis=(0, 1)), gap**2 / np.maximum(error, 1e-12), 0.0)
        if moved.max() <= min(limits.one, 0.5 * limits.two):
            return np.zeros_like(moved)
        w, wy, _, ww = self._sides(slice(2, 6))
        also = _difference(wy, w)
        error = (noise * ww / np.maximum(w, 1e-12) ** 2).sum(axis=(0, 1))
        alike = (gap * also > 0.0) & (also**2 > chdtri(1, 0.5 / n_pairs(self.m)) * error)
        return np.where(alike, moved, 0.0)

    def _sides(self, which: slice) -> Floats:
        """Sums before and after each boundary, by kind of set (n, 4, 2, l - 1, p)."""
        sums = np.cumsum(self.sums[..., which], axis=0, dtype=np.float64)
        sides = np.stack([sums[:-1], sums[-1] - sums[:-1]])
        return np.moveaxis(_kinds(sides, self.m), -1, 0)

    def forget(self, columns: Ints) -> None:
        """Know nothing of some arms."""
        if len(self.now) and len(columns):
            p = n_pairs(self.m)
            gone = np.isin(np.column_stack(np.triu_indices(self.m, 1)), columns).any(axis=1)
            for sums in (*self.sums, self.now):
                sums[:p][gone] = sums[p + 1 + columns] = 0.0

    def rearrange(self, source: Ints) -> None:
        """Go on with other arms: newcomers where the source is -1 or a paused arm."""
        old, self.m = self.m, len(source)
        blank = np.zeros((len(self.sums) + 1, _rows(self.m), 6))
        if n_pairs(old) and n_pairs(self.m):
            stays = np.flatnonzero((source >= 0) & (source < old))
            here, there = stays, source[stays]
            upper = np.triu_indices(len(stays), 1)
            places = [
                np.concatenate([_places(m)[np.ix_(x, x)][upper], [n_pairs(m)], n_pairs(m) + 1 + x])
                for m, x in ((self.m, here), (old, there))
            ]
            blank[:, places[0]] = np.append(self.sums, self.now[None], axis=0)[:, places[1]]
        self.sums, self.now = blank[:-1].astype(np.float32), blank[-1]


class Limits(NamedTuple):
    """How far one pair, or two of them in all, may move by chance, in squared standard errors."""

    one: float
    two: float

    @classmethod
    def of(cls, p: int, chance: float) -> "Limits":
        """Limits for p pairs that are passed with this chance."""
        return cls(float(chdtri(1, chance / p)), float(chdtri(2, 2.0 * chance / (p * (p - 1)))))


def _changed(moved: Floats, limits: Limits) -> list[tuple[int, int]]:
    """Boundaries and pairs that moved (l - 1, p) beyond limits, one by one or the first two."""
    places, pairs = np.argmax(moved, axis=0), np.flatnonzero(moved.max(axis=0) > limits.one)
    found = [(int(places[pair]), pair) for pair in pairs.tolist()]
    first = np.argsort(moved, axis=1)[:, -2:]
    sums = np.take_along_axis(moved, first, axis=1).sum(axis=1)
    place = int(np.argmax(sums))
    if not found and sums[place] > limits.two:
        found = [(place, pair) for pair in first[place].tolist()]
    return found


def _rows(m: int) -> int:
    return n_pairs(m) + 1 + m if n_pairs(m) else 0


def _places(m: int) -> Ints:
    """Place (m, m) of each pair in the order of the sums."""
    result = np.zeros((m, m), np.int64)
    upper = np.triu_indices(m, 1)
    result[upper] = np.arange(n_pairs(m))
    return result + result.T


@cache
def _both(m: int) -> tuple[Ints, Ints]:
    """The arms (p,) of every pair."""
    return np.triu_indices(m, 1)


def _kinds(sums: Floats, m: int) -> Floats:
    """Sums (..., p + 1 + m, n) of sets by kind (4, ..., p, n): both, one, the other, neither."""
    p = n_pairs(m)
    one, other = _both(m)
    pair, every, arm = sums[..., :p, :], sums[..., p : p + 1, :], sums[..., p + 1 :, :]
    first, second = arm[..., one, :] - pair, arm[..., other, :] - pair
    return np.stack([pair, first, second, every - first - second - pair])


def _difference(totals: Floats, counts: Floats) -> Floats:
    """By how much pairs bring more (4, 2, l - 1, p), before less after."""
    both, one, other, neither = totals / np.maximum(counts, 1e-12)
    before, after = both - one - other + neither
    return before - after


def _noise(sums: Floats, m: int) -> Floats:
    """Variance (4, p) of rewards of each kind; at least that of all sets with either arm."""
    arm = _variance(sums[n_pairs(m) + 1 :])
    one, other = _both(m)
    either = np.maximum(arm[one], arm[other])
    return np.maximum(_variance(_kinds(sums, m)), either)


def _variance(sums: Floats) -> Floats:
    """Variance (...) of weighted rewards, from their sums (..., 6)."""
    _, _, w, y, yy, _ = np.moveaxis(sums, -1, 0)
    n = np.maximum(w, 1e-12)
    result: Floats = yy / n - (y / n) ** 2
    return result


@compiled
def add_one(cell: Floats, seen: tuple[float, float, float, float, float, float]) -> None:
    """Add what was seen of one set."""
    for d in range(6):
        cell[d] += seen[d]


@compiled
def add_sets(
    sums: Floats,
    orders: Ints,
    sizes: Ints,
    weights: Floats,
    rewards: Floats,
    above: Floats,
    leaning: Floats,
    worth: Singles,
    gamma: float,
) -> None:
    """Add larger sets to those of their pairs, of all, and of their arms.

    A set's weight is that of any member over what sets of its size give it, in even shares: 1 and
    what the plan gives ``above`` that (m,), as far as these sets are ``leaning`` (k,) that way.
    """
    m = len(above)
    p = m * (m - 1) // 2
    for i in range(len(orders)):
        r, y = sizes[i, 0], rewards[i, 0]
        if r < 2:
            continue
        missed = 1.0
        for j in range(r):
            missed *= 1.0 - gamma * worth[orders[i, j]]
        w = weights[i, 0] / (1.0 + leaning[r - 1] * above[orders[i, 0]])
        seen = (1.0, y - (1.0 - missed) / gamma, w, w * y, w * y * y, w * w)
        add_one(sums[p], seen)
        for j in range(r):
            a = orders[i, j]
            add_one(sums[p + 1 + a], seen)
            for h in range(j):
                low, high = min(a, orders[i, h]), max(a, orders[i, h])
                add_one(sums[low * (2 * m - 3 - low) // 2 + high - 1], seen)

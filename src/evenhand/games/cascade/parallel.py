"""Many cascades side by side: the kernel behind :class:`~evenhand.games.IndependentCascade`.

A cascade alone visits one success after another at unpredictable places, and waits for each. Here
up to a thousand cascades, the *lanes*, go through the graph together: a node that is newly active
in c lanes tosses, arc by arc, c coins for them, and successes are skipped to within that row. All
of an arc's successes then touch one target, and little is left to predict.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.games.cascade.graph import Arcs
from evenhand.games.cascade.skips import LONGEST, draw_skip
from evenhand.randomness.splitmix import uniform
from evenhand.randomness.xoshiro import as_state, draw_word
from evenhand.typing import Floats, Ints, Words, compiled

MAX_LANES = 1024
MIN_LANES = 128  # with fewer a cascade alone is as fast
MAX_CELLS = 2**22  # of nodes times lanes, to stay in the processor's cache


class Lanes(NamedTuple):
    """Which node is active in which lane."""

    active: NDArray[np.uint8]  # (m, lanes), 0 or 1
    members: NDArray[np.uint16]  # (m, lanes + 1), the lanes of each node in order of activation
    counts: Ints  # (m,) how many those are
    done: Ints  # (m,) how many of them have tossed their coins


def lanes_for(m: int, n_queries: int) -> int:
    """How many lanes to use, 0 where cascades had better go one by one."""
    lanes = min(MAX_LANES, MAX_CELLS // m, n_queries)
    return lanes if lanes >= MIN_LANES else 0


@compiled
def pull_in_lanes(arcs: Arcs, orders: Ints, sizes: Ints, n_lanes: int, coins: Words) -> Floats:
    """Rewards (n, s) of the prefixes asked, a fresh cascade each, some lanes at a time."""
    n, s = sizes.shape
    m = len(arcs.starts) - 1
    lanes = Lanes(
        np.empty((m, n_lanes), np.uint8),
        np.empty((m, n_lanes + 1), np.uint16),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
    )
    rewards, total = np.empty(n * s), np.empty(n_lanes, np.int64)
    for first in range(0, n * s, n_lanes):
        last = min(first + n_lanes, n * s)
        lanes.active[:], lanes.counts[:], lanes.done[:] = 0, 0, 0
        for query in range(first, last):
            order = orders[query // s]
            for r in range(sizes[query // s, query % s]):
                _activate(lanes, order[r], query - first)
        spread_in_lanes(arcs, lanes, coins)
        total[:] = 0
        for v in range(m):
            for lane in range(n_lanes):
                total[lane] += lanes.active[v, lane]
        rewards[first:last] = total[: last - first] / m
    return rewards.reshape(n, s)


@compiled
def _activate(lanes: Lanes, node: int, lane: int) -> None:
    lanes.active[node, lane] = 1
    lanes.members[node, lanes.counts[node]] = lane
    lanes.counts[node] += 1


@compiled
def spread_in_lanes(arcs: Arcs, lanes: Lanes, coins: Words) -> None:
    """Let the cascades of all lanes run to their ends.

    Nodes are taken in rising order, again and again within the bounds of those that still have
    coins to toss; a graph whose arcs all go upwards needs a single pass.
    """
    low, high = 0, len(lanes.counts)
    while low < high:
        next_low, next_high, v = len(lanes.counts), 0, low
        while v < high:
            if lanes.counts[v] > lanes.done[v]:
                lowest, highest = _toss(arcs, lanes, v, coins)
                high = max(high, highest + 1)
                if lowest <= v:
                    next_low, next_high = min(next_low, lowest), v + 1
            v += 1
        low, high = next_low, next_high


@compiled
def _toss(arcs: Arcs, lanes: Lanes, v: int, coins: Words) -> tuple[int, int]:
    """Toss the coins of a node's new lanes; returns the lowest and highest node that gained any."""
    state = as_state(coins)
    mine = lanes.members[v, lanes.done[v] : lanes.counts[v]]
    c, row_end = np.uint64(len(mine)), arcs.starts[v + 1]
    lanes.done[v] = lanes.counts[v]
    lowest, highest = len(lanes.counts), -1
    word, state = draw_word(state)
    skip = draw_skip(arcs.skips, word)
    arc, place = arcs.starts[v], np.uint64(skip)  # the coin: lane mine[place] on this arc
    while True:
        if place >= c:  # on to the arc of the next success, mostly the next one
            arc, place = arc + 1, place - c
            if place >= c:
                arc, place = arc + np.int64(place // c), place % c
        if arc >= row_end:
            break
        target = arcs.targets[arc]
        active, theirs = lanes.active[target], lanes.members[target]
        count = np.uint64(lanes.counts[target])
        while place < c:
            hit = skip != LONGEST  # else failures only, so far
            if hit and not arcs.alike:
                word, state = draw_word(state)
                hit = uniform(word) * arcs.top < arcs.chances[arc]
            lane = mine[place]
            theirs[count] = lane  # kept if new: a branch would often be mispredicted
            count += np.uint64(hit and active[lane] == 0)
            active[lane] |= hit
            place += np.uint64(skip != LONGEST)
            word, state = draw_word(state)
            skip = draw_skip(arcs.skips, word)
            place += np.uint64(skip)
        if np.int64(count) > lanes.counts[target]:
            lanes.counts[target] = count
            lowest, highest = min(lowest, target), max(highest, target)
    coins[0], coins[1], coins[2], coins[3] = state
    return lowest, highest

"""Many cascades at once: the kernel behind :class:`~evenhand.games.IndependentCascade`.

A single cascade goes from success to success at unpredictable places in memory, and waits for each.
Here up to a thousand cascades go through the graph together: a node that is newly active in c of
them tosses c coins per arc, and skips from success to success within that row of coins. All
successes of an arc lead to the same target, so most of what is needed next is already at hand.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.games.cascade.graph import Arcs
from evenhand.games.cascade.skips import LONGEST, draw_skip
from evenhand.randomness.splitmix import uniform
from evenhand.randomness.xoshiro import as_state, draw_word
from evenhand.typing import Floats, Ints, Words, compiled

MAX_PARALLEL = 1024
MIN_PARALLEL = 128  # with fewer, cascades one by one are as fast
MAX_CELLS = 2**22  # most nodes times cascades, to stay in the processor's cache


class Cascades(NamedTuple):
    """Which nodes are active in which of c parallel cascades."""

    active: NDArray[np.uint8]  # (m, c), 0 or 1
    members: NDArray[np.uint16]  # (m, c + 1), the cascades of each node in order of activation
    counts: Ints  # (m,) how many those are
    done: Ints  # (m,) how many of them have tossed their coins


def n_parallel(m: int, n_queries: int) -> int:
    """Return how many cascades to run at once, 0 where one by one is better."""
    parallel = min(MAX_PARALLEL, MAX_CELLS // m, n_queries)
    return parallel if parallel >= MIN_PARALLEL else 0


@compiled
def pull_in_parallel(arcs: Arcs, orders: Ints, sizes: Ints, parallel: int, coins: Words) -> Floats:
    """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, ``parallel`` cascades at a time."""
    n, s = sizes.shape
    m = len(arcs.starts) - 1
    cascades = Cascades(
        np.empty((m, parallel), np.uint8),
        np.empty((m, parallel + 1), np.uint16),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
    )
    rewards, total = np.empty(n * s), np.empty(parallel, np.int64)
    for first in range(0, n * s, parallel):
        last = min(first + parallel, n * s)
        cascades.active[:], cascades.counts[:], cascades.done[:] = 0, 0, 0
        for query in range(first, last):
            order = orders[query // s]
            for r in range(sizes[query // s, query % s]):
                node = order[r]
                cascades.active[node, query - first] = 1
                cascades.members[node, cascades.counts[node]] = query - first
                cascades.counts[node] += 1
        spread_all(arcs, cascades, coins)
        total[:] = 0
        for v in range(m):
            for cascade in range(parallel):  # numba's own sum over an axis is several times slower
                total[cascade] += cascades.active[v, cascade]
        rewards[first:last] = total[: last - first] / m
    return rewards.reshape(n, s)


@compiled
def spread_all(arcs: Arcs, cascades: Cascades, coins: Words) -> None:
    """Let all cascades run to their ends.

    Passes over the nodes in rising order, each within the bounds of those that still have coins to
    toss. A graph whose arcs all go to larger nodes needs a single pass.
    """
    low, high = 0, len(cascades.counts)
    while low < high:
        next_low, next_high, v = len(cascades.counts), 0, low
        while v < high:
            if cascades.counts[v] > cascades.done[v]:
                lowest, highest = _toss_coins(arcs, cascades, v, coins)
                high = max(high, highest + 1)
                if lowest <= v:
                    next_low, next_high = min(next_low, lowest), v + 1
            v += 1
        low, high = next_low, next_high


@compiled
def _toss_coins(arcs: Arcs, cascades: Cascades, v: int, coins: Words) -> tuple[int, int]:
    """Toss the coins of a node's arcs for the cascades in which it is newly active.

    Returns the lowest and the highest node that became active in any of them.
    """
    state = as_state(coins)
    mine = cascades.members[v, cascades.done[v] : cascades.counts[v]]
    c, row_end = np.uint64(len(mine)), arcs.starts[v + 1]
    cascades.done[v] = cascades.counts[v]
    lowest, highest = len(cascades.counts), -1
    word, state = draw_word(state)
    skip = draw_skip(arcs.skips, word)
    arc, place = arcs.starts[v], np.uint64(skip)  # the coin of cascade mine[place] on this arc
    while True:
        if place >= c:  # on to the arc of the next success, mostly the next arc
            arc, place = arc + 1, place - c
            if place >= c:
                arc, place = arc + np.int64(place // c), place % c
        if arc >= row_end:
            break
        target = arcs.targets[arc]
        active, theirs = cascades.active[target], cascades.members[target]
        count = np.uint64(cascades.counts[target])
        while place < c:
            hit = skip != LONGEST  # else failures only, so far
            if hit and not arcs.alike:
                word, state = draw_word(state)
                hit = uniform(word) * arcs.top < arcs.chances[arc]
            cascade = mine[place]
            theirs[count] = cascade  # counted only if new: no branch to mispredict
            count += np.uint64(hit and active[cascade] == 0)
            active[cascade] |= hit
            place += np.uint64(skip != LONGEST)
            word, state = draw_word(state)
            skip = draw_skip(arcs.skips, word)
            place += np.uint64(skip)
        if np.int64(count) > cascades.counts[target]:
            cascades.counts[target] = count
            lowest, highest = min(lowest, target), max(highest, target)
    coins[0], coins[1], coins[2], coins[3] = state
    return lowest, highest

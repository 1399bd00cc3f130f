"""Influence in a network: the independent cascade model."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from evenhand.checks import check_orders, check_rng, check_sets
from evenhand.display import span
from evenhand.games.cascade.graph import Arcs, read_graph
from evenhand.games.cascade.parallel import n_parallel, pull_in_parallel
from evenhand.games.cascade.skips import LONGEST, draw_skip
from evenhand.randomness.splitmix import uniform
from evenhand.randomness.xoshiro import as_state, draw_word, start_words
from evenhand.typing import Bools, Floats, Ints, Words, compiled

# edges with 0 < p < 1 up to which all live-edge graphs are listed; in such a graph it is settled
# beforehand which edges carry, and the nodes that seeds can reach are those they activate
MAX_UNCERTAIN = 20


class IndependentCascade:
    r"""Independent cascade: the fraction of the m nodes that the seeds activate.

    A newly active node u activates each inactive v with an arc u -> v once, with that arc's
    probability. Seeds count as active. Every query is a fresh cascade.

    Parameters
    ----------
    edges
        Directed edges as an (n, 2) integer array; or a square scipy sparse matrix, entry (u, v)
        being the arc u -> v; or a networkx graph, whose nodes are the arms in its own order and
        whose edges go both ways if it is undirected.
    m
        Number of nodes; needed with an edge array, where isolated nodes cannot be seen.
    p
        Activation probability: one number, one per edge in the order given, or for a networkx
        graph the name of an edge attribute. A sparse matrix may carry it as its values.

    Examples
    --------
    >>> chain = IndependentCascade([[0, 1], [1, 2]], m=3, p=0.5)
    >>> chain.value(np.array([[True, False, False]]))
    array([0.58333333])
    """

    trajectory: ClassVar[int] = 2  # bump when a release changes the random numbers
    needs_gpu: ClassVar[bool] = False

    def __init__(self, edges: Any, m: int | None = None, p: Any = None) -> None:
        self.edges, self.m, self.p = read_graph(edges, m, p)
        self.arcs = Arcs.sort(self.edges, self.p, self.m)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.m}, edges={len(self.edges)}, p={span(self.p)})"

    @cached_property
    def reversed_arcs(self) -> Arcs:
        """All arcs with their direction reversed, for reverse-reachable sets."""
        return Arcs.sort(self.edges[:, ::-1], self.p, self.m)

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, each from a fresh cascade."""
        orders, sizes = check_orders(orders, sizes, self.m)
        parallel, coins = n_parallel(self.m, sizes.size), start_words(check_rng(rng))
        if parallel:
            return pull_in_parallel(self.arcs, orders, sizes, parallel, coins)
        return pull_one_by_one(self.arcs, orders, sizes, coins)

    def pull_coupled(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, arcs decided once per row.

        Which arcs carry is tossed once, for all sets of a row: their rewards are comparable.
        """
        orders, sizes = check_orders(orders, sizes, self.m)
        return _pull_coupled(self.arcs, orders, sizes, start_words(check_rng(rng)))

    def value(self, sets: Bools) -> Floats:
        """Exact mean spread, by listing all live-edge graphs of at most 20 uncertain edges."""
        sets = check_sets(sets, self.m)
        uncertain = int(np.count_nonzero((self.p > 0) & (self.p < 1)))
        if uncertain > MAX_UNCERTAIN:
            raise ValueError(
                f"the exact spread needs at most {MAX_UNCERTAIN} edges with 0 < p < 1, "
                f"got {uncertain}; estimate merits with evenhand.merit.reverse_reachable or "
                "evenhand.merit.monte_carlo"
            )
        return _live_edge_mean(self.arcs, sets, uncertain)


@compiled
def pull_one_by_one(arcs: Arcs, orders: Ints, sizes: Ints, coins: Words) -> Floats:
    """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, one cascade after the other."""
    n, s = sizes.shape
    m = len(arcs.starts) - 1
    rewards = np.empty((n, s))
    seen, queue = np.full(m, -1, np.int64), np.empty(m + 1, np.int64)
    for i in range(n):
        for j in range(s):
            active = 0
            for r in range(sizes[i, j]):
                active = spread(arcs, orders[i, r], active, i * s + j, seen, queue, coins)
            rewards[i, j] = active / m
    return rewards


@compiled
def _pull_coupled(arcs: Arcs, orders: Ints, sizes: Ints, coins: Words) -> Floats:
    n, s = sizes.shape
    m = len(arcs.starts) - 1
    rewards = np.zeros((n, s))
    seen, queue = np.full(m, -1, np.int64), np.empty(m + 1, np.int64)
    for i in range(n):
        active = 0
        for r in range(sizes[i].max() if s else 0):
            active = spread(arcs, orders[i, r], active, i, seen, queue, coins)
            for j in range(s):
                if sizes[i, j] == r + 1:
                    rewards[i, j] = active / m
    return rewards


@compiled
def spread(
    arcs: Arcs, seed: int, active: int, mark: int, seen: Ints, queue: Ints, coins: Words
) -> int:
    """Add one seed to a cascade and return how many nodes are active then.

    ``queue[:active]`` are the active nodes, marked ``seen[v] == mark``; the queue holds m + 1
    entries. The arcs of the active nodes, one node after the other, are a row of coins, of which
    only the successes are visited. Where probabilities differ, a success at the largest one is
    kept with probability p / largest.
    """
    if seen[seed] == mark:
        return active
    seen[seed], queue[active] = mark, seed
    head, active = active, active + 1
    state = as_state(coins)
    place = 0  # among the arcs of queue[head] and of the nodes after it
    while True:
        word, state = draw_word(state)
        skip = draw_skip(arcs.skips, word)
        place += skip
        while head < active:
            first = arcs.starts[queue[head]]
            degree = arcs.starts[queue[head] + 1] - first
            if place < degree:
                break
            place -= degree
            head += 1
        if head == active:
            break
        if skip == LONGEST:  # failures only, so far
            continue
        lives = True
        if not arcs.alike:
            word, state = draw_word(state)
            lives = uniform(word) * arcs.top < arcs.chances[first + place]
        if lives:
            target = arcs.targets[first + place]
            queue[active] = target  # counted only if new: a branch would often be mispredicted
            active += seen[target] != mark
            seen[target] = mark
        place += 1
    coins[0], coins[1], coins[2], coins[3] = state
    return active


@compiled
def _live_edge_mean(arcs: Arcs, sets: Bools, uncertain: int) -> Floats:
    """Mean spread over all live-edge graphs, each weighted with its probability."""
    m = len(arcs.starts) - 1
    total = np.zeros(len(sets))
    live, queue = np.empty(len(arcs.targets), np.bool_), np.empty(m, np.int64)
    for world in range(2**uncertain):
        weight, bit = 1.0, 0
        for arc, chance in enumerate(arcs.chances):
            live[arc] = chance >= 1.0
            if 0.0 < chance < 1.0:
                live[arc] = (world >> bit) & 1
                weight *= chance if live[arc] else 1.0 - chance
                bit += 1
        for i in range(len(sets)):
            total[i] += weight * _reached(arcs, live, sets[i], queue)
    return total / m


@compiled
def _reached(arcs: Arcs, live: Bools, seeds: Bools, queue: Ints) -> int:
    """Number of nodes reached from the seeds over live arcs."""
    seen, head, active = seeds.copy(), 0, 0
    for node in range(len(seeds)):
        if seeds[node]:
            queue[active] = node
            active += 1
    while head < active:
        node = queue[head]
        head += 1
        for arc in range(arcs.starts[node], arcs.starts[node + 1]):
            target = arcs.targets[arc]
            if live[arc] and not seen[target]:
                seen[target] = True
                queue[active] = target
                active += 1
    return active

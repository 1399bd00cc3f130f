"""Reverse-reachable sets of large graphs, in threads: the credits of their members.

Sets are drawn in rounds, and errors are read from how rounds differ. Few rounds of all nodes would
say little about them, so the nodes are cut into strata, each with rounds of its own.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.games.cascade.graph import Arcs
from evenhand.randomness.splitmix import uniform
from evenhand.randomness.xoshiro import as_state, draw_word, start_words
from evenhand.typing import Floats, Ints, Words, compiled

FREEDOM = 64  # rounds beyond one per stratum, all strata together: errors are then known to 9 %

Stratum = tuple[Ints, int]  # roots (1, n), or (rounds, n) where each round has its own; rounds


class Rows(NamedTuple):
    """Arcs whose coins are tossed node by node, each at the largest chance of its arcs."""

    starts: Ints
    targets: NDArray[np.int32]
    chances: Floats
    tops: Floats  # (m,) those largest chances
    rates: Floats  # (m,) 1 / log(1 - top)
    alike: bool  # whether the arcs of a node all have its largest chance

    @classmethod
    def of(cls, arcs: Arcs) -> "Rows":
        """Find the largest chances."""
        tops = _largest(arcs.starts, arcs.chances)
        with np.errstate(divide="ignore"):
            rates = 1.0 / np.log1p(-tops)
        alike = arcs.alike or _all_at_top(arcs.starts, arcs.chances, tops)
        return cls(arcs.starts, arcs.targets, arcs.chances, tops, rates, alike)


class Room(NamedTuple):
    """What a thread needs to draw sets."""

    reached: NDArray[np.uint8]  # a bit per node
    queue: NDArray[np.int32]
    credits: Floats

    @classmethod
    def for_nodes(cls, m: int) -> "Room":
        """Room for graphs of m nodes."""
        return cls(np.zeros(m // 8 + 1, np.uint8), np.empty(m, np.int32), np.empty(m))


def strata_of(m: int, n_sets: int, rng: np.random.Generator) -> list[Stratum]:
    """Cut the nodes into strata, or, for less than two sets per node, draw roots at random."""
    if n_sets < 2 * m:
        rounds = min(n_sets, FREEDOM + 1)
        return [(rng.integers(0, m, size=(rounds, n_sets // rounds)), rounds)]
    rounds = n_sets // m
    cuts = min(m, -(-FREEDOM // (rounds - 1)))
    return [(roots[np.newaxis], rounds) for roots in np.array_split(np.arange(m), cuts)]


def in_threads(
    arcs: Arcs, shares: Floats, strata: list[Stratum], rng: np.random.Generator, workers: int
) -> Iterator[tuple[Floats, Floats]]:
    """Mean credits over the rounds of each stratum, and their standard errors."""
    rows, m = Rows.of(arcs), len(shares) - 1
    rooms = [Room.for_nodes(m) for _ in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        for roots, rounds in strata:
            mean, squares = np.zeros(m), np.zeros(m)
            starts = [start_words(rng) for _ in range(rounds)]
            for first in range(0, rounds, workers):
                together = list(zip(range(first, rounds), rooms, strict=False))
                jobs = [
                    pool.submit(draw_round, rows, shares, roots[i % len(roots)], starts[i], room)
                    for i, room in together
                ]
                for job, (i, room) in zip(jobs, together, strict=True):
                    job.result()
                    fold(room.credits, roots.shape[1], i, mean, squares)
            yield mean, np.sqrt(squares / (rounds - 1) / rounds)


@compiled
def draw_round(rows: Rows, shares: Floats, roots: Ints, coins: Words, room: Room) -> None:
    """Draw one set per root; each member of a set of r nodes is credited with shares[r]."""
    reached, queue, credits = room
    for v in range(len(credits)):
        credits[v] = 0.0
    state = as_state(coins)
    for root in roots:
        queue[0], head, tail = root, 0, 1
        reached[root >> 3] |= np.uint8(1 << (root & 7))
        while head < tail:
            v = queue[head]
            at, end, rate = rows.starts[v], rows.starts[v + 1], rows.rates[v]
            head += 1
            while at < end:
                word, state = draw_word(state)
                failures = math.log(1.0 - uniform(word)) * rate
                if failures >= end - at:
                    break
                at += np.int64(failures)
                lives = True
                if not rows.alike:
                    word, state = draw_word(state)
                    lives = uniform(word) * rows.tops[v] < rows.chances[at]
                node = rows.targets[at]
                at += 1
                bit = np.uint8(1 << (node & 7))
                if lives and not reached[node >> 3] & bit:
                    reached[node >> 3] |= bit
                    queue[tail] = node
                    tail += 1
        for i in range(tail):
            credits[queue[i]] += shares[tail]
            reached[queue[i] >> 3] = 0


@compiled
def fold(credits: Floats, n_roots: int, before: int, mean: Floats, squares: Floats) -> None:
    """Add a round to the mean and the sum of squared deviations of each node (Welford)."""
    for v in range(len(credits)):
        value = credits[v] / n_roots
        step = value - mean[v]
        mean[v] += step / (before + 1)
        squares[v] += step * (value - mean[v])


@compiled
def _largest(starts: Ints, chances: Floats) -> Floats:
    """Largest chance of each node's arcs, 1 for a node without."""
    tops = np.ones(len(starts) - 1)
    for v in range(len(tops)):
        if starts[v] < starts[v + 1]:
            tops[v] = 0.0
        for arc in range(starts[v], starts[v + 1]):
            tops[v] = max(tops[v], chances[arc])
    return tops


@compiled
def _all_at_top(starts: Ints, chances: Floats, tops: Floats) -> bool:
    """Whether every arc has the largest chance of its node."""
    for v in range(len(tops)):
        for arc in range(starts[v], starts[v + 1]):
            if chances[arc] != tops[v]:
                return False
    return True

"""Exact draws of coins with a given number of heads, split down a binary tree of coins."""

from typing import NamedTuple

import numpy as np

from evenhand.subsets.combinations import shuffle
from evenhand.typing import Floats, Ints, compiled, part

LEAF = 32  # coins in a leaf
TRIM = 1e-30  # chances below this fraction of a node's largest are dropped
KEPT = 64  # leaves whose tables are kept from row to row


class HeadTree(NamedTuple):
    """Law of the number of heads below each node of a heap-ordered binary tree.

    Node v has children 2v and 2v + 1; the leaves cut the coins into runs of 32. The coins below
    node v show first[v] + i heads with chance chances[starts[v] + i], for all i from 0 up to where
    that place reaches ends[v]; other numbers of heads are too rare to be kept.
    """

    starts: Ints
    ends: Ints
    first: Ints
    chances: Floats


@compiled
def build_tree(p: Floats, q: Floats) -> HeadTree:
    """Build the laws from the leaves up, each the convolution of its children's."""
    n_leaves, levels = 1, 1
    while n_leaves * LEAF < len(p):
        n_leaves, levels = 2 * n_leaves, levels + 1
    size = 2 * n_leaves
    starts, ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
    first = np.zeros(size, np.int64)
    chances, used = np.empty(levels * len(p) + size), 0  # enough even if nothing is dropped
    for v in range(size - 1, 0, -1):
        if v >= n_leaves:
            law, low = _count_heads(p, q, (v - n_leaves) * LEAF), 0
        else:
            left, right = 2 * v, 2 * v + 1
            law = _convolved(
                chances[starts[left] : ends[left]], chances[starts[right] : ends[right]]
            )
            low = first[left] + first[right]
        begin, end = _likely(law)
        starts[v], first[v] = used, low + begin
        for i in range(begin, end):
            chances[used] = law[i]
            used += 1
        ends[v] = used
    return HeadTree(starts, ends, first, chances[:used].copy())


@part
def _convolved(one: Floats, other: Floats) -> Floats:
    """Law of the sum of two counts."""
    law = np.zeros(len(one) + len(other) - 1)
    for i in range(len(one)):
        for j in range(len(other)):
            law[i + j] += one[i] * other[j]
    return law


@part
def _likely(law: Floats) -> tuple[int, int]:
    """First and one behind the last entry that is not negligible beside the largest."""
    least, begin, end = 0.0, 0, len(law)
    for chance in law:
        least = TRIM * chance if TRIM * chance > least else least
    while law[begin] <= least:
        begin += 1
    while law[end - 1] <= least:
        end -= 1
    return begin, end


@part
def _count_heads(p: Floats, q: Floats, begin: int) -> Floats:
    """Law of the number of heads among the coins of one leaf."""
    n = len(p) - begin
    n = 0 if n < 0 else LEAF if n > LEAF else n
    law = np.zeros(n + 1)
    law[0] = 1.0
    for i in range(begin, begin + n):
        for j in range(i - begin + 1, 0, -1):
            law[j] = q[i] * law[j] + p[i] * law[j - 1]
        law[0] *= q[i]
    return law


@compiled
def draw_heads(
    tree: HeadTree,
    p: Floats,
    q: Floats,
    arms: Ints,
    rows: Ints,
    k: int,
    rng: np.random.Generator,
) -> None:
    """Put the arms whose coins show head, given k heads, into each row, and shuffle it."""
    size = len(tree.starts)
    n_leaves = size // 2
    heads = np.zeros(size, np.int64)
    kept = n_leaves if n_leaves < KEPT else KEPT
    tables = np.empty((kept, LEAF + 1, 1 + (k if k < LEAF else LEAF)))
    of, known = np.zeros(kept, np.int64), np.zeros(kept, np.int64)  # leaf, and heads up to which
    for i in range(len(rows)):
        heads[1], filled = k, int(heads[0])  # 0; with a literal 0 numba compiles twice
        for v in range(1, size):
            if v < n_leaves:
                left = _heads_of_left(tree, v, heads[v], rng) if heads[v] else 0
                heads[2 * v], heads[2 * v + 1] = left, heads[v] - left
            elif heads[v]:
                begin, place = (v - n_leaves) * LEAF, v % kept
                if of[place] != v or known[place] < heads[v]:
                    _tabulate(p, q, begin, heads[v], tables[place])
                    of[place], known[place] = v, heads[v]
                filled = _draw_leaf(p, begin, heads[v], arms, rows[i], filled, tables[place], rng)
        shuffle(rows[i], rng)


@part
def _heads_of_left(tree: HeadTree, v: int, heads: int, rng: np.random.Generator) -> int:
    """Draw how many of a node's heads its left child shows."""
    left, right = 2 * v, 2 * v + 1
    n_left = tree.ends[left] - tree.starts[left]
    n_right = tree.ends[right] - tree.starts[right]
    low, lowest = heads - tree.first[right] - n_right + 1, tree.first[left]
    low = low if low > lowest else lowest
    high, highest = heads - tree.first[right], tree.first[left] + n_left - 1
    high = high if high < highest else highest
    at_left = tree.starts[left] - tree.first[left]
    at_right = tree.starts[right] - tree.first[right] + heads
    total = 0.0
    for j in range(low, high + 1):
        total += tree.chances[at_left + j] * tree.chances[at_right - j]
    level = rng.random() * total
    for j in range(low, high + 1):
        level -= tree.chances[at_left + j] * tree.chances[at_right - j]
        if level < 0.0:
            return j
    return high


@part
def _tabulate(p: Floats, q: Floats, begin: int, heads: int, table: Floats) -> None:
    """Write into row i the chances of 0 to so many heads among the coins i.. of a leaf."""
    n = len(p) - begin if len(p) - begin < LEAF else LEAF
    for j in range(heads + 1):
        table[n, j] = j == 0
    for i in range(n - 1, -1, -1):
        a = begin + i
        table[i, 0] = q[a] * table[i + 1, 0]
        for j in range(1, heads + 1):
            table[i, j] = q[a] * table[i + 1, j] + p[a] * table[i + 1, j - 1]


@part
def _draw_leaf(
    p: Floats,
    begin: int,
    heads: int,
    arms: Ints,
    row: Ints,
    filled: int,
    table: Floats,
    rng: np.random.Generator,
) -> int:
    """Toss the coins of one leaf in turn, each given the heads still to come."""
    for i in range(len(p) - begin if len(p) - begin < LEAF else LEAF):
        if heads == 0:
            break
        a = begin + i
        if rng.random() * table[i, heads] < p[a] * table[i + 1, heads - 1]:
            row[filled] = arms[a]
            filled += 1
            heads -= 1
    return filled

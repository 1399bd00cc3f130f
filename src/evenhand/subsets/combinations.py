"""Sets of one size: all of them listed or counted, their orders, means of products over them."""

import itertools
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, permutations
from math import comb, lgamma, log

import numpy as np
from numpy.typing import NDArray

from evenhand.typing import Floats, Ints, compiled


def combinations(m: int, size: int, block: int) -> Iterator[Ints]:
    """Yield every ``size``-subset of range(m) as rows of blocks of at most ``block`` rows.

    Examples
    --------
    >>> [rows.tolist() for rows in combinations(3, 2, block=2)]
    [[[0, 1], [0, 2]], [[1, 2]]]
    """
    left = comb(m, size)
    current = np.arange(size)
    while left:
        rows = np.empty((min(block, left), size), np.int64)
        _fill(current, m, rows)
        left -= len(rows)
        yield rows


@lru_cache(maxsize=8)
def all_sets(m: int, size: int) -> Ints:
    """All ``size``-subsets of range(m), one row each, in lexicographic order."""
    n, members = comb(m, size), chain.from_iterable(itertools.combinations(range(m), size))
    sets = np.fromiter(members, np.int64, n * size).reshape(n, size)
    sets.flags.writeable = False
    return sets


@lru_cache(maxsize=8)
def all_orders(size: int) -> NDArray[np.uint32]:
    """All orders of range(size), one row each, in lexicographic order."""
    orders = np.array(list(permutations(range(size))), np.uint32)
    orders.flags.writeable = False
    return orders


@lru_cache(maxsize=64)
def count_sets(m: int, size: int, most: int) -> int:
    """Number of ``size``-subsets of range(m), or most + 1 if it is larger than most."""
    return min(comb(m, size), most + 1) if log_comb(m, size) < log(most) + 1.0 else most + 1


@lru_cache(maxsize=64)
def log_comb(m: int, size: int) -> float:
    """Logarithm of the number of ``size``-subsets of range(m)."""
    return lgamma(m + 1) - lgamma(size + 1) - lgamma(m - size + 1)


def count_up_to(m: int, size: int) -> int:
    """Count the subsets of range(m) of 1 to ``size`` members."""
    return sum(comb(m, s) for s in range(1, size + 1))


@compiled
def shuffle(row: Ints, rng: np.random.Generator) -> None:
    """Put a row into uniformly random order."""
    for r in range(len(row) - 1):
        j = rng.integers(r, len(row))
        row[r], row[j] = row[j], row[r]


@compiled
def _fill(current: Ints, m: int, rows: Ints) -> None:
    """Write successive combinations into ``rows`` and leave the next one in ``current``."""
    size = len(current)
    for row in range(len(rows)):
        for j in range(size):
            rows[row, j] = current[j]
        i = size - 1
        while i >= 0 and current[i] == m - size + i:
            i -= 1
        if i >= 0:
            current[i] += 1
            for j in range(i + 1, size):
                current[j] = current[j - 1] + 1


@compiled
def mean_products(x: Floats, k: int) -> Floats:
    """Table (m, k): for each entry of x and s < k, the mean product of s of the other entries.

    By halving: the means outside a range of entries take in one half of it, entry by entry, and
    are then those outside the other half. Every step is a convex combination, so nothing cancels
    and nothing overflows.
    """
    m, depth = len(x), 2
    while 1 << (depth - 2) < m:
        depth += 1
    table = np.empty((m, k))
    lows, highs = np.empty(depth, np.int64), np.empty(depth, np.int64)
    means = np.empty((depth, k))  # means[d, s]: mean product of s entries outside [low, high)
    for s in range(k):
        means[0, s] = s == 0
    lows[0], highs[0], top = 0, m, 0
    while top >= 0:
        low, high = lows[top], highs[top]
        if high - low == 1:
            for s in range(k):
                table[low, s] = means[top, s]
            top -= 1
            continue
        middle = (low + high) // 2
        outside = m - (high - low)
        for s in range(k):
            means[top + 1, s] = means[top, s]
        for i in range(low, high):
            d, n = (top + 1, outside + i - low) if i < middle else (top, outside + i - middle)
            for s in range(k - 1 if n >= k - 1 else n + 1, 0, -1):  # of n entries, now of n + 1
                means[d, s] = ((n + 1 - s) * means[d, s] + s * x[i] * means[d, s - 1]) / (n + 1)
        highs[top], lows[top + 1], highs[top + 1] = middle, middle, high
        top += 1
    return table

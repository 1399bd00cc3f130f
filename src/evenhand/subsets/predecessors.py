"""Random predecessors of an arm: the coalitions its marginal gain is sampled at."""

import numpy as np

from evenhand.typing import Ints, compiled


@compiled
def draw_predecessors(arms: Ints, m: int, k: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw rows of predecessors, each followed by its arm, and lengths (n, 2) without and with it.

    The arms before a in a random order of a random K-set containing a: their number is uniform
    on 0..k-1, and given it they are a uniform subset of the others.
    """
    n = len(arms)
    orders, sizes = np.full((n, k), -1), np.empty((n, 2), np.int64)
    pool, swaps = np.arange(m), np.empty(k, np.int64)
    for i in range(n):
        before = write_predecessors(arms[i], pool, swaps, orders[i], rng)
        sizes[i, 0], sizes[i, 1] = before, before + 1
    return orders, sizes


@compiled
def write_predecessors(
    arm: int, pool: Ints, swaps: Ints, row: Ints, rng: np.random.Generator
) -> int:
    """Write predecessors and the arm into a row and return how many come before it.

    ``pool`` must hold 0..m-1, and is put back in order: a row depends on its own numbers alone.
    """
    last = len(pool) - 1
    pool[arm], pool[last] = pool[last], pool[arm]  # the arm out of the way
    before = int(rng.integers(0, len(row)))
    for r in range(before):
        swaps[r] = rng.integers(r, last)
        pool[r], pool[swaps[r]] = pool[swaps[r]], pool[r]
        row[r] = pool[r]
    row[before] = arm
    for r in range(before - 1, -1, -1):
        pool[r], pool[swaps[r]] = pool[swaps[r]], pool[r]
    pool[arm], pool[last] = pool[last], pool[arm]
    return before

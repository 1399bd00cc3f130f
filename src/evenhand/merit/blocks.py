"""Random orders of the arms cut into sets of one size."""

import numpy as np

from evenhand.subsets.combinations import shuffle
from evenhand.typing import Ints, compiled


@compiled
def n_blocks(m: int, size: int) -> int:
    """Number of blocks per order, so that each arm is inside at least one and outside another."""
    width = min(size, m - size)
    return 1 if width == 0 else (m + width - 1) // width


@compiled
def cut_orders(m: int, size: int, n: int, rng: np.random.Generator) -> Ints:
    """Cut n random orders into blocks of ``size`` arms, or complements of blocks of m - size."""
    width, cut = min(size, m - size), n_blocks(m, size)
    sets, arms = np.empty((n * cut, size), np.int64), np.empty(m, np.int64)
    for a in range(m):
        arms[a] = a
    for i in range(n):
        if width == 0:
            for a in range(m):
                sets[i, a] = a
            continue
        shuffle(arms, rng)
        for b in range(cut):
            low, high = b * width, (b + 1) * width
            if high > m:  # fill the last block with a random part of what came before
                _bring_forward(arms, high - m, low, rng)
                low, high = m - width, m
            for place in range(size):
                if size == width:
                    sets[i * cut + b, place] = arms[low + place]
                else:
                    sets[i * cut + b, place] = arms[place if place < low else place + width]
    return sets


@compiled
def _bring_forward(arms: Ints, count: int, end: int, rng: np.random.Generator) -> None:
    """Move a random choice of arms[:end] to its last ``count`` places."""
    for i in range(count):
        place = end - 1 - i
        j = rng.integers(0, place + 1)
        arms[place], arms[j] = arms[j], arms[place]

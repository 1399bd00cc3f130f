"""Draws from a fixed discrete law in constant time (Walker's alias method, as built by Vose)."""

from typing import NamedTuple

import numpy as np

from evenhand.typing import Floats, Ints, compiled


class Alias(NamedTuple):
    """Cell i keeps a draw with chance ``keep[i]`` and else passes it to ``other[i]``."""

    keep: Floats
    other: Ints


@compiled
def build_alias(weights: Floats) -> Alias:
    """Build the table of a law proportional to non-negative weights."""
    n = len(weights)
    keep, other = weights * (n / weights.sum()), np.arange(n)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    n_small = n_large = 0
    for i in range(n):
        if keep[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        poor, rich = small[n_small], large[n_large - 1]
        other[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            n_large -= 1
            small[n_small] = rich
            n_small += 1
    for i in range(n_small):  # what rounding left over is full
        keep[small[i]] = 1.0
    return Alias(keep, other)


@compiled
def draw_alias(table: Alias, rng: np.random.Generator) -> int:
    """Draw one index, from one uniform number: its integer part the cell, its fraction the coin."""
    x = rng.random() * len(table.keep)
    i = int(x)
    return i if x - i < table.keep[i] else table.other[i]

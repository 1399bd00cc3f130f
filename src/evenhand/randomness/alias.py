"""Draws from a fixed discrete law in constant time (Walker's alias method, as built by Vose).

A table has 2^b cells, those beyond the law's entries empty. Cell i holds in its low b bits the
entry that it passes draws on to, and above them the chance, times 2^(64-b), of entry i itself:
one random word chooses the cell by its low bits and tosses the coin with the others.
"""

import numpy as np

from evenhand.typing import Floats, Words, compiled, part


@compiled
def build_alias(weights: Floats) -> Words:
    """Build the table of a law proportional to non-negative weights."""
    n, bits, unit = 1, 0, 2.0**64
    while n < len(weights):
        n, bits, unit = 2 * n, bits + 1, 0.5 * unit
    total = 0.0
    for weight in weights:
        total += weight
    keep, table = np.empty(n), np.empty(n, np.uint64)
    # two stacks: entries with less than a cell's share grow from the left, others from the right
    stacks, small, large = np.empty(n, np.int64), 0, n
    for i in range(n):
        table[i] = i
        keep[i] = weights[i] * (n / total) if i < len(weights) else 0.0
        stacks[small] = stacks[large - 1] = i  # onto both, and off one again: no jump to guess
        small += keep[i] < 1.0
        large -= not keep[i] < 1.0
    while small > 0 and large < n:  # cells left over are full: theirs is their own entry
        poor, rich = stacks[small - 1], stacks[large]
        chance = np.uint64(keep[poor] * unit)
        table[poor] = (chance << np.uint64(bits)) | np.uint64(rich)
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            large += 1
            stacks[small - 1] = rich
        else:
            small -= 1
    return table


@part
def alias_bits(table: Words) -> np.uint64:
    """How many low bits of a word choose a cell."""
    bits = 0
    while 1 << bits < len(table):
        bits += 1
    return np.uint64(bits)


@part
def draw_alias(table: Words, bits: np.uint64, word: np.uint64) -> np.uint64:
    """Turn a random word into an entry of the law."""
    low = (np.uint64(1) << bits) - np.uint64(1)
    cell = word & low
    entry = table[cell]
    return cell if (word >> bits) < (entry >> bits) else entry & low

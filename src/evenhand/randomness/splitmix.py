"""SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one generator per drawn row.

To hand numpy's generator to compiled code costs more than a short loop does. So compiled loops
start a small generator per row, from one of numpy's numbers. A row then depends on its own number
alone, and not on how many rows are drawn with it.
"""

import numpy as np

from evenhand.typing import Ints, compiled, part

STEP = np.uint64(0x9E3779B97F4A7C15)


@compiled
def start_row(number: float) -> np.uint64:
    """Return the state of SplitMix64 that a number in [0, 1) stands for."""
    return draw_row_word(np.uint64(number * 2.0**53))[0]


@part
def draw_row_word(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Draw a word of SplitMix64; returns it and the new state."""
    state += STEP
    word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31)), state


@part
def shuffle_row(row: Ints, state: np.uint64) -> None:
    """Put a row into uniformly random order by its own words."""
    for r in range(len(row) - 1):
        word, state = draw_row_word(state)
        j = r + int(uniform(word) * (len(row) - r))
        row[r], row[j] = row[j], row[r]


@part
def uniform(word: np.uint64) -> float:
    """Turn a random word into a number in [0, 1), a multiple of 2^-53."""
    return np.int64(word >> np.uint64(11)) * 2.0**-53

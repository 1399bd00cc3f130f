"""Random words inside compiled loops.

A call to numpy's generator costs as much as the loop that needs the number, and handing the
generator to compiled code more than a short loop does. So loops start generators of their own from
its numbers. Cascades have one a call, xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021). Where
rows are drawn, each has its own, SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) started from one
number: drawn in the same way, a row is the same however many are drawn with it.
"""

import numpy as np

from evenhand.typing import Floats, Ints, Words, compiled

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
STEP = np.uint64(0x9E3779B97F4A7C15)


def start_words(rng: np.random.Generator) -> Words:
    """Draw a state of xoshiro256++, four words, from numpy's generator."""
    return _spread(rng.random(4))


@compiled
def as_state(words: Words) -> State:
    """Return the state that an array of four words holds."""
    return words[0], words[1], words[2], words[3]


@compiled
def draw_word(state: State) -> tuple[np.uint64, State]:
    """Draw a word of xoshiro256++; returns it and the new state."""
    a, b, c, d = state
    word = _rotated(a + d, 23) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    return word, (a, b, c ^ shifted, _rotated(d, 45))


@compiled
def start_row(number: float) -> np.uint64:
    """Return the state of SplitMix64 that a number in [0, 1) stands for."""
    return draw_row_word(np.uint64(number * 2.0**53))[0]


@compiled
def draw_row_word(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Draw a word of SplitMix64; returns it and the new state."""
    state += STEP
    word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31)), state


@compiled
def shuffle_row(row: Ints, state: np.uint64) -> None:
    """Put a row into uniformly random order by its own words."""
    for r in range(len(row) - 1):
        word, state = draw_row_word(state)
        j = r + int(uniform(word) * (len(row) - r))
        row[r], row[j] = row[j], row[r]


@compiled
def uniform(word: np.uint64) -> float:
    """Turn a random word into a number in [0, 1), a multiple of 2^-53."""
    return np.int64(word >> np.uint64(11)) * 2.0**-53


@compiled
def _spread(numbers: Floats) -> Words:
    state = np.empty(len(numbers), np.uint64)
    for i in range(len(numbers)):
        state[i] = start_row(numbers[i])
    return state


@compiled
def _rotated(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))

"""Random words inside compiled loops.

They come from xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021), started from numpy's generator
and compiled into the loop that uses them: a call to numpy's costs as much as the loop, and handing
it to a compiled function more than a short loop does.
"""

import numpy as np

from evenhand.typing import Floats, Ints, Words, compiled

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


def start_words(rng: np.random.Generator) -> Words:
    """Draw a state, four words, from numpy's generator."""
    return mix_words(rng.random(4))


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
def uniform(word: np.uint64) -> float:
    """Turn a random word into a number in [0, 1), a multiple of 2^-53."""
    return np.int64(word >> np.uint64(11)) * 2.0**-53


@compiled
def shuffle_words(row: Ints, state: State) -> State:
    """Put a row into uniformly random order; returns the new state."""
    for r in range(len(row) - 1):
        word, state = draw_word(state)
        j = r + int(uniform(word) * (len(row) - r))
        row[r], row[j] = row[j], row[r]
    return state


@compiled
def mix_words(numbers: Floats) -> Words:
    """Make a state of four numbers in [0, 1)."""
    state = np.empty(len(numbers), np.uint64)
    for i in range(len(numbers)):
        state[i] = _mixed(np.uint64(numbers[i] * 2.0**53))
    return state


@compiled
def _rotated(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@compiled
def _mixed(word: np.uint64) -> np.uint64:
    """Spread the bits of a seed over a word (the finaliser of SplitMix64)."""
    word += np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))

"""xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021): one generator per call of a cascade."""

import numpy as np

from evenhand.randomness.splitmix import start_row
from evenhand.typing import Words, compiled

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


def start_words(rng: np.random.Generator) -> Words:
    """Draw a state of xoshiro256++, four words, from numpy's generator."""
    return np.array([start_row(number) for number in rng.random(4)], np.uint64)


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
def _rotated(word: np.uint64, by: int) -> np.uint64:
    """Rotate the bits of a word to the left."""
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))

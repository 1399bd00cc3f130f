"""Coins with one chance of success, tossed by skipping from success to success.

The random words come from xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021), seeded from numpy's
generator and compiled into the loop that uses it: a call to numpy's costs as much as the loop.
"""

import numpy as np

from evenhand.alias import build_alias
from evenhand.typing import Words, compiled

LONGEST = 255  # failures that one skip can hold; a longer row of them takes several


def skip_table(p: float) -> Words:
    """Make the alias table of the failures before a success of probability 0 < p <= 1.

    Entry i holds in its low 8 bits the other skip of its cell and above them the chance of i
    itself, times 2^56. Skips 0 to 254 end before a success. The last one is 255 failures and no
    success after them: coins have no memory, so that another skip goes on from there.
    """
    law = np.zeros(LONGEST + 1)
    law[0] = p
    if p < 1.0:
        law[:-1] = p * np.exp(np.log1p(-p) * np.arange(LONGEST))
        law[-1] = np.exp(np.log1p(-p) * LONGEST)
    table = build_alias(law)
    chance = np.minimum(np.rint(table.keep * 2.0**56), 2.0**56 - 1)  # a full cell is its own other
    return (chance.astype(np.uint64) << np.uint64(8)) | table.other.astype(np.uint64)


@compiled
def draw_skip(table: Words, word: np.uint64) -> int:
    """Turn a random word into a skip: its low 8 bits choose the cell, the others toss its coin."""
    cell = word & np.uint64(LONGEST)
    entry = table[cell]
    stays = (word >> np.uint64(8)) < (entry >> np.uint64(8))
    return np.int64(cell if stays else entry & np.uint64(LONGEST))  # type: ignore[return-value]


@compiled
def uniform(word: np.uint64) -> float:
    """Turn a random word into a number in [0, 1), a multiple of 2^-53."""
    return np.int64(word >> np.uint64(11)) * 2.0**-53


@compiled
def seed_words(state: Words, rng: np.random.Generator) -> None:
    """Set the generator's state, four words, from numpy's generator."""
    for i in range(4):
        state[i] = _mixed(np.uint64(rng.random() * 2.0**53))


State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


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
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@compiled
def _mixed(word: np.uint64) -> np.uint64:
    """Spread the bits of a seed over a word (the finaliser of SplitMix64)."""
    word += np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))

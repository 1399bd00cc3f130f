"""Rows of coins with the same chance of success, tossed by skipping from success to success."""

import numpy as np

from evenhand.randomness.alias import build_alias, draw_alias
from evenhand.typing import Words, compiled

BITS = np.uint64(8)  # of a word that choose a cell of the table
LONGEST = 255  # most failures in one skip; a longer run of failures takes several


def skip_table(p: float) -> Words:
    """Make the alias table of the number of failures before a success of probability 0 < p <= 1.

    Skips of 0 to 254 failures end before a success. A skip of 255 says nothing about the next
    coin; coins have no memory, so another skip goes on from there.
    """
    law = np.zeros(LONGEST + 1)
    law[0] = p
    if p < 1.0:
        law[:-1] = p * np.exp(np.log1p(-p) * np.arange(LONGEST))
        law[-1] = np.exp(np.log1p(-p) * LONGEST)
    return build_alias(law)


@compiled
def draw_skip(table: Words, word: np.uint64) -> int:
    """Turn a random word into a skip."""
    return np.int64(draw_alias(table, BITS, word))  # type: ignore[return-value]

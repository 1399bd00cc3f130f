"""All sets of one size, in lexicographic order, block by block."""

from collections.abc import Iterator
from math import comb

import numpy as np

from evenhand.typing import Ints, compiled


def combinations(m: int, size: int, block: int) -> Iterator[Ints]:
    """Yield every ``size``-subset of range(m) as rows of blocks of at most ``block`` rows.

    Examples
    --------
    >>> [rows.tolist() for rows in combinations(3, 2, block=2)]
    [[[0, 1], [0, 2]], [[1, 2]]]
    """
    left = comb(m, size)
    current = np.arange(size)
    while left:
        rows = np.empty((min(block, left), size), np.int64)
        _fill(current, m, rows)
        left -= len(rows)
        yield rows


@compiled
def _fill(current: Ints, m: int, rows: Ints) -> None:
    """Write successive combinations into ``rows`` and leave the next one in ``current``."""
    size = len(current)
    for row in range(len(rows)):
        rows[row] = current
        i = size - 1
        while i >= 0 and current[i] == m - size + i:
            i -= 1
        if i >= 0:
            current[i] += 1
            for j in range(i + 1, size):
                current[j] = current[j - 1] + 1

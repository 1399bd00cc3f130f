"""Sums over stretches of time, short ones lately and longer ones long ago."""

import numpy as np

from evenhand.typing import Floats, Ints, Singles

STRETCHES = 2  # of every length, before two are put together: the least that keeps newer ones short


def merged(spans: list[int]) -> tuple[list[int], Ints]:
    """Put the two oldest stretches of a length together where there are too many of it.

    Returns the lengths, and the old place at which each begins.
    """
    starts, length = list(range(len(spans))), 1
    while spans.count(length) > STRETCHES:
        i = spans.index(length)
        spans[i : i + 2] = [2 * length]
        del starts[i + 1]
        length *= 2
    return spans, np.array(starts)


def next_ends(ends: Ints, now: int, starts: Ints) -> Ints:
    """Ends of stretches, the last of which ends now, where those that begin at starts are left."""
    every = np.append(ends, now)
    return every[np.append(starts[1:], len(every)) - 1]


def joined(old: Singles, new: Floats, starts: Ints) -> Singles:
    """Stretches (l, m, n) and a new one (m, n), of which some are added up."""
    every, ends = (*old, new.astype(np.float32)), [*starts.tolist()[1:], len(old) + 1]
    result = np.empty((len(starts), *new.shape), np.float32)
    for place, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        result[place] = every[start]
        for more in every[start + 1 : end]:
            result[place] += more
    return result

"""Rewards of sets, as posteriors are told them."""

from typing import NamedTuple

import numpy as np

from evenhand.typing import Bools, Floats, Ints


class Told(NamedTuple):
    """Sets, the first ``sizes[i]`` arms of a row, and their rewards (n,)."""

    orders: Ints
    sizes: Ints
    rewards: Floats


def members(told: Told, m: int) -> Bools:
    """Which arms are in which set (n, m)."""
    rows = np.zeros((len(told.orders), m), np.bool_)
    inside = np.arange(told.orders.shape[1]) < told.sizes[:, None]
    rows[np.nonzero(inside)[0], told.orders[inside]] = True
    return rows


def counted(told: Told, m: int) -> tuple[Bools, Floats, Floats]:
    """Distinct sets (n, m), and how often each succeeded and failed."""
    sets, which = np.unique(members(told, m), axis=0, return_inverse=True)
    successes: Floats = np.bincount(which, told.rewards, len(sets)).astype(np.float64)
    failures: Floats = np.bincount(which, 1.0 - told.rewards, len(sets)).astype(np.float64)
    return sets, successes, failures

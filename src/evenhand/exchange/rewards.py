"""Rewards as they are told: one number per query, in a range, nan where it is missing."""

from decimal import Decimal
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from evenhand.typing import Floats, Ints, compiled


def check_rewards(
    rewards: ArrayLike, sizes: Ints, within: tuple[float, float], empty: float
) -> tuple[Floats, bool]:
    """Return one reward per query in the shape of the sizes, and whether some are missing.

    They come back as (y - empty) / (high - low), so that the empty set's is 0, and they span at
    most 1. A missing one is nan.
    """
    if rewards is None:  # a function that forgot to return one
        raise TypeError(
            f"rewards must be numbers in the shape {sizes.shape}, got None; "
            "pass nan for one that was lost and will never come"
        )
    try:
        if isinstance(rewards, np.ma.MaskedArray):
            rewards = np.ma.filled(rewards.astype(np.float64), np.nan)
        given = np.asarray(rewards)
        if given.dtype.kind not in "fiub":
            numbers = all(x is None or isinstance(x, Real | Decimal) for x in given.reshape(-1))
            given = np.array(given if numbers and given.dtype.kind == "O" else "none", np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"rewards must be numbers in the shape {sizes.shape}, nan where missing, "
            f"got {rewards!r}"
        ) from None
    if given.shape != sizes.shape and given.shape not in (
        (sizes.size,),
        () if sizes.size == 1 else None,
    ):
        raise ValueError(
            f"rewards must have shape {sizes.shape}, or be a flat list of {sizes.size}, "
            f"got {given.shape}"
        )
    values = given.reshape(sizes.shape).astype(np.float64, order="C")
    row, column, gaps = scale_rewards(values, sizes, *within, empty)
    if row >= 0:
        (low, high), s = within, sizes.shape[1]
        place = {0: "", 1: f"[{row * s + column}]", 2: f"[{row}, {column}]"}[given.ndim]
        raise ValueError(
            f"rewards must lie in [{low:g}, {high:g}], got rewards{place}={values[row, column]:g}; "
            "make the learner with rewards=(low, high), or cut it: that of one that runs stays"
        )
    return values, gaps


@compiled
def scale_rewards(
    rewards: Floats, sizes: Ints, low: float, high: float, empty: float
) -> tuple[int, int, bool]:
    """Scale rewards in place, up to the first outside [low, high]: its place, else -1.

    The third value says whether any is nan.
    """
    (n, s), gaps = rewards.shape, False
    for i in range(n):
        for j in range(s):
            if sizes[i, j] == 0:
                rewards[i, j] = 0.0
            elif rewards[i, j] < low or rewards[i, j] > high:
                return i, j, gaps
            elif np.isnan(rewards[i, j]):
                gaps = True
            else:
                rewards[i, j] = (rewards[i, j] - empty) / (high - low)
    return -1, -1, gaps

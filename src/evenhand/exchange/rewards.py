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
    bad, gaps = scale_rewards(values.reshape(-1), sizes.reshape(-1), *within, empty)
    if bad >= 0:
        (low, high), (row, column) = within, divmod(bad, sizes.shape[1])
        place = {0: "", 1: f"[{bad}]", 2: f"[{row}, {column}]"}[given.ndim]
        raise ValueError(
            f"rewards must lie in [{low:g}, {high:g}], got rewards{place}={values[row, column]:g}; "
            "make the learner with rewards=(low, high), or cut it: that of one that runs stays"
        )
    return values, gaps


@compiled
def scale_rewards(
    rewards: Floats, sizes: Ints, low: float, high: float, empty: float
) -> tuple[int, bool]:
    """Scale rewards in place, unless one lies outside [low, high]: its place, else -1.

    The second value says whether any is nan. Loops have no jumps: several at a time.
    """
    wrong = gaps = 0
    for i in range(len(rewards)):
        asked = sizes[i] != 0
        wrong += asked & ((rewards[i] < low) | (rewards[i] > high))
        gaps += asked & np.isnan(rewards[i])
    if wrong > 0:
        bad = 0
        while sizes[bad] == 0 or not (rewards[bad] < low or rewards[bad] > high):
            bad += 1
        return bad, gaps > 0
    for i in range(len(rewards)):
        scaled = (rewards[i] - empty) / (high - low)
        rewards[i] = scaled if sizes[i] != 0 else 0.0
    return -1, gaps > 0

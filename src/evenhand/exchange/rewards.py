"""Rewards as they are told: one number in [0, 1] per query, nan where it is missing."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from evenhand.typing import Floats, Ints, compiled


def check_rewards(rewards: ArrayLike, sizes: Ints) -> tuple[Floats, bool]:
    """Return one reward per query in the shape of the sizes, and whether some are missing.

    A missing one is nan, that of the empty set 0.
    """
    try:
        if isinstance(rewards, np.ma.MaskedArray):
            rewards = np.ma.filled(rewards.astype(np.float64), np.nan)
        given = np.array(rewards)
        if given.dtype.kind not in "fiub":
            numbers = all(x is None or isinstance(x, Real) for x in given.reshape(-1))
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
    row, column, gaps = first_bad_reward(values, sizes)
    if row >= 0:
        raise ValueError(
            "rewards must lie in [0, 1], "
            f"got rewards[{row}, {column}]={values[row, column]:g}; rescale them before tell"
        )
    return values, gaps


@compiled
def first_bad_reward(rewards: Floats, sizes: Ints) -> tuple[int, int, bool]:
    """First entry outside [0, 1], else -1, and whether any is nan; the empty set's is set to 0."""
    (n, s), gaps = rewards.shape, False
    for i in range(n):
        for j in range(s):
            if sizes[i, j] == 0:
                rewards[i, j] = 0.0
            elif rewards[i, j] < 0.0 or rewards[i, j] > 1.0:
                return i, j, gaps
            elif np.isnan(rewards[i, j]):
                gaps = True
    return -1, -1, gaps

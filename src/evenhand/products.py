"""Products of long matrices by the thread that calls.

For a long one BLAS wakes a thread on every core, and these go on spinning for tens of milliseconds
after it. Nothing is gained where one side is narrow, as everywhere here: memory is what is waited
for. But a learner that makes a policy now and then would keep all cores of the machine busy.
"""

import numpy as np

from evenhand.typing import Floats

MOST = 2**17  # multiplications at a time: too few for BLAS to start threads
LONGEST = 2**13  # numbers along an axis at a time: the same, for products of two vectors


def product(left: Floats, right: Floats) -> Floats:
    """``left @ right`` of matrices or vectors, in parts along its longest axis.

    Examples
    --------
    >>> product(np.ones((2, 100_000)), np.ones(100_000))
    array([100000., 100000.])
    """
    columns = right.shape[1] if right.ndim == 2 else 1
    if left.size * columns <= MOST and max(*left.shape, columns) <= LONGEST:
        result: Floats = left @ right
        return result
    lengths = [len(left) if left.ndim == 2 else 1, len(right), columns]
    axis = int(np.argmax(lengths))
    step = min(LONGEST, max(1, MOST * lengths[axis] // max(1, left.size * columns)))
    parts = [slice(start, start + step) for start in range(0, lengths[axis], step)]
    if axis == 0:
        return np.concatenate([left[rows] @ right for rows in parts])
    if axis == 2:
        return np.concatenate([left @ right[:, part] for part in parts], axis=-1)
    return np.sum([left[..., both] @ right[both] for both in parts], axis=0)

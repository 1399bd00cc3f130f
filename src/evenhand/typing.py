"""Array types, and the one way this package compiles a function."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for the machine, kept on disk, without the global lock and without fast-math."""
    kernel: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy")(function)
    return kernel

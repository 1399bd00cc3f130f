"""Array types, and the one way this package compiles a function."""

import gc
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numba import njit
from numba.core import event
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int16] | NDArray[np.int32]  # arms, where many are kept
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # kernels are called by Python and by each other, never by C
}
KERNELS: list[Any] = []  # all compiled functions of the modules imported so far


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for the machine, kept on disk, without the global lock and without fast-math.

    Compiling takes time when first used, much of it in a few functions of numpy: assigning an array
    to a slice, ``np.where``, reductions and ``np.arange`` are written as loops in kernels.
    """
    kernel: Callable[P, R] = njit(**OPTIONS)(function)
    KERNELS.append(kernel)
    return kernel


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that compiled ones alone call.

    It has no file of its own and no way in from Python (a call from there crashes, and a test finds
    it): for a short function these take longer than all else.
    """
    alone = {"cache": False, "no_cpython_wrapper": True}
    kernel: Callable[P, R] = njit(**OPTIONS | alone)(function)
    return kernel


class Pause(event.Listener):
    """No garbage collection while something is compiled, which would take a tenth of the time.

    What compiling leaves behind is collected afterwards: the most memory used stays the same.
    """

    def __init__(self) -> None:
        self._depth, self._collects = 0, False  # compiling one function may compile others

    def on_start(self, event: Any) -> None:
        """Stop collecting."""
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Go on as before."""
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


event.register("numba:compile", Pause())  # type: ignore[no-untyped-call]

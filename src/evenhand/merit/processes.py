"""Processes of which each may die alone."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

from evenhand.checks import check_integer


class Processes(Executor):
    """An executor of n processes, each with a queue of its own.

    When a process of a ``ProcessPoolExecutor`` dies, all its tasks are lost, those of the other
    processes too. Here a process that dies takes the task it was at, and what waited behind it;
    the next task finds a new one in its place.

    Parameters
    ----------
    n
        How many.
    options
        As those of ``ProcessPoolExecutor``: ``mp_context``, ``initializer``, ``initargs``.

    Examples
    --------
    >>> from evenhand.merit import Processes
    >>> with Processes(2) as executor:
    ...     executor.submit(abs, -3).result()
    3
    """

    def __init__(self, n: int, **options: Any) -> None:
        self._max_workers = check_integer("n", n, 1)
        self._make: Callable[[], ProcessPoolExecutor] = partial(ProcessPoolExecutor, 1, **options)
        self._pools = [self._make() for _ in range(n)]  # each starts its process when first asked
        self._out = [0] * n
        self._lock = Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Hand a task to the process that has the fewest."""
        with self._lock:
            i = min(range(len(self._pools)), key=self._out.__getitem__)
            try:
                future = self._pools[i].submit(fn, *args, **kwargs)
            except BrokenExecutor:
                self._pools[i].shutdown(wait=False)
                self._pools[i] = self._make()
                future = self._pools[i].submit(fn, *args, **kwargs)
            self._out[i] += 1
        future.add_done_callback(partial(self._back, i))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, when their tasks are done."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=cancel_futures)
        for pool in self._pools:
            pool.shutdown(wait=wait)

    def _back(self, i: int, _: "Future[Any]") -> None:
        with self._lock:
            self._out[i] -= 1

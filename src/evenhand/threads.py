"""Threads beside the one that calls: where there are cores to spare, and for long work only.

Compiled functions and most of numpy let other threads run meanwhile. Nothing here changes what
comes out: only such work is done by another thread whose order changes no bit.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from multiprocessing import parent_process
from typing import Generic, TypeVar

R = TypeVar("R")

FEWEST = 3  # cores: of two the second is better left to others, and to the system
MOST = 4  # threads: more would find nothing to do
LONG = 2**14  # rows: fewer take hardly longer than to hand them over


@cache
def spare_cores() -> int:
    """Cores beside the one in use; none in a process that is one of several made by another."""
    if parent_process() is not None:
        return 0
    here = getattr(os, "sched_getaffinity", None)
    cores = len(here(0)) if here else os.cpu_count() or 1
    return cores - 1 if cores >= FEWEST else 0


def pays(rows: int) -> bool:
    """Whether another thread is worth its while for work on so many rows."""
    return rows >= LONG and spare_cores() > 0


class Pool:
    """The threads of this process, started when first needed. Work never waits for other work."""

    def __init__(self) -> None:
        self.threads: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Begin some work; it is done at once where no thread is to be had any more."""
        try:
            if self.threads is None:
                self.threads = ThreadPoolExecutor(min(MOST, spare_cores()), "evenhand")
            return self.threads.submit(work)
        except RuntimeError:  # the interpreter is about to end
            done: Future[R] = Future()
            done.set_result(work())
            return done

    def forget(self) -> None:
        """Begin anew in a forked process, which has none of the threads."""
        self.threads = None
        spare_cores.cache_clear()


POOL = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)


class Aside(Generic[R]):
    """Work that another thread does."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._future, self._threads = POOL.submit(work), POOL.threads

    @property
    def lost(self) -> bool:
        """Whether it may never be done: this process was forked, and its thread was not."""
        return self._threads is not POOL.threads

    def result(self) -> R:
        """Wait until it is done and return what it returned."""
        return self._future.result()


def side_by_side(here: Callable[[], object], there: Callable[[], object], rows: int) -> None:
    """Do two things that have nothing to do with each other, at the same time where that pays."""
    if not pays(rows):
        here()
        there()
        return
    aside = Aside(there)
    try:
        here()
    finally:
        aside.result()  # nobody is to go on while it is under way

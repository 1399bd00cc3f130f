"""Asking a game through an executor: any with the interface of ``concurrent.futures``.

A task carries a few rows and the name of the game. A worker that does not know the game yet says
so, and is sent it with the next task: a large game travels once per worker, and to threads not at
all.
"""

import os
import pickle
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from evenhand.merit.processes import Processes
from evenhand.merit.questions import Question
from evenhand.typing import Floats, Ints

TASK_SECONDS = 0.2  # what a task should take: long beside its transport, short beside a wait
PER_WORKER = 2  # tasks out per worker, so that none waits for its next one
MAX_KNOWN = 4  # games a worker remembers
MAX_TRIES = 3  # of a task whose worker dies
POLL_SECONDS = 0.5

Take = Callable[[int], Ints | None]  # next rows, at most so many; None when there are no more
Found = Iterator[tuple[Ints, Floats]]  # rows and their answers (n, s)

_known: dict[str, Any] = {}  # games of this process, by the name tasks call them by


class Here:
    """No workers: the game is asked in this process, a fifth of a second's worth at a time."""

    def open(self, game: Any) -> None:
        """Take the game."""
        self._game, self._seconds = game, TASK_SECONDS

    def close(self, wait: bool) -> None:
        """Nothing is out."""

    def ask(self, question: Question, take: Take) -> Found:
        """Ask row after row; yields rows and their answers."""
        while (rows := take(max(1, int(TASK_SECONDS / max(self._seconds, 1e-7))))) is not None:
            if not len(rows):
                time.sleep(POLL_SECONDS)  # others are at work on the rows that are left
                continue
            start = time.perf_counter()
            found = question[rows].answers(self._game)
            self._seconds = (time.perf_counter() - start) / len(rows)
            yield rows, found

    def finished(self) -> Found:
        """Nothing is out."""
        return iter(())


@dataclass(slots=True)
class Task:
    """Some rows of a question, out at a worker."""

    rows: Ints
    question: Question
    tries: int = 0


class Workers:
    """An executor, or a function that makes one and makes it again when it breaks."""

    def __init__(self, executor: Any) -> None:
        if not callable(getattr(executor, "submit", None)) and not callable(executor):
            raise TypeError(
                "executor must have submit as those of concurrent.futures, or be a function that "
                f"makes such an executor, got {executor!r}"
            )
        self._make = None if hasattr(executor, "submit") else executor
        self._executor = executor if self._make is None else self._make()
        self._running: dict[Future[Any], Task] = {}
        self._again: list[Task] = []
        self._seconds: float | None = None  # per row
        self._counted, self._count_at = 1, -np.inf
        self._name, self._game, self._blob = uuid.uuid4().hex, None, b""

    def open(self, game: Any) -> None:
        """Make the game known to threads, and to processes forked from this one."""
        self._game = game
        remember(self._name, game)

    def close(self, wait: bool) -> None:
        """Forget the game, and end an executor that was made here."""
        _known.pop(self._name, None)
        for future in self._running:
            future.cancel()
        if self._make is not None:
            self._executor.shutdown(wait=wait)

    def ask(self, question: Question, take: Take) -> Found:
        """Ask row after row, in tasks; yields rows and their answers as they come."""
        left, more = len(question), True
        while True:
            while len(self._running) < PER_WORKER * self._n_workers():
                if self._again:
                    self._submit(self._again.pop(), blob=True)
                    continue
                rows = take(self._task_size(left)) if more else None
                if rows is None or not len(rows):
                    more = rows is not None
                    break
                left -= len(rows)
                self._submit(Task(rows, question[rows]))
            if not self._running:
                if not more:
                    return
                time.sleep(POLL_SECONDS)  # others are at work on the rows that are left
                continue
            done, _ = wait(self._running, POLL_SECONDS, FIRST_COMPLETED)
            for future in sorted(done, key=failed):  # what came back counts before what broke
                yield from self._receive(future)

    def finished(self) -> Found:
        """Yield what came back but was not received yet; everything else is called off."""
        for future, task in list(self._running.items()):
            if not future.done():
                future.cancel()
            elif not failed(future) and future.result():
                yield task.rows, future.result()[0]
        self._running.clear()
        self._again.clear()

    def _submit(self, task: Task, blob: bool = False) -> None:
        game = self._pickled() if blob else b""
        try:
            future = self._executor.submit(work, self._name, game, task.question, task.tries)
        except BrokenExecutor as error:
            self._again.append(task)
            self._mend(error)
        else:
            self._running[future] = task

    def _receive(self, future: "Future[Any]") -> Found:
        if future not in self._running:  # lost with its executor
            return
        try:
            answer = future.result()
        except BrokenExecutor as error:
            if isinstance(self._executor, Processes):  # one of several, and made again already
                self._again.append(self._counted_death(self._running.pop(future), error))
            else:
                self._mend(error)
            return
        task = self._running.pop(future)
        if answer is None:  # the worker does not know the game
            self._again.append(task)
            return
        found, seconds = answer
        one = seconds / len(found)
        self._seconds = one if self._seconds is None else 0.5 * (self._seconds + one)
        yield task.rows, found

    def _mend(self, error: BrokenExecutor) -> None:
        """Put the tasks that were out into a new executor, if we can make one."""
        if self._make is None:
            raise RuntimeError(
                "a worker died and its executor cannot go on: what came back by then is kept if "
                "there is a cache=, and the same call goes on from there with a new executor; "
                "executor=evenhand.merit.Processes(4) loses nothing but the task of a process that "
                "dies, and a function that makes an executor, as lambda: ProcessPoolExecutor(4), "
                "the tasks that are out"
            ) from error
        lost = [*self._running.values(), *self._again]
        self._running.clear()
        self._again.clear()
        self._again = [self._counted_death(task, error) for task in lost]
        self._executor.shutdown(wait=False)
        self._executor = self._make()

    def _counted_death(self, task: Task, error: BrokenExecutor) -> Task:
        """Count that a worker died when a task was out."""
        task.tries += 1
        if task.tries >= MAX_TRIES:
            raise RuntimeError(
                f"workers died {MAX_TRIES} times over tasks with the rows "
                f"{task.rows[:5].tolist()}...; is it the game that ends them, or memory?"
            ) from error
        return task

    def _pickled(self) -> bytes:
        if not self._blob:
            self._blob = pickled(self._game)
        return self._blob

    def _task_size(self, left: int) -> int:
        """Rows of the next task: a fifth of a second's worth, and fewer towards the end."""
        if self._seconds is None:
            return 1
        most = max(1, left // (PER_WORKER * self._n_workers()))
        return min(most, max(1, int(TASK_SECONDS / max(self._seconds, 1e-7))))

    def _n_workers(self) -> int:
        if time.monotonic() > self._count_at + 1.0:  # a cluster may grow
            self._counted, self._count_at = count_workers(self._executor), time.monotonic()
        return self._counted


def failed(future: "Future[Any]") -> bool:
    """Whether a future that is done has no answer."""
    return future.cancelled() or future.exception() is not None


def in_order(n: int) -> Take:
    """Give all n rows in their order."""
    start = 0

    def take(most: int) -> Ints | None:
        nonlocal start
        rows = np.arange(start, min(n, start + most))
        start += len(rows)
        return rows if len(rows) else None

    return take


def work(name: str, blob: bytes, question: Question, tries: int) -> tuple[Floats, float] | None:
    """Answer a question where this runs: answers and seconds; None if the game is not known.

    ``tries`` makes a task that is sent again another one, for executors that remember results.
    """
    if name not in _known:
        if not blob:
            return None
        made = pickle.loads(blob)
        remember(name, made() if isinstance(made, Remade) else made)
    start = time.perf_counter()
    found = question.answers(_known[name])
    return found, time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Remade:
    """Stands for a game that is made again where it is needed."""

    make: Callable[[], Any]

    def __call__(self) -> Any:
        """Make the game."""
        return self.make()


def remember(name: str, game: Any) -> None:
    """Keep a game for later tasks, and forget the oldest of too many."""
    _known[name] = game
    while len(_known) > MAX_KNOWN:
        del _known[next(iter(_known))]


def pickled(game: Any) -> bytes:
    """Return the game, or what makes it, as bytes.

    By cloudpickle where it is installed, as it is with loky, joblib and Dask: it sends lambdas and
    the functions of a script or notebook too.
    """
    sent = Remade(game.remake) if callable(getattr(game, "remake", None)) else game
    try:
        return bytes(pickler().dumps(sent))
    except Exception as error:  # whatever an object's own methods raise
        raise TypeError(
            f"game must be one that can be sent to other processes, got {error}; define its "
            "function at the top of a module, use a ThreadPoolExecutor, or give the game an "
            "attribute remake, a function of such a module that makes it"
        ) from None


def pickler() -> Any:
    """Return cloudpickle, or that inside joblib, or pickle."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        with suppress(ImportError):
            return import_module(name)
    return pickle


def count_workers(executor: Any) -> int:
    """Return how many tasks an executor runs at once, as far as it can be known."""
    client: Any = getattr(executor, "_client", None)  # Dask
    if callable(getattr(client, "nthreads", None)):
        return max(1, sum(client.nthreads().values()))
    for name in ("num_workers", "_max_workers"):  # mpi4py, then all others
        if isinstance(count := getattr(executor, name, None), int) and count > 0:
            return count
    return os.cpu_count() or 1

"""One thread that writes: what comes in while it commits goes into the next commit, together."""

import asyncio
import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from evenhand.service import tells
from evenhand.service.database import ERRORS, Connection, Database
from evenhand.service.tells import Told

MOST = 512  # pieces of work in a commit
PAUSE = 0.05  # seconds between tries to connect
LATER = 0.01  # seconds that work waits for a commit that is made anyway
SHARE = 0.25  # of the last commit's time that the next waits for clients who are due again
LONGEST = 0.002  # seconds of such waiting


class Unavailable(RuntimeError):  # noqa: N818
    """The database did not do it, or it is not known whether it did: try again."""


class Work(NamedTuple):
    """Rewards to record, or a function of the connection; and who waits for it."""

    waiter: "asyncio.Future[Any]"
    told: list[Told]
    function: Callable[[Connection], Any] | None


class Committer:
    """Groups commits. What it answers is durable.

    Work is handed over by the event loop and done by the thread: deques are safe between them, and
    the thread is woken once per commit, not once per request. Clients who wait for each other's
    commits would fall into two groups that take turns; so the thread waits a little for as many as
    were there around the last commit. One client alone is not kept waiting.
    """

    def __init__(self, source: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._source, self._loop = source, loop
        self._soon: deque[Work] = deque()
        self._later: deque[Work] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._rung = self._gathering = self._stopping = False
        self._expected, self._came, self._patience = 1, 0, 0.0
        self._c: Connection | None = None
        self.commits = self.failures = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def tell(self, told: list[Told]) -> "asyncio.Future[list[str]]":
        """Record rewards; the future has a word for each."""
        return self._submit(told, None)

    def do(self, function: Callable[[Connection], Any]) -> "asyncio.Future[Any]":
        """Call a function inside the next transaction."""
        return self._submit([], function)

    def do_later(self, function: Callable[[Connection], Any]) -> "asyncio.Future[Any]":
        """Call a function inside a transaction that is made anyway, if one comes soon."""
        waiter = self._loop.create_future()
        self._later.append(Work(waiter, [], function))
        self._loop.call_later(LATER, self.hurry)
        return waiter

    def _submit(self, told: list[Told], function: Callable[[Connection], Any] | None) -> Any:
        waiter = self._loop.create_future()
        self._soon.append(Work(waiter, told, function))
        if self._gathering and len(self._soon) >= self._expected:
            self._bell.put(None)
        self.hurry()
        return waiter

    def hurry(self) -> None:
        """Wake the thread."""
        if not self._rung:
            self._rung = True
            self._bell.put(None)

    def stop(self) -> None:
        """Finish what was asked for, then end."""
        self._stopping = True
        self._bell.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            work = self._gathered()
            if work:
                self._loop.call_soon_threadsafe(_finish, self._commit(work))
            elif self._stopping:
                break
        if self._c is not None:
            self._c.close()

    def _gathered(self) -> list[Work]:
        """Wait for work and return what there is."""
        if not self._soon and not self._stopping:
            self._bell.get()
        self._gathering = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._bell.get_nowait()  # rung for those who are seen now
        if len(self._soon) < self._expected and not self._stopping:
            with contextlib.suppress(queue.Empty):
                self._bell.get(timeout=self._patience)
        self._gathering = False
        self._rung = False  # before looking: who comes now rings again
        work = _taken(self._soon, MOST)
        self._came = len(work)
        return work + _taken(self._later, len(self._later))  # all: nobody rings for them again

    def _commit(self, work: list[Work]) -> list[tuple[Work, Any]]:
        """Do all of the work in one transaction; return results, or what went wrong."""
        start = time.perf_counter()
        try:
            if self._c is None:
                self._c = self._source.connect()
            results = self._do_all(self._c, work)
            self.commits += 1
        except ERRORS as error:
            self.failures += 1
            with contextlib.suppress(Exception):
                if self._c is not None:
                    self._c.close()
            self._c = None
            time.sleep(PAUSE)
            failed = Unavailable(str(error).strip())
            return [(one, failed) for one in work]
        self._patience = min(LONGEST, SHARE * (time.perf_counter() - start))
        self._expected = self._came + len(self._soon)
        return list(zip(work, results, strict=True))

    def _do_all(self, c: Connection, work: list[Work]) -> list[Any]:
        told = [row for one in work for row in one.told]
        if all(one.function is None for one in work):
            words = iter(tells.record_alone(c, told))
            return [_own(words, one) for one in work]
        with c.transaction():
            words = iter(tells.record(c, told) if told else [])
            return [_called(c, one) if one.function else _own(words, one) for one in work]


def _own(words: Iterator[str], work: Work) -> list[str]:
    return [next(words) for _ in work.told]


def _called(c: Connection, work: Work) -> Any:
    assert work.function is not None
    try:
        return work.function(c)
    except ERRORS:
        raise
    except Exception as error:  # a refusal: functions refuse before they write
        return error


def _taken(waiting: deque[Work], most: int) -> list[Work]:
    return [waiting.popleft() for _ in range(min(len(waiting), most))]


def _finish(results: list[tuple[Work, Any]]) -> None:
    for work, result in results:
        if work.waiter.done():  # who asked has gone
            continue
        if isinstance(result, Exception):
            work.waiter.set_exception(result)
        else:
            work.waiter.set_result(result)

"""One thread that writes: what comes in while it commits goes into the next commit, together."""

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from evenhand.service import tells
from evenhand.service.database import ERRORS, Connection, Database
from evenhand.service.tells import Told

MOST = 512  # pieces of work in a commit
PAUSE = 0.05  # seconds between tries to connect
LATER = 0.01  # seconds that work waits for a commit that is made anyway
SHARE = 0.25  # of the last commit's time that the next waits for clients who are due again
LONGEST = 0.002  # seconds of such waiting
log = logging.getLogger(__name__)


class Unavailable(RuntimeError):  # noqa: N818
    """The database did not do it, or it is not known whether it did: try again."""


class Work(NamedTuple):
    """Rewards to record, or a function of the connection; and who is to hear of it."""

    done: Callable[[Any], None]
    told: list[Told]
    function: Callable[[Connection], Any] | None


class Committer:
    """Groups commits. What it answers is durable.

    Work is handed over by the event loop and done by the thread: deques are safe between them, and
    the thread is woken once per commit, not once per request: when as many are there as around the
    last commit, or when the loop has read all that has arrived. Clients who wait for each other's
    commits would fall into two groups that take turns; so the thread then waits a little for the
    others. One client alone is not kept waiting.
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
        waiter = self._loop.create_future()
        self.tell_then(told, partial(_settle, waiter))
        return waiter

    def tell_then(self, told: list[Told], done: Callable[[list[str] | Unavailable], None]) -> None:
        """Record rewards; then have the loop call a function with a word for each."""
        self._submit(Work(done, told, None))

    def do(self, function: Callable[[Connection], Any]) -> "asyncio.Future[Any]":
        """Call a function inside the next transaction."""
        waiter = self._loop.create_future()
        self._submit(Work(partial(_settle, waiter), [], function))
        return waiter

    def do_later(self, function: Callable[[Connection], Any]) -> "asyncio.Future[Any]":
        """Call a function inside a transaction that is made anyway, if one comes soon."""
        waiter = self._loop.create_future()
        self._later.append(Work(partial(_settle, waiter), [], function))
        self._loop.call_later(LATER, self.hurry)
        return waiter

    def _submit(self, work: Work) -> None:
        self._soon.append(work)
        if len(self._soon) < self._expected:
            if not self._rung:
                self._rung = True
                self._loop.call_soon(self._bell.put, None)  # others may have arrived with this one
        elif self._gathering:
            self._bell.put(None)
        else:
            self.hurry()

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
        while not self._bell.empty():
            self._bell.get_nowait()  # rung for those who are seen now
        if 0 < len(self._soon) < self._expected and not self._stopping:
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
        try:
            work.done(result)
        except Exception:  # the others are to hear of theirs
            log.exception("unheard")


def _settle(waiter: "asyncio.Future[Any]", result: Any) -> None:
    if waiter.done():  # who asked has gone
        return
    if isinstance(result, Exception):
        waiter.set_exception(result)
    else:
        waiter.set_result(result)

"""One thread that writes: what comes in while it commits goes into the next commit, together."""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from evenhand.service import tells
from evenhand.service.database import ERRORS, Connection, Database
from evenhand.service.tells import Told

MOST = 512  # pieces of work in a commit
PAUSE = 0.05  # seconds between tries to connect


class Unavailable(RuntimeError):  # noqa: N818
    """The database did not do it, or it is not known whether it did: try again."""


class Work(NamedTuple):
    """Rewards to record, or a function of the connection; and who waits for it."""

    waiter: "asyncio.Future[Any]"
    told: list[Told]
    function: Callable[[Connection], Any] | None


class Committer:
    """Groups commits. What it answers is durable."""

    def __init__(self, source: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._source, self._loop = source, loop
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
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

    def _submit(self, told: list[Told], function: Callable[[Connection], Any] | None) -> Any:
        waiter = self._loop.create_future()
        self._queue.put(Work(waiter, told, function))
        return waiter

    def stop(self) -> None:
        """Finish what was asked for, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            batch = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < MOST and batch[-1] is not None:
                    batch.append(self._queue.get_nowait())
            going = batch[-1] is not None
            work = [one for one in batch if one is not None]
            if work:
                self._loop.call_soon_threadsafe(_finish, self._commit(work))
        if self._c is not None:
            self._c.close()

    def _commit(self, work: list[Work]) -> list[tuple[Work, Any]]:
        """Do all of the work in one transaction; return results, or what went wrong."""
        try:
            if self._c is None:
                self._c = self._source.connect()
            with self._c.transaction():
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
        return list(zip(work, results, strict=True))

    def _do_all(self, c: Connection, work: list[Work]) -> list[Any]:
        told = [row for one in work for row in one.told]
        words = iter(tells.record(c, told) if told else [])
        results: list[Any] = []
        for one in work:
            if one.function is None:
                results.append([next(words) for _ in one.told])
                continue
            try:
                results.append(one.function(c))
            except ERRORS:
                raise
            except Exception as error:  # a refusal: functions refuse before they write
                results.append(error)
        return results


def _finish(results: list[tuple[Work, Any]]) -> None:
    for work, result in results:
        if work.waiter.done():  # who asked has gone
            continue
        if isinstance(result, Exception):
            work.waiter.set_exception(result)
        else:
            work.waiter.set_result(result)

"""One thread that reads, on a connection of its own: it never waits for a commit."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evenhand.service.committer import Unavailable
from evenhand.service.database import ERRORS, Connection, Database


class Reader:
    """Calls functions of a connection, one after the other."""

    def __init__(self, source: Database) -> None:
        self._source = source
        self._c: Connection | None = None
        self._pool = ThreadPoolExecutor(1, "reader")

    async def do(self, function: Callable[[Connection], Any]) -> Any:
        """Call a function that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, function)

    def _call(self, function: Callable[[Connection], Any]) -> Any:
        try:
            if self._c is None:
                self._c = self._source.connect()
            return function(self._c)
        except ERRORS as error:
            with contextlib.suppress(Exception):
                if self._c is not None:
                    self._c.close()
            self._c = None
            raise Unavailable(str(error).strip()) from error

    def stop(self) -> None:
        """End the thread."""
        self._pool.shutdown(cancel_futures=True)
        if self._c is not None:
            self._c.close()

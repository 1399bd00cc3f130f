"""Requests that were let in, and answers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evenhand.service.committer import Unavailable
from evenhand.service.keys import Key
from evenhand.service.pace import PATIENCE
from evenhand.service.worker import View, Worker

JSON = "application/json"
SLOW = Unavailable("the database takes too long")


@dataclass(slots=True)
class Request:
    """A request that was let in."""

    worker: Worker
    key: Key
    experiment: str  # as in the path, or ""
    last: str  # last part of the path, where it is a name
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def view(self) -> View:
        """The experiment of the path."""
        return self.worker.view(self.experiment)

    def header(self, name: bytes) -> str | None:
        """Return a header."""
        for found, value in self.headers:
            if found == name:
                return value.decode("latin-1")
        return None


@dataclass(slots=True)
class Answer:
    """A body, whole or in parts, and what it is."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    kind: str = JSON
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


def answered(content: Any, status: int = 200) -> Answer:
    """Return content as JSON."""
    return Answer(msgspec.json.encode(content), status)


async def within(future: "asyncio.Future[Any]") -> Any:
    """Wait for the database, but not for ever; what it does later does no harm."""
    end = future.get_loop().call_later(PATIENCE, _give_up, future)
    try:
        return await future
    finally:
        end.cancel()


def _give_up(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_exception(SLOW)

"""Connections, with limits on what strangers can make them hold and for how long.

The server has a timer for connections that rest, but waits for ever for a request that was begun,
for a first one and for a client that reads nothing, and takes heads of any length.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = 1 << 16  # bytes of a request besides its body
ARRIVAL = 60.0  # seconds within which a request arrives
STUCK = 60.0  # seconds without a byte that a client takes of its answer
TICKS = 5  # of a tenth of a second, between looks
TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class Guarded(HttpToolsProtocol):
    """A connection that ends when nothing comes of it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.arriving = False  # a request has begun and is not yet here
        self._since = 0.0  # when that began, or the last answer was sent
        self._paused = 0.0  # when the client had not read what was written
        self._unread = 0  # bytes since something came of bytes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD and not self.transport.is_closing():
            self.transport.write(TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.arriving, self._since = True, self.loop.time()

    def on_headers_complete(self) -> None:
        """End a head. What comes behind a body in the form of headers counts for nothing."""
        self._unread, self.headers = 0, []
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._unread, self.arriving = 0, False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request. No timer is set, which would be one per request."""
        self._since = self.loop.time()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        self._paused = self.loop.time()
        super().pause_writing()

    @property
    def waits(self) -> bool:
        """Whether a request is not yet answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def look(self, now: float) -> None:
        """End if the client has kept this open for too long."""
        if self.flow.write_paused:
            if now - self._paused > STUCK:
                self.transport.abort()
        elif self.arriving:
            if now - self._since > ARRIVAL and not self.flow.read_paused:
                self.transport.close()
        elif not self.waits and now - self._since > self.timeout_keep_alive:
            self.transport.close()


class Server(uvicorn.Server):
    """A server that looks after its connections."""

    async def on_tick(self, counter: int) -> bool:
        """Do what is due now and then; return whether to end."""
        if counter % TICKS == 0:
            look(self.server_state.connections)
        return await super().on_tick(counter)


def look(connections: Iterable[Any]) -> None:
    """Look at all connections."""
    now = asyncio.get_running_loop().time()
    for one in list(connections):
        one.look(now)

"""The request that comes most, an ask for one row, answered by the protocol itself.

It needs no scope, no task and one write to the socket: about half of what the server alone
spends on a request that does nothing. Whatever is not as usual about a request (no key, another
body, no row at hand) goes the general way, through the application, as if this were not here.
"""

import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.service.asking import render
from evenhand.service.problems import Problem
from evenhand.service.worker import View, Worker

ROUTE = "/v1/experiments/*/ask"
USUAL = frozenset((b"", b"{}", b'{"n":1}', b'{"n": 1}'))  # bodies that ask for one row
LONGEST = 16  # bytes of a body that may be one of them
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
    b"content-length: %d\r\n\r\n"
)


class Quick(HttpToolsProtocol):
    """A connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._view: View | None = None  # of an ask that is not yet known to be unusual
        self._body = b""

    def on_headers_complete(self) -> None:
        """Begin a request."""
        view = self.app.worker.asked.get(self.url)
        waits = self.cycle is not None and not self.cycle.response_complete  # for one before
        usual = not waits and not self.expect_100_continue and self.parser.should_keep_alive()
        if (
            view is None
            or not usual
            or self.parser.get_method() != b"POST"
            or self.parser.should_upgrade()
        ):
            super().on_headers_complete()
        else:
            self._view, self._body = view, b""

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        if self._view is None:
            super().on_body(body)
            return
        self._body += body
        if len(self._body) > LONGEST:
            self._go_generally()

    def on_message_complete(self) -> None:
        """Answer a request, or let the application do so."""
        if self._view is not None and not self.flow.write_paused:
            began = time.perf_counter()
            said = ask(self.app.worker, self._view, self.headers, self._body)
            if said is not None:
                self._view = None
                self.transport.write(HEAD % len(said) + said)
                self.on_response_complete()
                seconds = time.perf_counter() - began
                self.app.metrics.count(ROUTE, 200, seconds)
                return
        if self._view is not None:
            self._go_generally()
        super().on_message_complete()

    def shutdown(self) -> None:
        """Begin to end: a request that was begun is still answered."""
        if self._view is not None:
            self._go_generally()
        super().shutdown()

    def _go_generally(self) -> None:
        self._view = None
        super().on_headers_complete()
        if self._body:
            super().on_body(self._body)


def ask(
    worker: Worker, view: View, headers: list[tuple[bytes, bytes]], body: bytes
) -> bytes | None:
    """Return the answer, or None if anything is not as usual."""
    said = dict(headers)
    key = worker.keyring.of(said.get(b"authorization"))
    if (
        key is None
        or body not in USUAL
        or not (view.plain and worker.fresh)
        or b"idempotency-key" in said
        or len(said) < len(headers)  # one twice
    ):
        return None
    try:
        key.check("ask", view.id)
        key.spend(1)
    except Problem:
        return None
    row = view.stock.take()
    if row is None:
        return None
    try:
        return render(view, [row])
    except KeyError:  # an arm that has just joined
        view.stock.rows.appendleft(row)
        return None

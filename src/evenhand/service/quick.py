"""The requests that come most, an ask for one row and a tell, answered by the protocol itself.

They need no scope, no task and one write to the socket: about half of what the server alone
spends on a request that does nothing. Whatever is not as usual about a request (no key, another
body, no row at hand) goes the general way, through the application, as if this were not here.
"""

import asyncio
import logging
import time
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.service.asking import render, sorted_out
from evenhand.service.keys import Key
from evenhand.service.messages import DECODERS, Tell
from evenhand.service.problems import Problem
from evenhand.service.requests import limited
from evenhand.service.web import AWAY
from evenhand.service.worker import View, Worker

ASK, TELL = "/v1/experiments/*/ask", "/v1/experiments/*/tell"
USUAL = frozenset((b"", b"{}", b'{"n":1}', b'{"n": 1}'))  # bodies that ask for one row
LONGEST = {ASK: 16, TELL: 1 << 15}  # bytes of a body that may be usual
OK = b"200 OK\r\ncontent-type: application/json\r\n"
FAILED = b"503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n"
HEAD = b"HTTP/1.1 %scache-control: no-store\r\ncontent-length: %d\r\n%s\r\n"
LAST = b"connection: close\r\n"
log = logging.getLogger(__name__)
Headers = list[tuple[bytes, bytes]]
Recorded = asyncio.Future[list[str]]


class Waiting:
    """A tell that is not yet on disk, as the server sees it: a request that is not answered."""

    def __init__(self) -> None:
        self.response_complete = False
        self.keep_alive = True  # until the server is to end
        self.message_event = self  # set when the connection is lost: nobody waits for that

    def set(self) -> None:
        """Do nothing."""


class Quick(HttpToolsProtocol):
    """A connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._view: View | None = None  # of a request that is not yet known to be unusual
        self._route, self._body = "", b""

    def on_headers_complete(self) -> None:
        """Begin a request."""
        worker, route = self.app.worker, ASK
        view = worker.asked.get(self.url)
        if view is None:
            view, route = worker.told.get(self.url), TELL
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
            self._view, self._route, self._body = view, route, b""

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        if self._view is None:
            super().on_body(body)
            return
        self._body += body
        if len(self._body) > LONGEST[self._route]:
            self._go_generally()

    def on_message_complete(self) -> None:
        """Answer a request, or let the application do so."""
        if self._view is not None and not self.flow.write_paused:
            answer = self._ask if self._route == ASK else self._tell
            if answer(self._view):
                self._view, self._body = None, b""
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

    def _ask(self, view: View) -> bool:
        """Answer an ask; return whether that was done."""
        began = time.perf_counter()
        said = ask(self.app.worker, view, self.headers, self._body)
        if said is None:
            return False
        self.transport.write(HEAD % (OK, len(said), b"") + said)
        self.on_response_complete()
        self.app.metrics.count(ASK, 200, time.perf_counter() - began)
        return True

    def _tell(self, view: View) -> bool:
        """Have rewards recorded, and answer when they are; return whether that was begun."""
        began = time.perf_counter()
        begun = tell(self.app.worker, view, self.headers, self._body)
        if begun is None:
            return False
        words, recorded = begun
        end, cycle = limited(recorded), Waiting()
        self.cycle = cycle  # type: ignore[assignment]

        def answer(recorded: Recorded) -> None:
            end.cancel()
            status = self._answer(cycle, words, recorded)
            self.app.metrics.count(TELL, status, time.perf_counter() - began)

        recorded.add_done_callback(answer)
        return True

    def _answer(self, cycle: Waiting, words: list[str], recorded: Recorded) -> int:
        """Answer a tell; return the status."""
        error = recorded.exception()
        if error is None:
            found = iter(recorded.result())
            said = msgspec.json.encode({"results": [word or next(found) for word in words]})
        else:
            log.warning("unavailable", extra={"route": TELL, "error": str(error)})
            said = AWAY.body()
        cycle.response_complete = True
        if not self.transport.is_closing():
            head = OK if error is None else FAILED
            last = b"" if cycle.keep_alive else LAST
            self.transport.write(HEAD % (head, len(said), last) + said)
            if last:
                self.transport.close()
        self.on_response_complete()
        return 200 if error is None else 503


def ask(worker: Worker, view: View, headers: Headers, body: bytes) -> bytes | None:
    """Return the answer, or None if anything is not as usual."""
    if body not in USUAL or not (view.plain and worker.fresh):
        return None
    key = usual_key(worker, view, headers)
    if key is None or not spent(key, 1):
        return None
    row = view.stock.take()
    if row is None:
        return None
    try:
        return render(view, [row])
    except KeyError:  # an arm that has just joined
        view.stock.rows.appendleft(row)
        return None


def tell(
    worker: Worker, view: View, headers: Headers, body: bytes
) -> tuple[list[str], Recorded] | None:
    """Return words, empty where the database will have them; None if anything is not as usual."""
    key = usual_key(worker, view, headers)
    if key is None or view.archived:
        return None
    try:
        given = DECODERS[Tell].decode(body).tells
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not spent(key, len(given)):
        return None
    words, told = sorted_out(view, given)
    if told:
        return words, worker.committer.tell(told)
    nothing: Recorded = worker.loop.create_future()
    nothing.set_result([])
    return words, nothing


def usual_key(worker: Worker, view: View, headers: Headers) -> Key | None:
    """Return the key of a request if its headers are as usual and it may ask and tell here."""
    said = dict(headers)
    key = worker.keyring.of(said.get(b"authorization"))
    if key is None or b"idempotency-key" in said or len(said) < len(headers):  # one twice
        return None
    try:
        key.check("ask", view.id)
    except Problem:
        return None
    return key


def spent(key: Key, rows: int) -> bool:
    """Count rows against a key's rate; return whether it has so many left."""
    try:
        key.spend(rows)
    except Problem:
        return False
    return True

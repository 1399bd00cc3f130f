"""The requests that come most, plain asks and tells, answered by the protocol itself.

They need no scope, no task and one write to the socket: less than what the server alone spends
on a request that does nothing. Whatever is not as usual about a request (no key, another
body, no row at hand) goes the general way, through the application, as if this were not here.
"""

import logging
import time
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec

from evenhand.service.asking import render, sorted_out
from evenhand.service.committer import Unavailable
from evenhand.service.connections import Guarded
from evenhand.service.keys import Key, bearer
from evenhand.service.messages import DECODERS, Ask, Tell
from evenhand.service.pace import PATIENCE
from evenhand.service.problems import Problem
from evenhand.service.requests import SLOW
from evenhand.service.stock import Drawn
from evenhand.service.tells import Told
from evenhand.service.web import AWAY
from evenhand.service.worker import View, Worker

ASK, TELL = "/v1/experiments/*/ask", "/v1/experiments/*/tell"
USUAL = frozenset((b"", b"{}", b'{"n":1}', b'{"n": 1}'))  # bodies that ask for one row
LONGEST = 1 << 15  # bytes of a body that may be usual
END = b"\r\n\r\n"  # of a head
HEADS = 32  # heads that a connection remembers, as lengths of bodies differ
HEAD_BYTES = 2048  # of one
OK = b"200 OK\r\ncontent-type: application/json\r\n"
FAILED = b"503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n"
HEAD = b"HTTP/1.1 %scache-control: no-store\r\ncontent-length: %d\r\n%s\r\n"
LAST = b"connection: close\r\n"
log = logging.getLogger(__name__)
Headers = list[tuple[bytes, bytes]]


class Head(NamedTuple):
    """The head of a request that was answered here, as it was understood."""

    url: bytes
    key: bytes  # hash of it
    length: int  # bytes of the body behind it


class Waiting:
    """A tell that is not yet on disk, as the server sees it: a request that is not answered."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.began = words, time.perf_counter()
        self.response_complete = False
        self.keep_alive = True  # until the server is to end
        self.message_event = self  # set when the connection is lost: nobody waits for that

    def set(self) -> None:
        """Do nothing."""


class Quick(Guarded):
    """A connection.

    Most clients send the same head again and again, to the byte. One that is known, with a body as
    long as it says and nothing else, need not be parsed again: the same bytes mean the same.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._holding = False  # a request that is not yet known to be unusual
        self._general = False  # whether all are to go the general way
        self._waiting: Waiting | None = None
        self._said: Headers = []
        self._body = b""
        self._heads: dict[bytes, Head] = {}
        self._last: Head | None = None  # of the last request that was answered here

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        if self.arriving:
            super().data_received(data)
            return
        head, end, body = data.partition(END)
        known = self._heads.get(head)
        if known and end and len(body) == known.length and self._free():
            if self._answer(known.url, known.key, body):
                return
            self._general = True
        self._last = None
        super().data_received(data)
        self._general = False
        if self._last and not self.arriving and body == self._body:  # nothing else was there
            self._remember(head, self._last)

    def _remember(self, head: bytes, meant: Head) -> None:
        if len(self._heads) >= HEADS:
            self._heads.clear()
        if len(head) <= HEAD_BYTES:
            self._heads[head] = meant

    def _free(self) -> bool:
        """Whether a request can be answered at once: none before it waits, and the client reads."""
        return not self.waits and not self.flow.write_paused

    def on_headers_complete(self) -> None:
        """End a head."""
        parser, worker = self.parser, self.app.worker
        self._said, self._body = self.headers, b""
        self._holding = (
            not self._general
            and (self.url in worker.asked or self.url in worker.told)
            and not (self.waits or self.expect_100_continue or parser.should_upgrade())
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and parser.get_method() == b"POST"
        )
        if self._holding:
            self.headers, self._unread = [], 0  # what comes behind the body counts for nothing
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body."""
        if not self._holding:
            super().on_body(body)
            return
        self._unread = 0
        self._body += body
        if len(self._body) > LONGEST:
            self._go_generally()

    def on_message_complete(self) -> None:
        """Answer a request, or let the application do so."""
        if self._holding and self._free():
            key = usual_key(self._said)
            if key is not None and self._answer(self.url, key, self._body):
                self._last = Head(self.url, key, len(self._body))
                self._holding = self.arriving = False
                self._unread = 0
                return
        if self._holding:
            self._go_generally()
        super().on_message_complete()

    def shutdown(self) -> None:
        """Begin to end: a request that was begun is still answered."""
        if self._holding:
            self._go_generally()
        super().shutdown()

    def look(self, now: float) -> None:
        """End what takes too long."""
        waiting = self._waiting
        if waiting is not None and time.perf_counter() - waiting.began > PATIENCE:
            self._recorded(waiting, SLOW)  # what the database does later does no harm
        super().look(now)

    def _go_generally(self) -> None:
        self._holding = False
        super().on_headers_complete()
        if self._body:
            super().on_body(self._body)

    def _answer(self, url: bytes, digest: bytes, body: bytes) -> bool:
        """Answer a request, or begin to; return whether that was done."""
        worker = self.app.worker
        view = worker.asked.get(url)
        if view is not None:
            key = allowed(worker, view, digest)
            return key is not None and self._ask(view, key, body)
        view = worker.told[url]
        key = allowed(worker, view, digest)
        return key is not None and self._tell(view, key, body)

    def _ask(self, view: View, key: Key, body: bytes) -> bool:
        """Answer an ask; return whether that was done."""
        began = time.perf_counter()
        said = ask(self.app.worker, view, key, body)
        if said is None:
            return False
        self.transport.write(HEAD % (OK, len(said), b"") + said)
        self.on_response_complete()
        self.app.metrics.count(ASK, 200, time.perf_counter() - began)
        return True

    def _tell(self, view: View, key: Key, body: bytes) -> bool:
        """Have rewards recorded, and answer when they are; return whether that was begun."""
        found = tell(view, key, body)
        if found is None:
            return False
        words, told = found
        self._waiting = cycle = Waiting(words)
        self.cycle = cycle  # type: ignore[assignment]
        if told:
            self.app.worker.committer.tell_then(told, partial(self._recorded, cycle))
        else:
            self._recorded(cycle, [])
        return True

    def _recorded(self, cycle: Waiting, result: list[str] | Unavailable) -> None:
        """Answer a tell, unless that has taken too long and was done."""
        if cycle.response_complete:
            return
        if isinstance(result, Unavailable):
            log.warning("unavailable", extra={"route": TELL, "error": str(result)})
            status, head, said = 503, FAILED, AWAY.body()
        else:
            found = iter(result)
            status, head = 200, OK
            said = msgspec.json.encode({"results": [word or next(found) for word in cycle.words]})
        cycle.response_complete, self._waiting = True, None
        if not self.transport.is_closing():
            last = b"" if cycle.keep_alive else LAST
            self.transport.write(HEAD % (head, len(said), last) + said)
            if last:
                self.transport.close()
        self.on_response_complete()
        self.app.metrics.count(TELL, status, time.perf_counter() - cycle.began)


def ask(worker: Worker, view: View, key: Key, body: bytes) -> bytes | None:
    """Return the answer, or None if anything is not as usual."""
    n, stock = 1 if body in USUAL else wanted(body), view.stock
    at_hand = 0 < n <= len(stock.rows)
    if not (at_hand and view.plain and worker.fresh and spent(key, n)):
        return None
    rows = list[Drawn]()
    while len(rows) < n and (row := stock.take()):
        rows.append(row)
    if len(rows) == n:
        with suppress(KeyError):  # an arm that has just joined
            return render(view, rows)
    stock.rows.extendleft(reversed(rows))
    stock.asked -= len(rows)
    key.give_back(n)
    return None


def wanted(body: bytes) -> int:
    """Return how many rows are asked for; 0 if that is not understood."""
    try:
        return DECODERS[Ask].decode(body).n
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0


def tell(view: View, key: Key, body: bytes) -> tuple[list[str], list[Told]] | None:
    """Return words, empty where the database will have them, and what it is to record.

    None if anything is not as usual.
    """
    if view.archived:
        return None
    try:
        given = DECODERS[Tell].decode(body).tells
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return sorted_out(view, given) if spent(key, len(given)) else None


def usual_key(headers: Headers) -> bytes | None:
    """Return the hash of the key of a request, if its headers are as usual."""
    said = dict(headers)
    if b"idempotency-key" in said or len(said) < len(headers):  # one twice
        return None
    return bearer(said.get(b"authorization"))


def allowed(worker: Worker, view: View, digest: bytes) -> Key | None:
    """Return a key, if it is valid and may ask and tell here."""
    key = worker.keyring.by_hash(digest)
    if key is None:
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

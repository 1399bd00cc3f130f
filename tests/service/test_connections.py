"""Requests as an attacker would send them: heads that are known, cut, doubled, endless or late."""

import asyncio
import socket
import time
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from evenhand.service import quick
from evenhand.service.connections import ARRIVAL, STUCK, TICKS, Server
from evenhand.service.quick import Quick
from tests.service.test_quick import Wire, request, sent


@pytest.fixture
def spy(monkeypatch):
    """A protocol on a wire, whose asks are answered by their number; what was parsed is counted."""
    view = SimpleNamespace(id=1, archived=False)
    app = SimpleNamespace(metrics=SimpleNamespace(count=lambda *_: None))
    key = SimpleNamespace(check=lambda *_: None)
    app.worker = SimpleNamespace(asked={b"/a": view}, told={})
    app.worker.keyring = SimpleNamespace(by_hash=lambda digest: key)
    rows = iter(range(100))
    monkeypatch.setattr(quick, "ask", lambda *_: b"row %d" % next(rows))

    def make():
        config = uvicorn.Config(
            app, interface="asgi3", log_config=None, access_log=False, ws="none", lifespan="off"
        )
        config.load()
        config.loaded_app = app
        protocol, wire = Quick(config, ServerState(), {}), Wire()
        protocol.connection_made(wire)
        return protocol, wire

    return make


HEAD = b"POST /a HTTP/1.1\r\nauthorization: Bearer k"
ASKED = ("should_upgrade", "should_keep_alive", "get_method", "get_http_version")
ONE = HEAD + b"\r\ncontent-length: 2\r\n\r\n{}"


def said(wire):
    rows, wire.said = [part[:5] for part in wire.said.split(b"row ")[1:]], b""
    return [int(row.split(b"H")[0]) for row in rows]


def test_a_known_head_means_what_it_meant(spy):
    async def run():
        protocol, wire = spy()
        parsed = []
        real = protocol.parser
        protocol.parser = SimpleNamespace(
            feed_data=lambda data: (parsed.append(data), real.feed_data(data)),
            **{
                name: getattr(real, name)
                for name in (
                    "should_upgrade",
                    "should_keep_alive",
                    "get_method",
                    "get_http_version",
                )
            },
        )
        for i in range(4):
            protocol.data_received(ONE)
            assert said(wire) == [i]
        assert parsed == [ONE]  # once
        protocol.data_received(ONE + ONE)
        assert said(wire) == [4, 5]
        protocol.data_received(ONE[:-1])
        assert said(wire) == []
        protocol.data_received(b"}" + ONE)
        assert said(wire) == [6, 7]
        assert parsed == [ONE, ONE + ONE, ONE[:-1], b"}" + ONE]
        protocol.data_received(ONE)
        assert said(wire) == [8]
        assert len(parsed) == 4
        bare = HEAD + b"\r\n\r\n"
        for i in (9, 10):
            protocol.data_received(bare)
            assert said(wire) == [i]
        assert len(parsed) == 5
        protocol.data_received(HEAD)  # a known head that does not end here
        assert said(wire) == []
        protocol.data_received(b"x\r\n\r\n")
        assert said(wire) == [11]
        assert parsed[5:] == [HEAD, b"x\r\n\r\n"]

    asyncio.run(run())


def test_heads_are_forgotten(spy):
    async def run():
        protocol, wire = spy()
        for i in range(90):
            protocol.data_received(HEAD + b"\r\nx: %d\r\n\r\n" % i)
            assert said(wire) == [i]
            assert 1 <= len(protocol._heads) <= quick.HEADS
        protocol._heads.clear()
        protocol.data_received(HEAD + b"\r\nx: " + b"y" * quick.HEAD_BYTES + b"\r\n\r\n")
        assert said(wire) == [90]
        assert protocol._heads == {}

    asyncio.run(run())


def test_chunks_are_never_taken_for_a_body(spy):
    async def run():
        protocol, wire = spy()
        head = HEAD + b"\r\ntransfer-encoding: chunked\r\n\r\n"
        for i in range(3):
            protocol.data_received(head + b"2\r\n{}\r\n0\r\n\r\n")
            assert said(wire) == [i]
        for i in range(3, 6):
            protocol.data_received(head + b"0\r\n\r\n")
            assert said(wire) == [i]
        assert protocol._heads == {}

    asyncio.run(run())


def test_what_stays_open_for_too_long_is_ended(spy):
    async def run():
        def looked(protocol, after):
            protocol.look(protocol.loop.time() + after)
            return protocol.transport.closed

        protocol, wire = spy()  # that sends nothing
        assert not looked(protocol, protocol.timeout_keep_alive - 1)
        assert looked(protocol, protocol.timeout_keep_alive + 1)
        for part in (b"P", HEAD, ONE[:-1]):
            protocol, wire = spy()
            protocol.data_received(part)
            assert not looked(protocol, ARRIVAL - 1)
            assert looked(protocol, ARRIVAL + 1)
        protocol, wire = spy()
        for _ in range(2):
            protocol.data_received(ONE)
            assert not looked(protocol, protocol.timeout_keep_alive - 1)
        assert looked(protocol, protocol.timeout_keep_alive + 1)
        protocol, wire = spy()
        wire.abort = wire.close
        protocol.pause_writing()
        assert not looked(protocol, STUCK - 1)
        assert looked(protocol, STUCK + 1)

    asyncio.run(run())


@pytest.mark.parametrize(
    "endless",
    [
        HEAD + b"\r\nx: " + b"y" * 30_000,
        b"POST /" + b"y" * 40_000,
        HEAD + b"\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * 30_000,
        HEAD + b"\r\ntransfer-encoding: chunked\r\n\r\n2;" + b"y" * 30_000,
    ],
)
def test_heads_have_an_end(spy, endless):
    async def run():
        protocol, wire = spy()
        protocol.data_received(endless)
        assert not wire.closed
        for _ in range(3):
            protocol.data_received(b"y" * 30_000)
        assert wire.closed
        assert wire.said.startswith(b"HTTP/1.1 431 ")

    asyncio.run(run())


def test_the_server_looks_after_its_connections():
    server, looked = Server(uvicorn.Config(None)), []
    server.server_state.connections = [SimpleNamespace(look=looked.append)]

    async def run():
        for tick in range(1, 21):
            assert not await server.on_tick(tick)

    asyncio.run(run())
    assert len(looked) == 20 // TICKS


def whole(s):
    """Read one answer."""
    found = b""
    while not found.endswith(b"}"):
        part = s.recv(65536)
        assert part
        found += part
    return found


def test_what_two_readers_could_understand_differently_is_refused(service, q):
    one = request(service, q, b"{}")
    for wrong in (
        one.replace(b"Content-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked"),
        one.replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 3"),
        one.replace(b"Content-Length: 2", b"Content-Length: +2"),
        one.replace(b"Content-Length: 2", b"Content-Length : 2"),
        one.replace(b"Host: x\r\n", b"Host: x\n X: y\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as s:
            s.sendall(one)
            assert whole(s).startswith(b"HTTP/1.1 200 ")
            s.sendall(wrong)
            answer = s.recv(65536)
            assert answer.startswith(b"HTTP/1.1 400 "), (wrong, answer)
            assert s.recv(65536) == b""


def test_a_key_behind_the_body_opens_nothing(service, q):
    key = f"Authorization: Bearer {service.key}\r\n".encode()
    head = f"POST {q} HTTP/1.1\r\nHost: x\r\n".encode()
    chunks = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    assert sent(service, head + key + chunks + b"\r\n")[0][0] == 200
    assert sent(service, head + key + chunks + b"Idempotency-Key: a\r\n\r\n")[0][0] == 200
    for start in (head, head.replace(b" HTTP", b"?a=1 HTTP")):  # quickly, and the general way
        assert sent(service, start + key + chunks + b"\r\n")[0][0] == 200
        assert sent(service, start + chunks + key + b"\r\n")[0][0] == 401


def test_an_old_client_is_told_that_its_connection_ends(service, q):
    message = request(service, q, b"{}", "Connection: keep-alive", version="1.0")
    ((status, names, _),) = sent(service, message)
    assert (status, names[b"connection"]) == (200, b"close")


def test_a_known_head_with_a_key_that_was_revoked(service, q):
    status, made = service.call("POST", "/v1/keys", {"name": "short", "scopes": ["ask"]})
    assert status == 201
    one, found = request(service, q, b"{}", key=made["key"]), b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as s:
        for _ in range(3):
            s.sendall(one)
            found = whole(s)
            assert found.startswith(b"HTTP/1.1 200 ")
        assert service.call("DELETE", f"/v1/keys/{made['id']}")[0] == 200
        end = time.monotonic() + 1.0
        while found.startswith(b"HTTP/1.1 200 ") and time.monotonic() < end + 1.0:
            time.sleep(0.02)
            s.sendall(one)
            found = whole(s)
        assert found.startswith(b"HTTP/1.1 401 ")
        assert time.monotonic() < end

"""Asks and tells that the protocol answers itself, and those that it leaves to the application."""

import asyncio
import json
import socket
import time
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from evenhand.service import keys, quick
from evenhand.service.committer import Unavailable
from evenhand.service.metrics import Metrics
from evenhand.service.pace import PATIENCE
from evenhand.service.quick import Quick
from evenhand.service.receipts import Signer
from evenhand.service.stock import Drawn, Stock

QUICK = 'evenhand_requests_total{route="/v1/experiments/*/ask",status="200"}'


def request(service, path, body, *headers, method="POST", version="1.1", key=None):
    lines = [
        f"{method} {path} HTTP/{version}",
        "Host: x",
        f"Authorization: Bearer {key or service.key}",
    ]
    lines += [*headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sent(service, *parts, wait=0.05, n=1):
    """Send bytes in parts on one connection; return the first n answers."""
    answers, said = [], b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as s:
        for part in parts:
            s.sendall(part)
            time.sleep(wait if len(parts) > 1 else 0.0)
        while len(answers) < n:
            part = s.recv(65536)
            assert part, (answers, said)
            said += part
            while b"\r\n\r\n" in said:
                head, _, rest = said.partition(b"\r\n\r\n")
                names = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
                length = int(names[b"content-length"])
                if len(rest) < length:
                    break
                answers.append((int(head.split()[1]), names, json.loads(rest[:length])))
                said = rest[length:]
    assert not said
    return answers


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"n":1}', b'{"n": 1}', b'{ "n" : 1.0 }', b'{"n":3}']
)
def test_both_ways_answer_alike(service, q, body):
    ((status, names, said),) = sent(service, request(service, q, body))
    assert status == 200
    assert names[b"content-type"] == b"application/json"
    assert names[b"cache-control"] == b"no-store"
    assert len(said["decisions"]) == (3 if b"3" in body else 1)
    for row in said["decisions"]:
        assert row.keys() == {"id", "arms", "learns"}
        told = {"tells": [{"id": row["id"], "reward": 1}]}
        words = service.call("POST", q.replace("ask", "tell"), told)[1]["results"]
        assert words == ["accepted" if row["learns"] else "not wanted"]


def test_requests_in_pieces_and_many_at_once(service, q):
    one, long = request(service, q, b'{"n":1}'), request(service, q, b'{"n":1' + b" " * 40 + b"}")
    whole = one + long + one + one + request(service, q, b'{"n":2}') + one
    for n, *parts in ((6, whole), (6, whole[:50], whole[50:]), (1, one[:-3], one[-3:]),
                      (1, long[:-30], long[-30:])):  # fmt: skip
        answers = sent(service, *parts, n=n)
        assert [status for status, _, _ in answers] == [200] * n
        ids = [row["id"] for _, _, said in answers for row in said["decisions"]]
        assert len(set(ids)) == len(ids)
    pieces = [one[i : i + 1] for i in range(len(one))]
    ((status, _, _),) = sent(service, *pieces, wait=0.0)
    assert status == 200


def test_what_is_unusual_goes_the_general_way(service, q):
    for message, status in (
        (request(service, q, b'{"n":1}', key="eh_wrong"), 401),
        (request(service, q, b'{"n":0}'), 422),
        (request(service, q, b'{"n":'), 400),
        (request(service, q, b"x" * 100), 400),
        (request(service, q, b"", method="GET"), 405),
        (request(service, q, b"{}", "Connection: close"), 200),
        (request(service, q, b"{}", version="1.0"), 200),
        (request(service, q + "?a=1", b"{}"), 200),
        (request(service, q, b"{}", "Connection: Upgrade", "Upgrade: websocket"), 200),
        (request(service, q, b"{}", "Authorization: Bearer x"), 200),  # twice: the first counts
    ):
        found = sent(service, message)
        assert [code for code, _, _ in found] == [status], (message, found)
    same = [sent(service, request(service, q, b"{}", "Idempotency-Key: k"))[0][2] for _ in range(2)]
    assert same[0] == same[1]


def test_they_are_counted_and_kept_to_the_rate(service, q):
    def counted():
        text = service.call("GET", "/metrics")[1].decode()
        return next(int(line.split()[-1]) for line in text.splitlines() if line.startswith(QUICK))

    before = counted()
    sent(service, request(service, q, b"{}") * 5, n=5)
    assert counted() == before + 5


def test_a_paused_experiment_gives_no_rows(service, q):
    x = q.removesuffix("/ask")
    assert service.call("POST", f"{x}/pause")[0] == 200
    assert sent(service, request(service, q, b"{}"))[0][0] == 409
    assert service.call("POST", f"{x}/resume")[0] == 200
    assert sent(service, request(service, q, b"{}"))[0][0] == 200


def tells(*rows):
    return json.dumps({"tells": [{"id": i, "reward": y} for i, y in rows]}).encode()


def test_tells_in_pieces_and_many_at_once(service, q):
    t, rows = q.replace("ask", "tell"), service.call("POST", q, {"n": 4})[1]["decisions"]
    one, two, three, four = (row["id"] for row in rows)
    word = ["accepted" if row["learns"] else "not wanted" for row in rows]
    first = request(service, t, tells((one, 1)))
    whole = (
        request(service, t, tells((two, 1), ("no", 1), (three, 2)))
        + request(service, q, b"{}")
        + request(service, t, tells(("no", 0)))
        + request(service, t, tells((four, None)) + b" " * 40_000)
    )
    answers = sent(service, first[:-3], first[-3:] + whole, n=5)
    assert [status for status, _, _ in answers] == [200] * 5
    said = [content.get("results") for _, _, content in answers]
    outside = "refused" if rows[2]["learns"] else "not wanted"
    assert said == [[word[0]], [word[1], "unknown", outside], None, ["unknown"], [word[3]]]
    general = sent(service, request(service, t + "?a=1", tells((one, 1))))[0]
    again = sent(service, request(service, t, tells((one, 1))))[0]
    assert general == again
    for body, status in ((b"{}", 422), (b"{", 400), (tells(), 422), (b"x" * 40_000, 400)):
        assert sent(service, request(service, t, body))[0][0] == status
    assert sent(service, request(service, t, tells((one, 1)), key="eh_wrong"))[0][0] == 401


class Wire:
    """A transport that notes what is written."""

    def __init__(self):
        self.said, self.closed = b"", False

    def write(self, data):
        assert not self.closed
        self.said += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def resume_reading(self):
        pass

    def get_extra_info(self, name, default=None):
        return default


async def told(*between, repeated=1):
    """Send a tell, do something, have it recorded, or not; return the wire and the metrics."""
    waiters = []
    view = SimpleNamespace(id=1, archived=False, rewards={"low": 0.0, "high": 1.0})
    view.signer = Signer(1, ["ab" * 32])
    key = keys.Key(1, "k", frozenset(["ask"]), None, None, 100.0, 100.0)
    worker = SimpleNamespace(asked={}, told={b"/t": view}, loop=asyncio.get_running_loop())
    worker.keyring = SimpleNamespace(by_hash=lambda digest: key)
    worker.committer = SimpleNamespace(tell_then=lambda told, done: waiters.append(done))
    app = SimpleNamespace(worker=worker, metrics=Metrics())
    config = uvicorn.Config(
        app, interface="asgi3", log_config=None, access_log=False, ws="none", proxy_headers=False
    )
    config.load()
    protocol, wire = Quick(config, ServerState(), {}), Wire()
    protocol.connection_made(wire)
    body = tells((view.signer.sign(0, 1), 1.0))
    head = b"POST /t HTTP/1.1\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n" % len(body)
    for _ in range(repeated):
        wire.said = b""
        protocol.data_received(head + body)
        assert not wire.said  # nothing is acknowledged before it is recorded
        assert len(waiters) == 1
        done = waiters.pop()
        if _ + 1 < repeated:
            done(["accepted"])
            assert wire.said.endswith(b'{"results":["accepted"]}')
    for act in between:
        act(protocol, done)
    return wire, app.metrics.requests


def recorded(protocol, done):
    done(["accepted"])


def failed(protocol, done):
    done(Unavailable("away"))


def late(protocol, done):
    protocol.look(protocol.loop.time())
    assert not protocol.transport.said
    protocol.cycle.began -= PATIENCE
    protocol.transport.pause_reading = lambda: None
    protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")  # another request behind it
    protocol._start_asgi_task = lambda *_: None
    protocol.look(protocol.loop.time())


def lost(protocol, done):
    protocol.transport.close()
    protocol.connection_lost(None)


def test_a_tell_is_answered_when_it_is_recorded_even_at_the_end():
    route = "/v1/experiments/*/tell"
    wire, counted = asyncio.run(told(recorded))
    assert wire.said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert wire.said.endswith(b'\r\n\r\n{"results":["accepted"]}')
    assert not wire.closed
    assert counted == {(route, 200): 1}
    wire, _ = asyncio.run(told(lambda protocol, _: protocol.shutdown(), recorded))
    assert b"\r\nconnection: close\r\n" in wire.said
    assert wire.said.endswith(b'{"results":["accepted"]}')
    assert wire.closed
    wire, counted = asyncio.run(told(failed))
    assert wire.said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nretry-after: 1\r\n" in wire.said
    assert b"sending the same again is safe" in wire.said
    assert not wire.closed
    assert counted == {(route, 503): 1}
    wire, counted = asyncio.run(told(late, recorded))
    assert wire.said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert wire.said.count(b"HTTP/1.1") == 1  # and no word of what came too late
    assert counted == {(route, 503): 1}
    wire, counted = asyncio.run(told(lost, recorded))
    assert wire.said == b""
    assert counted == {(route, 200): 1}
    wire, counted = asyncio.run(told(recorded, repeated=3))  # by a head that is known
    assert wire.said.endswith(b'{"results":["accepted"]}')
    assert counted == {(route, 200): 3}


@pytest.mark.parametrize(
    ("n", "stale", "names", "answered"),
    [(4, 0, 9, True), (5, 0, 9, True), (6, 0, 9, False), (5, 1, 9, False), (4, 0, 3, False)],
)
def test_many_rows_are_all_at_hand_or_stay_in_stock(n, stale, names, answered):
    """Not where rows are too few, too old, or hold an arm that is not known here."""
    rows = [Drawn(7 - (i < stale), i, [i], learns=True) for i in range(5)]
    stock = Stock(1, "w", None, None, floor=7, _task=object())
    stock.rows.extend(rows)
    encoded = {arm: b'"%d"' % arm for arm in range(names)}
    view = SimpleNamespace(stock=stock, plain=True, signer=Signer(1, ["ab" * 32]), encoded=encoded)
    counted = []
    key = SimpleNamespace(spend=counted.append, give_back=lambda n: counted.append(-n))
    said = quick.ask(SimpleNamespace(fresh=True), view, key, b'{"n":%d}' % n)
    if answered:
        shown = [row["arms"] for row in json.loads(said)["decisions"]]
        assert shown == [[str(i)] for i in range(n)]
        assert (list(stock.rows), stock.asked) == (rows[n:], n)
    else:
        assert said is None
        assert (list(stock.rows), stock.asked) == (rows[stale:], 0)
    assert sum(counted) == (n if answered else 0)

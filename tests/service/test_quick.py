"""Asks that the protocol answers itself, and those that it leaves to the application."""

import json
import socket
import time

import pytest

QUICK = 'evenhand_requests_total{route="/v1/experiments/*/ask",status="200"}'


@pytest.fixture(scope="module")
def q(service):
    new = {"name": "q", "arms": ["a", "b", "c", "d"], "k": 2, "seed": 2}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    path = "/v1/experiments/q/ask"
    end = time.monotonic() + 20
    while service.call("POST", path, {})[0] != 200 and time.monotonic() < end:
        time.sleep(0.05)
    return path


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

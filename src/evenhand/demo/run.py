"""The processes of a demonstration: a service and its traffic, all of which end with this one."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenhand.account import Account
from evenhand.demo.client import Client, Unreachable
from evenhand.demo.rivals import Outcome
from evenhand.demo.shop import PLACES, SELLERS, TERMS, Shop
from evenhand.service.database import database
from evenhand.typing import Floats

TRAFFIC = 3  # processes
START = 180.0  # seconds until a service must be ready: it may have to compile first
GRACE = 0.5  # seconds that processes have to end


class Point(NamedTuple):
    """The state of things at one moment.

    Attributes
    ----------
    at, queries, bought
        Seconds since 1970, and queries and purchases so far.
    given
        (m,) places handed out so far, those of a query summing to 1.
    due, shares
        (m,) shares of all places that are truly due, and in force by the service; nan if unknown.
    """

    at: float
    queries: int
    bought: int
    given: Floats
    due: Floats
    shares: Floats

    @property
    def off(self) -> float:
        """Share of all places that are not where they are truly due; nan if unknown."""
        return 0.5 * float(np.abs(self.shares - self.due).sum())


@dataclass
class Demo:
    """A service with a simulated shop.

    Attributes
    ----------
    folder
        Where its database is.
    points
        What was seen, a point per second.
    events
        Who joined and left: seconds since 1970, what, and the seller's name.
    """

    folder: Path
    port: int
    rate: float
    shop: Shop = field(default_factory=Shop)
    points: list[Point] = field(default_factory=list)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = self.port or _free_port()
        self.queries = self.bought = self.unlearnt = 0
        self.given = np.zeros(self.shop.world.m)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where the service is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        """The service's database."""
        return self.folder / "evenhand.db"

    def start(self, waiting: Any) -> None:
        """Start the service and make the experiment; call ``waiting`` until it is ready."""
        log = (self.folder / "service.log").open("ab")
        command = ["evenhand.demo.served", str(self.database), str(self.port)]
        service = self._start(command, stdout=log, stderr=log)
        log.close()
        end = time.monotonic() + START
        while not self._ready():
            waiting()
            if service.poll() is not None or time.monotonic() > end:
                said = (self.folder / "service.log").read_text()[-400:]
                raise RuntimeError(f"the service did not start; the end of its log: {said}")
            time.sleep(0.1)
        key = (self.folder / "evenhand.key").read_text().strip()
        self.client = Client(self.url, key, patience=10.0)
        self.quick = Client(self.url, key, patience=0.0, timeout=0.5).experiment("shop")
        self.reader = self.client.call("POST", "/v1/keys", {"name": "demo", "scopes": ["read"]})
        names = self.shop.names[:SELLERS]
        self.experiment = self.client.create("shop", names, PLACES, seed=1)
        self.experiment.change("terms", terms=TERMS)

    def send_traffic(self) -> None:
        """Start the processes that ask and tell."""
        key = (self.folder / "evenhand.key").read_text().strip()
        for i in range(TRAFFIC):
            command = ["evenhand.demo.traffic", self.url]
            command += ["--seed", str(i), "--rate", str(self.rate / TRAFFIC)]
            process = self._start(command, stdout=subprocess.PIPE, EVENHAND_DEMO_KEY=key)
            threading.Thread(target=self._listen, args=(process,), daemon=True).start()

    def step(self) -> None:
        """Tell the world's clock to all, let sellers come and go, and note how things stand."""
        with self._lock:
            now, given, bought = self.queries, self.given.copy(), self.bought
        before = self.points[-1].queries if self.points else 0
        for change in self.shop.changes(before, now):
            call = {"join": "add", "leave": "retire"}[change.what]
            arms = [self.shop.names[arm] for arm in change.arms]
            with contextlib.suppress(Unreachable):
                self.experiment.change(call, arms=arms)
                self.events += [(time.time(), change.what, name) for name in arms]
        for process in self.processes[1:]:
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.write(b"%d\n" % now)
                process.stdin.flush()
        point = Point(time.time(), now, bought, given, self.shop.due(now), self._shares())
        self.points.append(point)

    def account(self) -> Account | None:
        """What the service knows of the sellers; None if there is nothing to show yet."""
        if not self.points or not self.points[-1].queries:
            return None
        c = database(str(self.database)).connect()
        try:
            ((data,),) = c.execute("select data from latest")
            names: dict[int, str] = dict(c.execute("select id, name from arms"))
        finally:
            c.close()
        return Account.from_json(json.loads(bytes(data))).named(names)

    def outcome(self) -> Outcome:
        """How the service has done, to be compared with other rules."""
        end = self.points[-1]
        last = next(p for p in self.points if p.queries >= 2 * end.queries // 3)
        within = [p.due for p in self.points if p.queries >= last.queries]
        given, due = end.given - last.given, np.mean(within, axis=0)
        words = "the service as it has just run, shares by merit"
        return Outcome.of("Evenhand", words, given / given.sum(), due, end.bought / end.queries)

    def stop(self) -> None:
        """End all processes: traffic first, then the service, which writes what it knows."""
        for process in reversed(self.processes):
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()  # they end with it
        end = time.monotonic() + GRACE
        for process in self.processes:
            try:
                process.wait(max(0.05, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                # its session holds its own children, and nobody else
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, command: list[str], **how: Any) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own: Ctrl-C reaches this one alone."""
        names = [name for name in how if name.isupper()]
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.PIPE,
            env=os.environ | {name: how.pop(name) for name in names},
            start_new_session=True,
            **how,
        )
        self.processes.append(process)
        return process

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        number = {name: i for i, name in enumerate(self.shop.names)}
        for line in process.stdout:
            said = json.loads(line)
            with self._lock:
                self.queries += said["queries"]
                self.bought += said["bought"]
                self.unlearnt += said["unlearnt"]
                for name, places in said["given"].items():
                    self.given[number[name]] += places

    def _ready(self) -> bool:
        try:
            with Client(self.url, "none", patience=0.0, timeout=0.3) as client:
                client.call("GET", "/readyz")
        except Unreachable:
            return False
        return True

    def _shares(self) -> Floats:
        """Shares in force, by seller; nan where the service has said nothing yet."""
        shares = np.zeros(self.shop.world.m)
        number = {name: i for i, name in enumerate(self.shop.names)}
        try:
            for one in self.quick.policy()["arms"]:
                shares[number[one["arm"]]] = one["due"] / PLACES
        except (Unreachable, ValueError):
            return np.full(self.shop.world.m, np.nan)
        return shares


def _free_port() -> int:
    with socket.socket() as any_one:
        any_one.bind(("127.0.0.1", 0))
        port: int = any_one.getsockname()[1]
        return port

"""What a web worker knows: the experiments, their stocks, the keys; looked at again and again."""

import asyncio
import contextlib
import json
import logging
import os
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from evenhand.service import keys
from evenhand.service.committer import Committer, Unavailable
from evenhand.service.database import Connection, Database
from evenhand.service.keys import Keyring
from evenhand.service.pace import POLL, STALE
from evenhand.service.problems import Problem
from evenhand.service.readers import Reader
from evenhand.service.receipts import Signer
from evenhand.service.stock import Stock

Arms = list[tuple[int, str | None, bool, bool]]
log = logging.getLogger(__name__)


@dataclass
class View:
    """An experiment as this worker sees it."""

    id: int
    name: str
    config: dict[str, Any]
    rewards: dict[str, Any]
    created: float
    signer: Signer
    stock: Stock
    version: int = 0
    paused: bool = False
    archived: bool = False
    plain: bool = False  # rows are handed out, and nothing is written when they are
    broken: str | None = None
    oldest: int = 0
    arms: Arms = field(default_factory=list)
    names: dict[int, str | None] = field(default_factory=dict)  # of all arms ever, by id
    encoded: dict[int, bytes] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)  # ids of arms, by name

    def known(self, arms: Arms) -> None:
        """Take over the arms: their ids, names, whether they left and whether they are paused."""
        self.arms, self.names = arms, {arm: name for arm, name, _, _ in arms}
        self.encoded = {arm: msgspec.json.encode(self.called(arm)) for arm in self.names}
        self.columns = {name: arm for arm, name, left, _ in arms if name and not left}

    def called(self, arm: int) -> str:
        """Name of an arm, or what stands for one that was erased."""
        return self.names.get(arm) or f"#{arm}"


class Worker:
    """State of one web process."""

    def __init__(self, source: Database, rate: float) -> None:
        self.source = source
        self.name = f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.keyring = Keyring(rate)
        self.views: dict[str, View] = {}
        self.reports: dict[int, Any] = {}  # as pages read them last, by experiment
        self.asked: dict[bytes, View] = {}  # by the paths where they are asked
        self.told: dict[bytes, View] = {}  # and told
        self.polled = float("-inf")
        self._tasks: list[asyncio.Task[None]] = []
        self._again: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the database and look for the first time."""
        self.loop = asyncio.get_running_loop()
        self.committer = Committer(self.source, self.loop)
        self.reader = Reader(self.source)
        self.polls = Reader(self.source)  # so that long reads do not make rows stale
        while True:
            try:
                await self.poll()
                break
            except Unavailable as error:
                log.warning("database", extra={"error": str(error)})
                await asyncio.sleep(0.5)
        self._tasks = [asyncio.create_task(f()) for f in (self._poll_on, self._plans, self._rates)]

    async def stop(self) -> None:
        """Commit what is under way and close."""
        for task in self._tasks:
            task.cancel()
        await asyncio.to_thread(self.committer.stop)
        self.reader.stop()
        self.polls.stop()

    @property
    def fresh(self) -> bool:
        """Whether rows may be handed out that others may have given up since the last look."""
        return self.loop.time() - self.polled < STALE

    def view(self, name: str) -> View:
        """Return an experiment by its name."""
        found = self.views.get(name)
        if found is None:
            raise Problem(404, f"there must be an experiment of that name, got {name[:80]!r}")
        return found

    async def poll(self) -> None:
        """Look at what changed."""
        since = self.loop.time()
        versions = {view.id: view.version for view in self.views.values()}
        found, tokens = await self.polls.do(partial(look, versions=versions))
        self.keyring.take(tokens)
        for row, arms in found:
            self._take(row, arms)
        self.polled = since

    async def look_again(self) -> None:
        """Look soon; all who wait look together, so that strangers cannot make it work."""
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._poll_soon())
        await asyncio.shield(self._again)

    async def _poll_soon(self) -> None:
        await asyncio.sleep(self.polled + POLL / 4 - self.loop.time())
        with contextlib.suppress(Unavailable):
            await self.poll()

    def _take(self, row: tuple[Any, ...], arms: Arms) -> None:
        number, name, config, rewards, secrets, created, archived, paused, *rest = row
        version, floor, oldest, broken = rest
        view = self.views.get(name)
        if view is None:
            stock = Stock(number, self.name, self.committer, self.reader)
            signer = Signer(number, json.loads(secrets))
            said = json.loads(config), json.loads(rewards)
            view = self.views[name] = View(number, name, *said, created, signer, stock)
        view.version, view.paused, view.archived = version, bool(paused), archived is not None
        view.signer = Signer(number, json.loads(secrets))
        view.oldest, view.broken, view.stock.floor = oldest, broken, floor
        activation = view.rewards.get("activation")
        view.plain = not (paused or view.archived or activation == "ask")
        view.known(arms)
        self.asked[f"/v1/experiments/{name}/ask".encode()] = view
        self.told[f"/v1/experiments/{name}/tell".encode()] = view

    async def _poll_on(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            try:
                await self.poll()
            except Unavailable as error:
                log.warning("database", extra={"error": str(error)})

    async def _plans(self) -> None:
        """Keep the newest plan of each experiment at hand, for when the database is away."""
        while True:
            try:
                for view in list(self.views.values()):
                    await view.stock.learn_newest()
                    await view.stock.own_up()
            except Unavailable:
                pass
            await asyncio.sleep(2.0 if self.views else POLL)

    async def _rates(self) -> None:
        """Measure how many rows are asked per second."""
        before: dict[str, int] = {}
        while True:
            await asyncio.sleep(0.25)
            for name, view in self.views.items():
                stock = view.stock
                now = 4.0 * (stock.asked - before.get(name, stock.asked))
                stock.rate = 0.5 * (stock.rate + now)
                before[name] = stock.asked


Found = list[tuple[tuple[Any, ...], Arms]]


def look(c: Connection, versions: dict[int, int]) -> tuple[Found, list[tuple[Any, ...]]]:
    """Return experiments that are new or changed, with the names of their arms; and all keys."""
    found: Found = []
    for number, version in c.execute("select id, version from experiments"):
        if versions.get(number) != version:
            row = c.execute(
                "select id, name, config, rewards, secrets, created, archived, paused, version, "
                "floor, oldest, broken from experiments where id=?",
                (number,),
            )[0]
            arms = c.execute(
                "select id, name, retired is not null, paused from arms where exp=? order by id",
                (number,),
            )
            found.append((row, [(a, n, bool(left), bool(rests)) for a, n, left, rests in arms]))
    return found, keys.read(c)

"""Rows that a web worker has leased of one experiment, and what it shows when there are none."""

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from evenhand.service import rows
from evenhand.service.committer import Committer, Unavailable
from evenhand.service.database import Connection
from evenhand.service.pace import AHEAD, PATIENCE, WAIT
from evenhand.service.problems import Problem
from evenhand.service.readers import Reader
from evenhand.service.rows import Flat

LOOK = 0.01  # seconds between looks for new rows
POOL = 256  # unlearnt rows drawn at a time
LEAST = 2  # rows of a lease


class Drawn(NamedTuple):
    """A row to show."""

    epoch: int
    row: int
    arms: list[int]
    learns: bool


@dataclass
class Stock:
    """Rows in memory, renewed early.

    ``floor`` is the first epoch whose rows may be shown, as far as this worker knows.
    """

    experiment: int
    worker: str
    committer: Committer
    reader: Reader
    floor: int = 0
    rate: float = 0.0  # rows per second asked here
    asked: int = 0
    waiting: int = 0  # rows that askers wait for
    dry: bool = False  # whether askers are to wait no more
    unlearnt: int = 0  # rows handed out so far from which nothing is learnt
    owned: int = 0  # of those, written down
    rows: deque[Drawn] = field(default_factory=deque)  # leased and not yet handed out
    plan: tuple[int, bytes] | None = None  # newest known, and its epoch
    _pool: deque[Drawn] = field(default_factory=deque)
    _rng: np.random.Generator = field(default_factory=np.random.default_rng)
    _task: "asyncio.Task[None] | None" = None
    _cache: dict[int, Flat] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> Drawn | None:
        """Return a row that can be learnt from, if one is at hand."""
        left = self.rows
        while left:
            row = left.popleft()
            if row.epoch < self.floor:
                continue
            self.asked += 1
            if self._task is None and len(left) <= self.rate * AHEAD / 2:
                self.refill()
            return row
        return None

    async def wait(self, fresh: bool, rows: int = 1) -> Drawn:
        """Return a row to show: one that can be learnt from, if it comes in time.

        The asker wants so many: else what is leased and published follows what was had, not what is
        asked for, and falls behind further and further.
        """
        first = self.plan is None or self.plan[0] < self.floor  # nothing to fall back to
        end = asyncio.get_running_loop().time() + (PATIENCE if first else WAIT)
        self.waiting += rows
        self.committer.hurry()
        try:
            while fresh and (first or not self.dry):
                self.refill()
                self._news.clear()
                rest = end - asyncio.get_running_loop().time()
                try:
                    await asyncio.wait_for(self._news.wait(), max(rest, 0.0))
                except TimeoutError:
                    self.dry, first = True, False
                if found := self.take():
                    return found
        finally:
            self.waiting -= rows
        self.asked += 1
        self.refill()
        return await self._draw()

    def refill(self) -> None:
        """Lease more rows, in the background."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._refill())

    async def _refill(self) -> None:
        try:
            while True:
                want = max(LEAST, self.waiting, round(self.rate * AHEAD))
                ask = partial(lease, experiment=self.experiment, worker=self.worker, want=want,
                              rate=self.rate + self.waiting / AHEAD)  # fmt: skip
                got = await (self.committer.do_later if self.rows else self.committer.do)(ask)
                if got:
                    break
                await asyncio.sleep(LOOK)
                while not await self.reader.do(partial(in_stock, experiment=self.experiment)):
                    await asyncio.sleep(LOOK)
            for epoch, first, stop in got:
                if epoch not in self._cache:
                    await self._read(epoch)
                arms = self._cache[epoch].rows(first, stop)
                self.rows.extend([Drawn(epoch, i, a, True) for i, a in enumerate(arms, first)])
            self.dry = False
            self._news.set()
        except Unavailable:
            self.dry = True
            self._news.set()
            await asyncio.sleep(WAIT)
        finally:
            self._task = None

    async def _read(self, epoch: int) -> None:
        data, plan = await self.reader.do(
            partial(read_epoch, experiment=self.experiment, number=epoch)
        )
        self._cache[epoch] = rows.from_bytes(data)
        self.know(epoch, plan)
        while len(self._cache) > 8:
            self._cache.pop(next(iter(self._cache)))

    def know(self, epoch: int, plan: bytes) -> None:
        """Hear of a plan."""
        if self.plan is None or epoch > self.plan[0]:
            self.plan = (epoch, plan)

    async def learn_newest(self) -> None:
        """Have the newest plan at hand, for when the database is away."""
        known = -1 if self.plan is None else self.plan[0]
        found = await self.reader.do(partial(newest, experiment=self.experiment, known=known))
        if found:
            self.know(*found)

    async def own_up(self) -> None:
        """Write down how many rows were handed out from which nothing is learnt."""
        if self.unlearnt > self.owned:
            now = self.unlearnt
            await self.committer.do_later(
                partial(
                    write_unlearnt, experiment=self.experiment, worker=self.worker, unlearnt=now
                )
            )
            self.owned = now

    async def _draw(self) -> Drawn:
        """Return a row of the last known plan, from which nothing is learnt."""
        while not self._pool or self._pool[0].epoch < self.floor:
            self._pool.clear()
            if self.plan is None or self.plan[0] < self.floor:
                raise Problem(
                    503, "no plan has been published yet; try again in a second", retry_after="1"
                )
            drawn = await asyncio.to_thread(draw, *self.plan, self._rng)
            self._pool.extend(drawn)
        self.unlearnt += 1
        return self._pool.popleft()


def lease(
    c: Connection, experiment: int, worker: str, want: int, rate: float
) -> list[tuple[int, int, int]]:
    """Lease up to so many rows, inside a transaction, and say how many are asked per second."""
    c.execute(
        f"insert into demand(exp, worker, rate, at) values(?,?,?,{c.now}) "
        "on conflict(exp, worker) do update set rate=excluded.rate, at=excluded.at",
        (experiment, worker, rate),
    )
    got = []
    while want > 0:
        found = c.execute(
            "select number, leased, n from epochs where exp=? and leased<n "
            f"order by number limit 1{c.skip_locked}",
            (experiment,),
        )
        if not found:
            break
        number, first, n = found[0]
        stop = min(n, first + want)
        c.execute("update epochs set leased=? where exp=? and number=?", (stop, experiment, number))
        c.execute(
            f"insert into leases(exp, epoch, first, stop, worker, at) values(?,?,?,?,?,{c.now})",
            (experiment, number, first, stop, worker),
        )
        got.append((number, first, stop))
        want -= stop - first
    return got


def write_unlearnt(c: Connection, experiment: int, worker: str, unlearnt: int) -> None:
    """Say how many rows taught nothing."""
    c.execute(
        f"insert into demand(exp, worker, rate, at, unlearnt) values(?,?,0,{c.now},?) "
        "on conflict(exp, worker) do update set unlearnt=excluded.unlearnt, at=excluded.at",
        (experiment, worker, unlearnt),
    )


def in_stock(c: Connection, experiment: int) -> bool:
    """Whether there are rows to lease."""
    return bool(c.execute("select 1 from epochs where exp=? and leased<n limit 1", (experiment,)))


def read_epoch(c: Connection, experiment: int, number: int) -> tuple[bytes, bytes]:
    """Return an epoch's rows and plan."""
    found = c.execute(
        "select rows, plan from epochs where exp=? and number=?", (experiment, number)
    )
    return bytes(found[0][0]), bytes(found[0][1])


def newest(c: Connection, experiment: int, known: int) -> tuple[int, bytes] | None:
    """Return the newest epoch and its plan, if it is not known."""
    number = c.execute("select max(number) from epochs where exp=?", (experiment,))[0][0]
    if number is None or number == known:
        return None
    return number, read_epoch(c, experiment, number)[1]


def draw(epoch: int, plan: bytes, rng: np.random.Generator) -> list[Drawn]:
    """Draw rows of a plan with a stream of one's own."""
    from evenhand.exchange import Plan  # when first needed: it loads the compiler

    law = Plan.from_bytes(plan)
    flat = rows.from_bytes(rows.to_bytes(law, law.draw(POOL, rng)))
    return [Drawn(epoch, secrets.randbits(48), flat.row(i), False) for i in range(POOL)]

"""Rewards written in one trip: the same words, and durable or not there at all."""

import asyncio
import threading

import pytest

from evenhand.service import tells
from evenhand.service.committer import Committer, Unavailable
from evenhand.service.database import Connection, SQLiteConnection
from evenhand.service.tells import PART, Told
from tests.service.test_storage import Faulty, new_experiment, seated


def published(c, rows=400):
    experiment = new_experiment(c)
    seated(c, experiment).work(least=rows)
    return experiment


def stored(c):
    return {(e, r): y for e, r, y in c.execute("select epoch, row, reward from tells")}


def test_every_row_gets_its_word(c):
    experiment = published(c)

    def tell(*rows):
        return tells.record_alone(c, [Told(experiment, *row) for row in rows])

    assert tell((0, 0, 0.5), (0, 1, None)) == [tells.ACCEPTED] * 2
    said = tell((0, 0, 0.5), (0, 1, 1.0), (0, 2, 1.0), (0, 2, 0.0), (0, 2, 1.0))
    assert said == [tells.DUPLICATE, tells.CONFLICT, tells.ACCEPTED, tells.CONFLICT,
                    tells.DUPLICATE]  # fmt: skip
    with c.transaction():
        c.execute("insert into tells(exp,epoch,row,reward,at,by_default) values(1,0,3,0,0,1)")
        c.execute("update experiments set oldest=1")
    assert tell((0, 3, 0.0), (0, 4, 0.5), (0, 0, 0.5)) == [tells.EXPIRED] * 2 + [tells.DUPLICATE]
    assert tell((1, 4, 0.5), (0, 4, 0.5)) == [tells.ACCEPTED, tells.EXPIRED]
    assert tell((0, 5, 0.5)) == [tells.EXPIRED]
    assert stored(c) == {(0, 0): 0.5, (0, 1): None, (0, 2): 1.0, (0, 3): 0.0, (1, 4): 0.5}


def test_more_rows_than_a_statement_takes(c):
    experiment = published(c)
    rows = [Told(experiment, 0, r, 0.5) for r in range(2 * PART + 20)]
    assert tells.record_alone(c, rows[:5]) == [tells.ACCEPTED] * 5
    words = tells.record_alone(c, [*rows, rows[-1], rows[PART]._replace(reward=1.0)])
    assert words[:5] == [tells.DUPLICATE] * 5
    assert set(words[5:-2]) == {tells.ACCEPTED}
    assert words[-2:] == [tells.DUPLICATE, tells.CONFLICT]
    assert len(stored(c)) == len(rows)


@pytest.mark.parametrize("shares", [True, False])
def test_no_epoch_expires_between_look_and_commit(source, c, shares):
    """Who tells while rows expire hears of it; and would not, did nobody wait for the other."""
    if not shares:
        if isinstance(c, SQLiteConnection):
            pytest.skip("one transaction writes at a time, whatever is shared")
        with c.transaction():  # a function that takes other locks
            found = c.execute("select pg_get_functiondef('record_tells'::regproc)")[0][0]
            c.execute(found.replace("25960", "1"))
    experiment, words = published(c), []
    other = source.connect()

    def tell():
        words.extend(tells.record_alone(other, [Told(experiment, 0, 0, 0.5)]))

    with c.transaction():
        c.exclude(experiment)
        c.execute("update experiments set oldest=1")
        teller = threading.Thread(target=tell)
        teller.start()
        teller.join(0.3)
    teller.join(10)
    other.close()
    assert words == [tells.EXPIRED if shares else tells.ACCEPTED]


class FaultyOnce:
    """A source whose first connection fails at its n-th commit."""

    def __init__(self, source, n, after):
        self._source, self._first = source, [(n, after)]

    def connect(self):
        c = self._source.connect()
        return Faulty(c, *self._first.pop()) if self._first else c


@pytest.mark.parametrize("after", [False, True])
def test_tells_whose_commits_fail_are_neither_lost_nor_doubled(source, c, after):
    """Failure before and after each of the first commits, of tells alone and with other work."""
    experiment = published(c)

    async def tell(committer, row, heard):
        while True:
            try:
                heard += await committer.tell([Told(experiment, 0, row, row / 400)])
                return
            except Unavailable:
                heard.append("away")

    async def run(n, heard):
        committer = Committer(FaultyOnce(source, n, after), asyncio.get_running_loop())
        for step in range(6):
            rows = [20 * n + 3 * step + i for i in range(3)]
            others = [committer.do(Connection.clock)] if step % 2 else []
            told = [tell(committer, row, heard.setdefault(row, [])) for row in rows]
            await asyncio.gather(*told, *others, return_exceptions=True)
        await asyncio.to_thread(committer.stop)
        assert committer.failures == 1

    heard: dict[int, list[str]] = {}
    for n in range(1, 5):
        asyncio.run(run(n, heard))
    assert stored(c) == {(0, row): row / 400 for row in heard}
    failed = [words[1:] for words in heard.values() if words[0] == "away"]
    assert len(failed) >= 4
    again = tells.DUPLICATE if after else tells.ACCEPTED
    assert failed == [[again]] * len(failed)
    assert {words[0] for words in heard.values()} == {tells.ACCEPTED, "away"}

"""Disks that are full, and disks that lose what was not synced."""

import asyncio
import random
import shutil
import sqlite3

import pytest

from evenhand.service import check, recovery, tells
from evenhand.service.committer import Committer, Unavailable
from evenhand.service.database import SQLite, SQLiteConnection
from evenhand.service.tells import Told
from tests.service.conftest import new_file
from tests.service.test_storage import new_experiment, seated, tell_some


def test_every_connection_syncs_every_commit(tmp_path):
    c = new_file(tmp_path).connect()
    assert c.execute("pragma journal_mode") == [("wal",)]
    assert c.execute("pragma synchronous") == [(2,)]  # FULL
    c.close()


def test_a_power_cut_leaves_a_whole_beginning(tmp_path, monkeypatch):
    """The write-ahead log is cut anywhere: what is left holds together and goes on."""
    monkeypatch.setattr(recovery, "EVERY", 6)
    source = new_file(tmp_path)
    c = source.connect()
    experiment, rng = new_experiment(c), random.Random(1)
    c.execute("pragma wal_checkpoint(truncate)")
    seat = seated(c, experiment)
    synced = []  # lengths of the log, and rewards acknowledged by then
    log, acked = tmp_path / "x.db-wal", 0
    for _ in range(12):
        seat.work(least=4)
        acked += len(tell_some(c, experiment, rng))
        seat.snapshot_if_due()
        synced.append((log.stat().st_size, acked))
    found = set()
    for cut in [*rng.sample(range(synced[0][0], synced[-1][0]), 12), synced[-1][0]]:
        folder = tmp_path / str(cut)
        folder.mkdir()
        shutil.copy(tmp_path / "x.db", folder / "x.db")
        (folder / "x.db-wal").write_bytes(log.read_bytes()[:cut])
        other = SQLite(folder / "x.db").connect()
        assert check.check(other, experiment).wrong == []
        told = other.execute("select count(*) from tells")[0][0]
        assert told >= max(n for size, n in synced if size <= cut)  # what was synced is there
        found.add(told)
        again = seated(other, experiment)
        again.work(least=3)
        assert check.check(other, experiment).wrong == []
        other.close()
    c.close()
    assert len(found) > 4


class Full(SQLite):
    """A file that may not grow beyond some pages."""

    pages = 2**30

    def connect(self):
        c = SQLiteConnection(self.path)
        c._db.execute(f"pragma max_page_count={Full.pages}")
        return c


def test_a_full_disk_loses_nothing_and_passes(tmp_path, monkeypatch):
    new_file(tmp_path)
    source = Full(tmp_path / "x.db")
    c = source.connect()
    experiment = new_experiment(c)
    seat = seated(c, experiment)
    seat.work(least=4000)

    async def tell_all():
        committer = Committer(source, asyncio.get_running_loop())
        words, failed = [], 0
        for start in range(0, 4000, 400):
            part = [Told(experiment, 0, r, 0.5) for r in range(start, start + 400)]
            while True:
                try:
                    words += await committer.tell(part)
                    break
                except Unavailable as error:
                    assert "full" in str(error)  # noqa: PT017
                    failed += 1
                    Full.pages = 2**30  # somebody makes room
        await asyncio.to_thread(committer.stop)
        return words, failed

    monkeypatch.setattr(Full, "pages", c.execute("pragma page_count")[0][0] + 8)
    words, failed = asyncio.run(tell_all())
    assert failed > 0
    assert words == [tells.ACCEPTED] * 4000
    monkeypatch.setattr(Full, "pages", c.execute("pragma page_count")[0][0])
    small = source.connect()
    seat.c = small
    with pytest.raises(sqlite3.OperationalError, match="full"):  # noqa: PT012
        while True:
            seat.work(least=4000)
    small.close()
    seat = seated(c, experiment)  # what a folder does then: begin again from the log
    seat.work(None)
    assert seat.replica.tally.told == 4000
    assert check.check(c, experiment).wrong == []
    c.close()

"""Clocks that jump by an hour, forward and back: nothing lost, nothing twice, and work goes on."""

import random
import time

import pytest

from evenhand.service import check, keys, stock, tells
from evenhand.service.database import PostgreSQLConnection, SQLiteConnection
from evenhand.service.folder import Folder
from evenhand.service.seat import LEASE
from evenhand.service.tells import Told
from tests.service.test_storage import new_experiment, seated, tell_some

HOUR = 3600.0
HOST = time.time


@pytest.fixture
def jump(monkeypatch):
    """Set the clocks of the database and of this host off by so many seconds."""
    true = {kind: kind.now for kind in (SQLiteConnection, PostgreSQLConnection)}

    def set_off(seconds):
        for kind, now in true.items():
            monkeypatch.setattr(kind, "now", f"({now}+({seconds}))")
        monkeypatch.setattr(time, "time", lambda: HOST() + seconds)

    return set_off


def folder_at_work(source, c):
    folder = Folder(source)
    folder.c = c
    return folder


def step(*folders):
    """Let folders work; they look for experiments and renew their leases each time."""
    for folder in folders:
        folder._looked = folder._beat = 0.0
        folder._folded.clear()
        folder.step(folder.c)


def test_rewards_are_counted_once_across_jumps(source, c, jump):
    experiment, rng, acked = new_experiment(c), random.Random(1), {}
    others = [source.connect(), source.connect()]
    folders = [folder_at_work(source, other) for other in others]
    for off in (0.0, HOUR, 0.0, -HOUR, 0.0, 2 * HOUR):
        jump(off)
        for _ in range(3):
            step(*folders)
            acked |= tell_some(c, experiment, rng)
        assert sum(experiment in folder.seats for folder in folders) == 1
    step(*folders)
    step(*folders)
    for folder in folders:
        folder.leave()
    said = check.check(c, experiment)
    assert said.wrong == []
    assert said.unfolded == 0
    assert said.rewards == sum(word == tells.ACCEPTED for word in acked.values()) > 15


@pytest.mark.parametrize("off", [HOUR, -HOUR])
def test_a_lease_from_before_a_jump_holds_up_nobody(source, c, jump, off):
    """Its holder died just then; set back, the clock would have its lease run for an hour."""
    experiment = new_experiment(c)
    dead = folder_at_work(source, source.connect())
    step(dead)
    assert experiment in dead.seats
    jump(off)
    other = folder_at_work(source, source.connect())
    step(other)
    assert experiment in other.seats
    step(dead)  # it was only asleep: the fence has moved on
    assert experiment not in dead.seats or c.one_service
    step(other)
    with c.transaction():
        until = c.execute(f"select until-{c.now} from folders")[0][0]
    assert 0.0 < until <= LEASE
    for folder in (dead, other):
        folder.c.close()
    assert check.check(c, experiment).wrong == []


def test_traffic_of_before_a_jump_does_not_count(source, c, jump):
    experiment = new_experiment(c)
    with c.transaction():
        stock.lease(c, experiment, "gone", 1, 5000.0)
    folder = folder_at_work(source, source.connect())
    step(folder)
    assert c.execute("select max(n) from epochs")[0][0] >= 500  # a tenth of a second of it
    jump(-HOUR)
    step(folder)
    found = c.execute(f"select sum(rate) from demand where {c.recent('at', 3.0)}")
    assert not found[0][0]
    folder.c.close()


def test_windows_run_by_the_clock_of_the_database(c, jump):
    experiment = new_experiment(c, mode="window", window=600.0, default=0.0)
    seat = seated(c, experiment)
    seat.work(least=4)

    def shown(row):
        with c.transaction():
            c.execute(
                f"insert into shown(exp,epoch,row,at) values(?,0,?,{c.now})", (experiment, row)
            )

    def told(row, reward):
        with c.transaction():
            return tells.record(c, [Told(experiment, 0, row, reward)])

    shown(0)
    shown(1)
    jump(-HOUR)
    assert seat.settle_window() == 0  # later by the jump
    assert told(0, 1.0) == [tells.ACCEPTED]
    shown(2)
    jump(0.0)
    assert seat.settle_window() == 1  # the row shown while the clock was wrong, too early
    assert told(2, 1.0) == [tells.EXPIRED]
    jump(HOUR)
    assert seat.settle_window() == 2
    assert told(1, 0.0) == [tells.EXPIRED]
    assert told(0, 1.0) == [tells.DUPLICATE]
    jump(-HOUR)
    assert seat.settle_window() == 0
    seat.work(None)
    assert seat.replica.tally.told == 3
    assert seat.replica.tally.total == 1.0
    assert check.check(c, experiment).wrong == []


def test_the_end_of_a_key_is_by_the_clock_of_the_host(jump):
    key = keys.Key(1, "a", frozenset({"ask"}), None, HOST() + 60.0, 1e5)
    key.check("ask", 1)
    jump(HOUR)
    with pytest.raises(Exception, match="expired"):
        key.check("ask", 1)
    jump(-HOUR)
    key.check("ask", 1)

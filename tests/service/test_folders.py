"""Several folders on one database: each leads about as many experiments."""

from evenhand.service import check
from evenhand.service.database import database
from evenhand.service.folder import Folder
from tests.service.conftest import new_postgresql
from tests.service.test_storage import new_experiment


def folder_on(source):
    folder = Folder(source)
    folder.c = source.connect()
    return folder


def step(*folders):
    for folder in folders:
        folder._looked = folder._beat = 0.0
        folder.step(folder.c)


def test_a_folder_started_in_place_of_a_dead_one_need_not_wait(postgresql):
    source = database(new_postgresql(postgresql))
    c = source.connect()
    experiment = new_experiment(c, learner="urs")
    dead = folder_on(source)
    step(dead)
    stranger, heir = folder_on(source), Folder(source, dead.holder)
    heir.c = source.connect()
    step(stranger)
    assert not stranger.seats  # the lease has not run out
    step(heir)
    assert heir.seats[experiment].fence == 2
    step(dead)
    assert c.execute("select fence from folders") == [(2,)]
    for folder in (dead, stranger, heir):
        folder.c.close()
    c.close()


def test_experiments_are_shared_evenly(postgresql):
    source = database(new_postgresql(postgresql))
    c = source.connect()
    made = [new_experiment(c, name=f"x{i}", learner="urs") for i in range(7)]
    one, other = folder_on(source), folder_on(source)
    step(one)
    assert set(one.seats) == set(made)
    for _ in range(6):
        step(other, one)
        assert not set(one.seats) & set(other.seats)
    assert {len(one.seats), len(other.seats)} == {3, 4}
    third = folder_on(source)
    for _ in range(6):
        step(third, one, other)
    assert sorted(len(f.seats) for f in (one, other, third)) in ([2, 2, 3], [1, 3, 3])
    third.leave()  # gently: its experiments are free at once
    other.leave()
    step(one)
    assert set(one.seats) == set(made)
    one.leave()
    assert all(check.check(c, experiment).wrong == [] for experiment in made)
    c.close()

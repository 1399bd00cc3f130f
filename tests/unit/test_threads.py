"""Rows drawn ahead, and sums taken in side by side: the same bits, and nothing left hanging."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from evenhand import threads
from evenhand.exchange import ahead
from evenhand.learners import EvenHand
from evenhand.policy import Terms

M, K = 6, 3
WORTH = np.linspace(0.1, 0.6, M + 2)


@pytest.fixture
def cores(monkeypatch):
    """Three spare cores, used for as few as four rows."""
    monkeypatch.setattr(threads, "spare_cores", lambda: 3)
    monkeypatch.setattr(threads, "LONG", 4)


@pytest.fixture
def taken(cores, monkeypatch):
    """Whether rows drawn ahead were used, each time that there were some."""
    used, take = [], ahead.Ahead.take

    def noting(self, plan, n, rng):
        rows = take(self, plan, n, rng)
        used.append(rows is not None)
        return rows

    monkeypatch.setattr(ahead.Ahead, "take", noting)
    return used


def play(learner, until):
    """Let a learner ask until it has asked so many queries; rewards follow from the sets."""
    while learner.queries < until:
        batch = learner.ask(min(50, until - learner.queries))
        worth = np.where(batch.orders < 0, 0.0, WORTH[batch.orders])
        learner.tell(batch, 1.0 - np.prod(1.0 - worth, axis=1))
    return learner


def state(learner):
    """All of a learner but its name."""
    kept = learner.snapshot()
    arrays = {name: (a.dtype.str, a.tobytes()) for name, a in kept["arrays"].items()}
    return kept["rng"], kept["values"], arrays


def without_threads(monkeypatch, story):
    with monkeypatch.context() as patch:
        patch.setattr(threads, "spare_cores", lambda: 0)
        return state(story())


def learner(**options):
    return EvenHand(M, K, seed=1, **options)


STORIES = {
    "as it comes": lambda: play(learner(), 6000),
    "unwatched": lambda: play(learner(watch=False), 6000),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_rows_drawn_ahead_change_no_bit(story, taken, monkeypatch):
    found = state(story())
    assert sum(taken) > 20
    assert sum(taken) > 0.9 * len(taken)  # what comes next is mostly foreseen
    assert found == without_threads(monkeypatch, story)


def other_terms(learner):
    learner.change_terms(Terms(floors={0: 0.9}, unit="marginals"))


def from_a_log(learner):
    learner.learn([[0], [1, 2]], [1.0, 0.0], chances=[1 / M, 1 / 15])


HAPPENINGS = {
    "terms": other_terms,
    "an arm joins": lambda learner: learner.add(1),
    "an arm leaves": lambda learner: learner.retire(2),
    "a log": from_a_log,
    "a plan is published": lambda learner: learner.publish(),
    "the generator is used": lambda learner: learner._rng.random(),
}


@pytest.mark.parametrize("happens", HAPPENINGS.values(), ids=HAPPENINGS)
def test_rows_drawn_ahead_are_given_up_when_something_happens(happens, taken, monkeypatch):
    waiting = []

    def story():
        one = play(learner(), 3010)
        waiting.append(one._shelf._ahead is not None)
        happens(one)
        return play(one, 4000)

    found = state(story())
    assert any(taken)
    assert waiting == [True]
    assert found == without_threads(monkeypatch, story)


def test_a_draw_from_another_state_plan_or_number_is_another(cores):
    plan, other = learner().publish().plan, learner().publish().plan
    rng = np.random.default_rng(5)
    drawn = ahead.Ahead(plan, 40, rng)
    assert drawn.take(other, 40, rng) is None
    assert drawn.take(plan, 41, rng) is None
    rng.random()
    before = rng.bit_generator.state
    assert drawn.take(plan, 40, rng) is None
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_what_was_drawn_ahead_is_what_a_draw_gives(kind, cores):
    plan = learner().publish().plan
    rng, twin = (np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2))
    rows = ahead.Ahead(plan, 40, rng).take(plan, 40, rng)
    for one, wanted in zip(rows, plan.draw(40, twin), strict=True):
        np.testing.assert_array_equal(one, wanted)
    assert rng.random() == twin.random()


def test_a_learner_saved_while_rows_are_drawn_ahead_goes_on_alike(taken):
    one = play(learner(), 3000)
    while one._shelf._ahead is None:
        play(one, one.queries + 1)
    two = EvenHand.restore(one.snapshot())
    assert state(play(one, 5000)) == state(play(two, 5000))


def test_few_rows_and_two_cores_have_no_threads(monkeypatch):
    def unasked(work):
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr(threads.POOL, "submit", unasked)
    monkeypatch.setattr(threads, "spare_cores", lambda: 3)
    play(learner(), 3000)
    monkeypatch.setattr(threads, "LONG", 4)
    with pytest.raises(AssertionError, match="asked for"):
        play(learner(), 3000)
    monkeypatch.setattr(threads, "spare_cores", lambda: 0)
    play(learner(), 3000)


@pytest.mark.parametrize(("cores", "parent", "spare"), [(16, None, 15), (2, None, 0), (16, 1, 0)])
def test_spare_cores(cores, parent, spare, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores), raising=False)
    monkeypatch.setattr(threads, "parent_process", lambda: parent)
    assert threads.spare_cores.__wrapped__() == spare


def test_nobody_goes_on_while_the_other_is_under_way(cores):
    ended, release = threading.Event(), threading.Event()

    def there():
        release.wait(10)
        ended.set()

    def here():
        threading.Timer(0.05, release.set).start()
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        threads.side_by_side(here, there, 100)
    assert ended.is_set()


def test_what_fails_in_another_thread_is_raised_here(cores):
    def there():
        raise ValueError("there")

    with pytest.raises(ValueError, match="there"):
        threads.side_by_side(lambda: None, there, 100)


ALONE = """
import os, threading
import numpy as np
from evenhand import threads
from evenhand.exchange.ahead import Ahead
from evenhand.learners import URS

threads.FEWEST, os.sched_getaffinity = 1, lambda _: range(4)
plan, rng, gate = URS(6, 3, seed=1).plan, np.random.default_rng(1), threading.Event()
waits = threads.Aside(lambda: gate.wait(60))  # a draw that has not ended when the process is forked
drawn = Ahead(plan, 50, rng)
child = os.fork()
if child == 0:
    gone = waits.lost and drawn.take(plan, 50, rng) is None
    again = Ahead(plan, 50, rng).take(plan, 50, rng)  # on threads of its own
    same = (again.orders == plan.draw(50, np.random.default_rng(1)).orders).all()
    os._exit(0 if gone and same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert drawn.take(plan, 50, rng) is not None
gate.set()
Ahead(plan, 10**5, rng)  # under way when the interpreter ends
"""


@pytest.mark.skipif(not hasattr(threads.os, "fork"), reason="needs fork")
def test_a_forked_process_waits_for_nobody_and_the_interpreter_ends():
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE], check=True, timeout=60)

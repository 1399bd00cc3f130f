"""Receipts and snapshots that were changed are refused or without effect; nothing crashes.

The same tests run once more in a process of their own with numba's bounds checking on, where a read
or write outside an array raises IndexError.
"""

import copy
import json
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.exchange import Batch
from evenhand.exchange.snapshot import checksum
from evenhand.games import NoisyOr
from tests.contracts import LEARNERS

M, K, T = 6, 3, 600
GAME = NoisyOr([0.1, 0.3, 0.45, 0.6, 0.75, 0.9])
# one row per class, and those whose state has another form
ROWS = ("even_hand_sizes", "iw_ksvfair", "iw_ksvfair_exact", "muras", "urs", "etcg", "gap_e")
ROWS = (*ROWS, "fair_cmab")
learners = pytest.mark.parametrize("name", ROWS)
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-3, 9), max_size=4),
    st.lists(st.lists(st.integers(-3, 9), max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
NUMBERS = st.one_of(st.integers(-3, 9), st.integers(-(2**62), -(2**40)), st.integers(2**40, 2**62))


def played(name, until):
    """A learner that has been told some batches, and a batch of its that is out."""
    learner, rng = LEARNERS[name](M, K, T, 4), np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while learner.queries < until:
            batch = learner.ask(24)
            if batch.learns:
                learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
        return learner, learner.ask(24)


def contents(learner):
    snapshot = learner.snapshot()
    return {name: array.tobytes() for name, array in snapshot["arrays"].items()}, snapshot["values"]


def change_leaf(data, value, junk):
    """Change one entry of nested lists and dictionaries, chosen by drawing."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    key = value.draw(st.sampled_from(keys))
    inner = data[key]
    if isinstance(inner, dict | list) and inner and value.draw(st.booleans()):
        change_leaf(inner, value, junk)
    elif value.draw(st.integers(0, 5)) == 0:
        del data[key]
    else:
        data[key] = value.draw(NUMBERS if isinstance(inner, int) and not junk else JUNK)


@learners
@few
@given(value=st.data())
def test_a_changed_receipt_is_refused_or_credits_what_was_asked(name, value):
    learner, batch = played(name, until=60)
    twin = type(learner).restore(learner.snapshot())
    before, data = contents(learner), copy.deepcopy(batch.to_dict())
    change_leaf(data, value, junk=value.draw(st.booleans()))
    rewards = np.random.default_rng(1).random(batch.sizes.shape)
    accepted = False
    with said():
        changed = Batch.from_dict(data)
        own = batch.index.tolist()
        places = [own.index(row) for row in changed.index if row in own]
        learner.tell(changed, rewards[places] if changed.learns else rewards)
        accepted = changed.learns and len(changed.index) > 0
    if accepted:
        twin.tell(batch.rows(places), rewards[places])
        assert contents(learner) == contents(twin)
    else:
        assert contents(learner) == before


def change_array(arrays, value):
    name = value.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    kind = value.draw(st.integers(0, 4))
    if kind == 0:
        del arrays[name]
        return
    if kind == 1:
        arrays[name] = array.astype(value.draw(st.sampled_from([np.float32, np.int32, np.bool_])))
    elif kind == 2:
        arrays[name] = array[:-1] if array.ndim and len(array) else np.zeros((2, 2, 2))
    elif array.size:
        place = value.draw(st.integers(0, array.size - 1))
        flat = array.reshape(-1)
        if array.dtype.kind == "f":
            flat[place] = value.draw(st.one_of(st.floats(), st.floats(-2, 2)))
        else:
            low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
            flat[place] = value.draw(st.one_of(st.integers(low, high), st.integers(0, 9)))
        arrays[name] = array


@cache  # nothing below changes them, only what is restored from their snapshots
def played_long(name):
    return played(name, until=240)


def changed_snapshot(name, value):
    learner, batch = played_long(name)
    snapshot = learner.snapshot()
    arrays = snapshot.pop("arrays")
    plain = json.loads(json.dumps(snapshot))
    if arrays and value.draw(st.booleans()):
        change_array(arrays, value)
    else:
        change_leaf(plain, value, junk=value.draw(st.booleans()))
    return learner, batch, {**plain, "arrays": arrays}


def same(one, other):
    return (
        one.keys() == other.keys()
        and all(one[n] == other[n] for n in one if n != "arrays")
        and one["arrays"].keys() == other["arrays"].keys()
        and all(np.array_equal(one["arrays"][n], x) for n, x in other["arrays"].items())
    )


@learners
@few
@given(value=st.data())
def test_a_changed_snapshot_is_refused(name, value):
    learner, _, snapshot = changed_snapshot(name, value)
    if same(snapshot, learner.snapshot()):
        return
    with pytest.raises(ValueError, match="snapshot must"):
        type(learner).restore(snapshot)


@contextmanager
def said():
    """Allows a refusal that says something, and nothing else."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        if not any(word in str(error) for word in ("must", "not", "once", "differently")):
            raise


def play_on(learner, batch):
    rng = np.random.default_rng(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if batch.learns:
            learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
        for _ in range(6):
            again = learner.ask(24)
            assert np.all(again.orders < M)
            if again.learns:
                learner.tell(again, GAME.pull(again.orders, again.sizes, rng))
    return learner


@learners
@few
@given(value=st.data())
def test_a_forged_snapshot_is_refused_or_harmless(name, value):
    """As above with the checksum made to fit: what passes must not reach outside any array."""
    learner, batch, snapshot = changed_snapshot(name, value)
    try:
        snapshot["checksum"] = checksum({n: x for n, x in snapshot.items() if n != "checksum"})
    except (KeyError, AttributeError, TypeError, ValueError):
        return  # not even a checksum can be made of it
    with said():
        forged = play_on(type(learner).restore(snapshot), batch)
        forged.estimate()


@pytest.mark.slow
@pytest.mark.skipif("NUMBA_BOUNDSCHECK" in os.environ, reason="runs these tests itself")
def test_nothing_reaches_outside_an_array(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", __file__],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout

"""What holds when a learner is saved, restored and moved."""

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.exchange import AlreadyTold
from evenhand.exchange.snapshot import checksum
from evenhand.learners import URS, EvenHand
from evenhand.storage import load, save
from evenhand.testing.playing import (
    PHASE,
    M,
    Make,
    assert_same,
    half,
    learning_batch,
    made_learner,
    play,
    rewards_of,
    twin_of,
)
from evenhand.testing.running import raises


def a_restored_learner_goes_on_bit_for_bit(make: Make) -> None:
    """A snapshot holds all of a learner, whenever it is made; restoring twice changes nothing."""
    learner, rng = made_learner(make), np.random.default_rng(7)
    for until in (0, PHASE, 5 * PHASE, 15 * PHASE):
        play(learner, PHASE, until, rng)
        twin = twin_of(twin_of(learner))
        assert_same(twin, learner, f"a learner restored after {until} queries must be the same")
        state = rng.bit_generator.state
        play(learner, PHASE, until + PHASE, rng)
        rng.bit_generator.state = state
        play(twin, PHASE, until + PHASE, rng)
        assert_same(
            twin, learner, f"a learner restored after {until} queries must go on bit for bit"
        )


def open_batches_survive_on_disk(make: Make) -> None:
    """Batches that were out when a learner was saved can be told to the loaded one."""
    learner, rng = made_learner(make), np.random.default_rng(7)
    play(learner, PHASE, 2 * PHASE, rng)
    batches = [learner.ask(PHASE), learner.ask(PHASE)]
    rewards = [rewards_of(batch, M, rng) for batch in batches]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner.npz")
        save(learner, path)
        twin = load(path)
    for one in (learner, twin):
        for batch, reward in zip(reversed(batches), reversed(rewards), strict=True):
            one.tell(batch, reward)
        one.ask(PHASE)
    assert_same(twin, learner, "a loaded learner must take open batches and go on bit for bit")


def a_snapshot_knows_which_rows_are_told(make: Make) -> None:
    """A restored learner refuses rows that were told before, and takes the others."""
    learner = made_learner(make)
    early, late = learning_batch(learner), learning_batch(learner)
    if early is None or late is None:
        return
    learner.tell(late.rows([0]), half(late)[:1])
    twin = twin_of(learner)
    with raises(AlreadyTold, when="telling a restored learner a row that was told before"):
        twin.tell(late, half(late))
    for one in (learner, twin):
        one.tell(early, half(early))
    assert_same(twin, learner, "a restored learner must take rows that are open")


def changed_snapshots_are_refused(make: Make) -> None:
    """A snapshot that was changed raises ValueError.

    Where its checksum was made to fit, parts that are missing or of a wrong form still do.
    """
    learner = made_learner(make)
    play(learner, PHASE, 4 * PHASE, np.random.default_rng(7))
    kind, good = type(learner), learner.snapshot()
    arrays = good["arrays"]
    values, m, filled = good["values"], learner.m, [n for n in arrays if arrays[n].size]
    changes: list[tuple[dict[str, Any], str]] = [
        ({"version": 99}, "of version 99"),
        ({"format": "other"}, "of another format"),
        ({"learner": "nobody"}, "of an unknown learner"),
        ({"arrays": None}, "without arrays"),
        ({"config": {**good["config"], "m": m + 1}}, f"with m={m + 1} instead of {m}"),
        *[({"arrays": {**arrays, n: arrays[n] + 1}}, f"with {n} changed") for n in filled],
        *[({"arrays": _without(arrays, n)}, f"without {n}") for n in arrays],
    ]
    for change, what in changes:
        with raises(ValueError, when=f"restoring a snapshot {what}"):
            kind.restore({**good, **change})
    changes = [
        ({"rng": {}}, "without the state of its generator"),
        ({"config": {"m": 3}}, "with half of a configuration"),
        ({"values": {**values, "queries": -5}}, "with -5 queries"),
        *[({"values": _without(values, n)}, f"without {n}") for n in values],
        *[({"arrays": {**arrays, n: np.zeros((1, 1, 1))}}, f"with another {n}") for n in arrays],
    ]
    for change, what in changes:
        bad = {**_without(good, "checksum"), **change}
        with raises(ValueError, when=f"restoring a snapshot {what} and the checksum of that"):
            kind.restore({**bad, "checksum": checksum(bad)})
    other = URS if not isinstance(learner, URS) else EvenHand
    with raises(ValueError, when=f"{other.__name__}.restore with a snapshot of another learner"):
        other.restore(good)
    assert_same(kind.restore(good), learner, "the snapshot itself must still be good")


def _without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {n: value for n, value in mapping.items() if n != name}


def copies_are_refused(make: Make) -> None:
    """A learner cannot be copied or pickled, as two would accept the same receipts."""
    learner = made_learner(make)
    ways: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps]
    for way in ways:
        with raises(TypeError, when=f"{way.__name__} of a learner"):
            way(learner)

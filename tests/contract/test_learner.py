"""What holds for every learner."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import evenhand
from evenhand.exchange.snapshot import sealed
from evenhand.learners import Learner
from evenhand.testing import LEARNER_CHECKS
from evenhand.testing.playing import M, assert_same, play, rewards_of
from tests.contracts import LEARNERS

K, T = 3, 2000
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


@learners
@pytest.mark.parametrize("check", LEARNER_CHECKS)
def test_learners(check, make):
    check(make)


PROGRAM = """
import json, pathlib, sys, evenhand
for path in pathlib.Path(sys.argv[1]).glob("*.npz"):
    learner = evenhand.load(path)
    for one in reversed(json.loads(path.with_suffix(".json").read_text())):
        learner.tell(evenhand.Batch.from_dict(one["batch"]), one["rewards"])
    learner.ask(24)
    evenhand.save(learner, path)
"""


def test_two_open_batches_survive_in_a_new_process(tmp_path):
    rng, here = np.random.default_rng(7), {}
    for name, make in LEARNERS.items():
        learner = here[name] = make(M, K, T, 4)
        play(learner, 48, 144, rng)
        batches = [learner.ask(24), learner.ask(24)]
        rewards = [rewards_of(batch, M, rng) for batch in batches]
        evenhand.save(learner, tmp_path / f"{name}.npz")
        told = list(zip(batches, rewards, strict=True))
        plain = [{"batch": b.to_dict(), "rewards": r.tolist()} for b, r in told]
        (tmp_path / f"{name}.json").write_text(json.dumps(plain))
        for batch, reward in reversed(told):
            learner.tell(batch, reward)
        learner.ask(24)
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True)
    for name, learner in here.items():
        assert_same(evenhand.load(tmp_path / f"{name}.npz"), learner, f"{name} must go on")


@learners
def test_what_is_refused_is_told_kindly(make):
    learner, other = make(M, K, T, 4), make(M, K, T, 4)
    batch, foreign = learner.ask(60), other.ask(60)
    n, s = batch.sizes.shape
    good = np.full((n, s), 0.5)
    row, column = np.argwhere(batch.sizes > 0)[0]
    high = good.copy()
    high[row, column] = 1.3
    for told, rewards, error, message in [
        (
            batch,
            high,
            ValueError,
            rf"\[0, 1\], got rewards\[{row}, {column}\]=1.3; make the",
        ),
        (
            batch,
            good[:, :0],
            ValueError,
            rf"shape \({n}, {s}\), or be a flat list of {n * s}",
        ),
        (batch, "high", TypeError, rf"must be numbers in the shape \({n}, {s}\), nan where"),
        (foreign, good, ValueError, "must come from this learner's ask, got one of learner"),
        ("batch", good, TypeError, "batch must be a Batch, got str"),
    ]:
        with pytest.raises(error, match=message):
            learner.tell(told, rewards)
    if batch.learns:
        learner.tell(batch.rows([0]), good[[0]])
        with pytest.raises(evenhand.AlreadyTold, match="rows must be told once, got row 0 again"):
            learner.tell(batch, good)


@learners
def test_a_row_told_as_missing_is_closed(make):
    learner = make(M, K, T, 4)
    batch = learner.ask(60)
    rows = np.flatnonzero((batch.sizes > 0).all(axis=1))[:1]  # the empty set is never missing
    if not batch.learns:
        pytest.skip("learns nothing at first")
    learner.tell(batch.rows(rows), np.full((1, batch.sizes.shape[1]), np.nan))
    with pytest.raises(evenhand.AlreadyTold, match=f"row {rows[0]} was closed: its reward was"):
        learner.tell(batch.rows(rows), np.zeros((1, batch.sizes.shape[1])))


@learners
def test_the_horizon_is_told_kindly(make):
    learner = make(M, K, 300, 2)
    if learner.horizon is None:
        pytest.skip("needs no horizon")
    play(learner, 2**16, 300, np.random.default_rng(0))
    with pytest.raises(ValueError, match="the horizon of 300 queries is used up; make a learner"):
        learner.ask()


@learners
def test_broken_snapshots_are_told_kindly(make):
    learner = make(M, K, T, 4)
    kind, good = type(learner), learner.snapshot()
    for change, message in [
        ({"version": 99}, "snapshot must have version 3, got 99; evenhand.load reads"),
        ({"format": "other"}, "snapshot must be one of a learner"),
        ({"owner": "me"}, "snapshot must be as it was made, but its checksum is wrong"),
        ({"arrays": None}, "snapshot must hold JSON and arrays, got"),
    ]:
        with pytest.raises(ValueError, match=message):
            kind.restore({**good, **change})
    kept = ("config", "roster", "owner", "rng", "values", "arrays")
    content = {name: good[name] for name in kept}
    for change, message in [
        ({"learner": "nobody"}, "snapshot must be of one of"),
        ({"rng": {}}, f"snapshot must be as {kind.__name__}.snapshot returned it, but 'kind' is"),
        ({"values": {}}, "but queries is missing"),
    ]:  # with a checksum that fits
        with pytest.raises(ValueError, match=message):
            kind.restore(sealed({"learner": kind.name, **content, **change}))
    other = "urs" if learner.name != "urs" else "etcg"
    with pytest.raises(ValueError, match=f"snapshot must be of .*, got one of {kind.__name__}"):
        Learner.kinds[other].restore(good)


@learners
def test_bad_limits_and_arguments_are_told_kindly(make):
    for limit, error, message in [
        (0, ValueError, "limit must be at least 1, got limit=0"),
        (2.5, TypeError, "limit must be an integer, got 2.5"),
    ]:
        with pytest.raises(error, match=message):
            make(M, K, T, 0).ask(limit)
    for arguments, error, message in [
        ((5, 6, 1000, 0), ValueError, "k must satisfy 1 <= k <= m, got k=6 with m=5"),
        ((5, 0, 1000, 0), ValueError, "got k=0 with m=5"),
        ((5, 2, 1000, "seed"), TypeError, "seed must be an integer, got 'seed'"),
        ((5, 2, 1000, -1), ValueError, "seed must be at least 0, got seed=-1"),
    ]:
        with pytest.raises(error, match=message):
            make(*arguments)


@learners
def test_a_run_has_a_finite_regret_for_any_k(make):
    game = evenhand.games.NoisyOr([0.1, 0.3, 0.45, 0.6, 0.75, 0.9])
    for k in (1, M):
        target = evenhand.fair_policy(game.kshapley(k), k)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = evenhand.simulate(make(M, k, 600, 3), game, 600, target=target, seed=1)
        assert run.queries == 600
        assert np.isfinite(run.regret).all()


@pytest.mark.parametrize("places", [[0, 0], [99], [-1], [[0]]])
def test_rows_of_a_receipt_are_checked(places):
    batch = LEARNERS["gap_e"](M, K, T, 4).ask(12)
    with pytest.raises(ValueError, match="places must"):
        batch.rows(places)

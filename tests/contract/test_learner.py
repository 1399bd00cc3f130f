"""What holds for every learner."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import evenhand
from evenhand.exchange.batch import Batch, Marginals
from evenhand.exchange.batch import count_arms as count_selections
from evenhand.games import NoisyOr
from evenhand.learners import Learner
from tests.contracts import LEARNERS

M, K, T = 6, 3, 2000
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
GAME = NoisyOr([0.1, 0.3, 0.45, 0.6, 0.75, 0.9])
TARGET = evenhand.fair_policy(GAME.kshapley(K), K)


def play(learner, limit, until, rng, tell=True):
    """Ask and tell until so many queries were asked; returns memberships of the arms."""
    selections = np.zeros(learner.m, np.int64)
    game = NoisyOr(np.linspace(0.1, 0.9, learner.m))
    while learner.queries < until:
        batch = learner.ask(min(limit, until - learner.queries))
        count_selections(selections, batch.orders, batch.sizes, batch.times)
        if batch.learns and tell:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return selections


def digest(learner):
    """All of a learner's state, comparable bit for bit."""
    snapshot = learner.snapshot()
    arrays = snapshot.pop("arrays")
    snapshot.pop("owner")
    return json.dumps(snapshot, sort_keys=True), {n: a.tobytes() for n, a in arrays.items()}


def through_json(snapshot):
    """A snapshot as another process would read it."""
    arrays = snapshot.pop("arrays")
    again = json.loads(json.dumps(snapshot))
    again["arrays"] = {name: array.copy() for name, array in arrays.items()}
    return again


@learners
def test_the_seed_decides_everything(make):
    one, other = make(M, K, T, 5), make(M, K, T, 5)
    for learner in (one, other):
        play(learner, 2**16, T, np.random.default_rng(1))
    assert digest(one) == digest(other)
    different = make(M, K, T, 6)
    play(different, 2**16, T, np.random.default_rng(1))
    assert digest(different) != digest(one)


@learners
@pytest.mark.parametrize("limit", [3, 7, 64])
def test_how_asks_are_cut_changes_nothing(make, limit):
    one, other = make(M, K, T, 5), make(M, K, T, 5)
    whole = play(one, 2**16, T - T % 6, np.random.default_rng(1))
    parts = play(other, limit, T - T % 6, np.random.default_rng(1))
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(one.merit, other.merit)
    np.testing.assert_array_equal(one.marginals, other.marginals)


@learners
def test_batches_keep_their_promises(make):
    learner, rng = make(M, K, T, 2), np.random.default_rng(0)
    while learner.queries < T:
        before = learner.queries
        next_marginals = learner.marginals
        batch = learner.ask(min(100, T - learner.queries))
        assert learner.queries - before == batch.queries <= 100
        assert batch.orders.shape == (len(batch.sizes), K)
        assert batch.sizes.min() >= 0
        assert batch.sizes.max() <= K
        if batch.learns:
            assert np.all(batch.times == 1)
            learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
        if isinstance(batch.exposure, Marginals):
            assert batch.exposure.q.sum() == pytest.approx(K, abs=1e-6)
            np.testing.assert_allclose(next_marginals, batch.exposure.q, atol=1e-7)
    assert learner.queries == T
    assert learner.merit.shape == learner.marginals.shape == (M,)


@learners
def test_the_horizon_is_kept(make):
    learner = make(M, K, T, 2)
    if learner.horizon is None:
        pytest.skip("needs no horizon")
    play(learner, 2**16, T, np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"the horizon of {T} queries is used up; make a learner"):
        learner.ask()


@learners
@pytest.mark.parametrize("k", [1, M])
def test_one_arm_and_all_arms_at_a_time(make, k):
    learner = make(M, k, T, 3)
    target = evenhand.fair_policy(GAME.kshapley(k), k)
    run = evenhand.simulate(learner, GAME, T, target=target, seed=1)
    assert run.queries == T
    assert np.isfinite(run.regret).all()
    if k == M:
        assert run.selections.sum() <= T * k


@learners
@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_a_restored_learner_goes_on_bit_for_bit(make, share):
    learner, rng = make(M, K, T, 4), np.random.default_rng(7)
    until = int(share * T) // 6 * 6
    play(learner, 48, until, rng)
    twin = type(learner).restore(through_json(learner.snapshot()))
    assert digest(twin) == digest(learner)
    state = rng.bit_generator.state
    one = play(learner, 48, T, rng)
    rng.bit_generator.state = state
    other = play(twin, 48, T, rng)
    np.testing.assert_array_equal(one, other)
    assert digest(twin) == digest(learner)


@learners
def test_two_open_batches_survive_in_a_new_process(make, tmp_path):
    learner, rng = make(M, K, T, 4), np.random.default_rng(7)
    play(learner, 48, 120, rng)
    batches = [learner.ask(24), learner.ask(24)]
    rewards = [GAME.pull(b.orders, b.sizes, rng) for b in batches]
    evenhand.save(learner, tmp_path / "learner.npz")
    told = [
        {"batch": b.to_dict(), "rewards": r.tolist()} for b, r in zip(batches, rewards, strict=True)
    ]
    (tmp_path / "told.json").write_text(json.dumps(told))
    program = """
import json, sys, evenhand
from evenhand.exchange.batch import Batch
learner = evenhand.load(sys.argv[1] + "/learner.npz")
for one in reversed(json.load(open(sys.argv[1] + "/told.json"))):
    learner.tell(Batch.from_dict(one["batch"]), one["rewards"])
learner.ask(24)
evenhand.save(learner, sys.argv[1] + "/after.npz")
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    for batch, reward in reversed(list(zip(batches, rewards, strict=True))):
        learner.tell(batch, reward)
    learner.ask(24)
    assert digest(evenhand.load(tmp_path / "after.npz")) == digest(learner)


@learners
def test_rewards_may_come_late_in_parts_and_out_of_order(make):
    """All rewards told at the end, row by row, backwards: the means are those of told at once."""
    late, ready = make(M, K, T, 4), make(M, K, T, 4)
    ready._owner = late._owner  # the same queries: one receipt serves both
    asked = []
    while late.queries < 300:
        batch = late.ask(30)
        ready.ask(30)
        rng = np.random.default_rng(len(asked))
        asked.append((batch, GAME.pull(batch.orders, batch.sizes, rng)))
    for batch, rewards in reversed(asked):
        for row in reversed(range(len(batch.orders))):
            late.tell(batch.rows([row]), rewards[[row]])
    for batch, rewards in asked:
        ready.tell(batch, rewards)
    np.testing.assert_allclose(late.merit, ready.merit, rtol=1e-12)
    assert not late._open


@learners
def test_a_snapshot_knows_which_rows_have_been_told(make):
    learner = make(M, K, T, 4)
    batch = learner.ask(60)
    if not batch.learns or len(batch.orders) < 2:
        pytest.skip("asks a single row")
    good = np.full(batch.sizes.shape, 0.5)
    learner.tell(batch.rows([1]), good[[1]])
    twin = type(learner).restore(through_json(learner.snapshot()))
    with pytest.raises(ValueError, match="rows must be told once, got row 1 of batch 0 again"):
        twin.tell(batch, good)
    twin.tell(batch.rows([0]), good[[0]])


@learners
def test_receipts_that_were_changed_are_refused(make):
    learner = make(M, K, T, 4)
    batch = learner.ask(60)
    if not batch.learns:
        pytest.skip("learns nothing at first")
    n, data = len(batch.orders), batch.to_dict()
    before = digest(learner)
    changes = [
        {"index": [0] * n} if n > 1 else {"index": [0, 1]},
        {"index": [n + 40, *range(1, n)]},
        {"notes": {}},
        {"notes": {name: values + values[:1] for name, values in data["notes"].items()}},
        {"orders": [[99] * K for _ in range(n)]},
    ]
    if "arms" in data["notes"]:
        changes.append({"notes": {**data["notes"], "arms": [M] * n}})
    for change in changes:
        with pytest.raises(ValueError, match="batch must be as ask returned it, but its"):
            learner.tell(Batch.from_dict({**data, **change}), np.full(batch.sizes.shape, 0.5))
        assert digest(learner) == before
    for rewards in ("high", [["a"]], [[0.5], [0.5, 0.5]]):
        with pytest.raises((TypeError, ValueError), match="rewards must"):
            learner.tell(batch, rewards)
    learner.tell(Batch.from_dict(batch.rows([]).to_dict()), np.empty((0, 0)))
    assert digest(learner) == before


@learners
def test_missing_rewards_skip_what_needs_them_and_nothing_else(make):
    learner = make(M, K, T, 4)
    batch = learner.ask(60)
    if not batch.learns:
        learner.tell(batch, np.full(batch.sizes.shape, np.nan))
        return
    before = digest(learner)[1]
    learner.tell(batch, np.full(batch.sizes.shape, np.nan))
    after = digest(learner)[1]
    changed = {name for name in before if before[name] != after.get(name)}
    assert {name for name in changed if not name.startswith("open_")} == set()
    assert not learner._open  # closed for good
    with pytest.raises(ValueError, match="rows must be told once, got row 0 of batch 0 again"):
        learner.tell(batch, np.zeros(batch.sizes.shape))


@learners
def test_what_does_not_belong_is_refused_and_changes_nothing(make):
    learner, other = make(M, K, T, 4), make(M, K, T, 4)
    batch, foreign = learner.ask(60), other.ask(60)
    shape = batch.sizes.shape
    good = np.full(shape, 0.5)
    wanted = next(i for i in np.ndindex(shape) if batch.sizes[i] > 0)
    low, high, endless = good.copy(), good.copy(), good.copy()
    low[wanted], high[wanted], endless[wanted] = -0.1, 1.3, np.inf
    before = digest(learner)
    for wrong, rewards, error, message in [
        (
            batch,
            high,
            ValueError,
            rf"rewards must lie in \[0, 1\], got rewards\[{wanted[0]}, {wanted[1]}\]=1.3; rescale",
        ),
        (batch, low, ValueError, r"rewards must lie in \[0, 1\], got"),
        (batch, endless, ValueError, r"=inf"),
        (
            batch,
            good[:, :0],
            ValueError,
            rf"rewards must have shape \({shape[0]}, {shape[1]}\), got",
        ),
        (
            foreign,
            good,
            ValueError,
            "batch must come from this learner's ask, got batch 0 of learner",
        ),
        ("batch", good, TypeError, "batch must be a Batch, got str"),
    ]:
        with pytest.raises(error, match=message):
            learner.tell(wrong, rewards)
        assert digest(learner) == before
    if batch.learns:
        learner.tell(batch.rows([0]), good[[0]])
        before = digest(learner)
        with pytest.raises(ValueError, match="rows must be told once, got row 0 of batch 0 again"):
            learner.tell(batch, good)
        assert digest(learner) == before


@learners
def test_rewards_nobody_wants_are_accepted_and_ignored(make):
    learner = make(M, K, T, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = learner.ask(1)
    if batch.learns:
        pytest.skip("learns from a single query")
    before = digest(learner)
    learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    assert digest(learner) == before


@learners
def test_asking_never_waits_for_rewards(make):
    learner = make(M, K, T, 4)
    play(learner, 60, T - T % 6, np.random.default_rng(0), tell=False)
    assert learner.queries == T - T % 6


@learners
def test_broken_snapshots_are_refused(make):
    learner = make(M, K, T, 4)
    play(learner, 48, 120, np.random.default_rng(7))
    kind = type(learner)
    good = learner.snapshot()
    for change, message in [
        ({"version": 99}, "snapshot must have version 2, got 99; restore it with the release"),
        ({"format": "other"}, "snapshot must be one of a learner"),
        ({"learner": "Nobody"}, "snapshot must be of one of"),
        ({"rng": {}}, f"snapshot must come from {kind.__name__}.snapshot, got a broken one"),
        ({"config": {"m": 3}}, "got a broken one"),
        ({"arrays": None}, "got a broken one"),
        ({"queries": -5}, "got a broken one"),
        ({"queries": 10**9} if learner.horizon else {"rng": None}, "got a broken one"),
        *[
            ({"arrays": {**good["arrays"], name: np.zeros((1, 1, 1))}}, "got a broken one")
            for name in good["arrays"]
            if not name.startswith(("open_", "pending_", "design_", "committed", "order", "chosen"))
        ],
        *[
            ({"arrays": {n: a for n, a in good["arrays"].items() if n != name}}, "got a broken one")
            for name in good["arrays"]
            if name in ("totals", "counts", "pulled", "played", "remaining", "asked", "chosen")
            or (name.startswith(("pending_", "design_log")) and kind.__name__ == "IWKSVFair")
        ],
    ]:
        with pytest.raises(ValueError, match=message):
            kind.restore({**good, **change})
    other = "URS" if kind.__name__ != "URS" else "ETCG"
    with pytest.raises(
        ValueError, match=f"snapshot must be of {other}, got one of {kind.__name__}"
    ):
        Learner.kinds[other].restore(good)


@learners
@pytest.mark.parametrize(
    ("limit", "error", "message"),
    [
        (0, ValueError, "limit must be at least 1, got limit=0"),
        (2.5, TypeError, "limit must be an integer, got 2.5"),
    ],
)
def test_bad_limits_are_refused(make, limit, error, message):
    with pytest.raises(error, match=message):
        make(M, K, T, 0).ask(limit)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5, 6, 1000, 0), ValueError, "k must satisfy 1 <= k <= m, got k=6 with m=5"),
        ((5, 0, 1000, 0), ValueError, "got k=0 with m=5"),
        ((5, 2, 1000, "seed"), TypeError, "seed must be an integer, got 'seed'"),
        ((5, 2, 1000, -1), ValueError, "seed must be at least 0, got seed=-1"),
    ],
)
@learners
def test_bad_arguments_are_refused(make, arguments, error, message):
    with pytest.raises(error, match=message):
        make(*arguments)


def test_receipts_survive_json():
    for name, make in LEARNERS.items():
        batch = make(M, K, T, 4).ask(60)
        again = Batch.from_dict(json.loads(json.dumps(batch.to_dict())))
        assert again.to_dict() == batch.to_dict(), name
    with pytest.raises(ValueError, match=r"data must come from Batch.to_dict, got a broken one"):
        Batch.from_dict({"orders": []})


@pytest.mark.parametrize("index", [[0, 0], [99], [-1], [[0]]])
def test_rows_of_a_receipt_are_checked(index):
    batch = LEARNERS["gap_e"](M, K, T, 4).ask(12)
    with pytest.raises(ValueError, match="index must"):
        batch.rows(index)

"""Details of rows, plans, snapshots and evidence that nothing else would notice."""

import io
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evenhand
from evenhand.exchange import Batch, Ledger, Plan, Roster, Rows, SetPlan, shelf
from evenhand.exchange.fields import Field, write
from evenhand.exchange.ledger import MOST, as_rows
from evenhand.exchange.snapshot import checksum, sealed
from evenhand.learners import ETCG, EvenHand, GapE, IWKSVFair, Learner
from evenhand.learners.evidence import Evidence
from evenhand.learners.means import Means
from evenhand.randomness.state import to_bytes
from evenhand.randomness.streams import as_generator
from evenhand.storage import read_arrays, write_arrays

M, K = 6, 3
VERSION2 = Path(__file__).with_name("version2")


def half(batch):
    return np.full(batch.sizes.shape, 0.5)


def forged(learner, **changes):
    """A snapshot with some of its parts changed, and a checksum that fits."""
    snapshot = learner.snapshot()
    for name, change in changes.items():
        snapshot[name] = {**snapshot[name], **change}
    frame = ("format", "version", "checksum")
    return sealed({name: part for name, part in snapshot.items() if name not in frame})


# ---- ledger ----


def test_rows_in_a_slice_are_the_same_rows_after_others_expired():
    ledger = Ledger(keep=3, notes={"arms": 9})
    ledger.open(5, arms=np.arange(5))
    assert ledger.read("arms", slice(2, 4)).tolist() == [2, 3]
    ledger.settle(slice(2, 3), missing=False)
    with pytest.raises(evenhand.AlreadyTold, match="got row 2 again"):
        ledger.check(np.array([2]))
    ledger.check(np.array([4, 3]))


def test_numbers_out_of_order_are_no_slice():
    assert as_rows(np.array([3, 4, 5])) == slice(3, 6)
    for numbers in ([0, 2, 1, 3], [0, 1, 1, 3], [2, 1, 0], [0, 5, -2, 3]):
        assert not isinstance(as_rows(np.array(numbers)), slice)


def test_rows_told_out_of_order_get_their_own_rewards():
    one = EvenHand(40, 3, seed=1)
    batch = one.ask(4)
    other = EvenHand.restore(one.snapshot())
    assert len(batch.orders) == 4
    rewards, places = np.array([[0.1], [0.9], [0.3], [0.7]]), [0, 2, 1, 3]
    one.tell(batch, rewards)
    other.tell(batch.rows(places), rewards[places])
    np.testing.assert_allclose(other.evidence.weighted, one.evidence.weighted, rtol=1e-12)


def test_an_open_row_is_seen_though_those_before_it_expired():
    ledger = Ledger(keep=3)
    ledger.open(5)
    ledger.settle(np.array([3, 4]), missing=False)
    assert ledger.any_open(0, 5)
    ledger.settle(np.array([2]), missing=False)
    assert not ledger.any_open(0, 5)


def test_a_ledger_takes_back_only_what_one_could_have_given():
    ledger = Ledger(keep=4, notes={"arms": 5})
    ledger.open(3, arms=np.array([0, 5, -1]))
    good = ledger.arrays()
    Ledger(notes={"arms": 5}).set_arrays(good)
    for arms in ([0, 6, 1], [-2, 0, 0]):
        with pytest.raises(ValueError, match=r"arms must lie in -1\.\.5"):
            Ledger(notes={"arms": 5}).set_arrays(good | {"arms": np.array(arms, np.int8)})
    for span in ([2, 0, 3], [4, 3, 0], [4, -3, 0]):  # more rows than are kept, or less than none
        with pytest.raises(ValueError, match="span must hold keep and the first and next row"):
            Ledger(notes={"arms": 5}).set_arrays(good | {"span": np.array(span)})


def test_a_ledger_is_bounded_whatever_is_asked_of_it():
    ledger = Ledger()
    ledger.keep = 2**40
    assert ledger.keep == MOST


def test_the_row_that_was_told_is_named():
    ledger = Ledger()
    ledger.open(6)
    ledger.settle(slice(4, 5), missing=False)
    with pytest.raises(evenhand.AlreadyTold, match="got row 4 again"):
        ledger.check(slice(2, 6))


@pytest.mark.parametrize("most", [126, 127, 128, 129, 32767, 32768])
def test_notes_hold_the_largest_they_may_be(most):
    ledger = Ledger(notes={"arms": most})
    ledger.open(2, arms=np.array([most, -1]))
    found = ledger.read("arms", slice(0, 2))
    assert found.tolist() == [most, -1]
    assert found.dtype == np.int64  # arithmetic with them must not overflow


def test_many_arms_are_credited_in_every_phase():
    learner = ETCG(200, 2, 3000, seed=1)
    batch = learner.ask(250)
    learner.tell(batch, half(batch))
    while batch.sizes[0, 0] == 1:
        batch = learner.ask(250)
        learner.tell(batch, half(batch))
    counts = learner._greedy.means.counts[1]
    assert counts.sum() == len(batch.orders)
    assert set(np.flatnonzero(counts)) == set(batch.orders[:, 1].tolist())


# ---- shelf ----


def test_the_least_recent_rows_leave_memory_first(monkeypatch):
    monkeypatch.setattr(shelf, "CACHED_ROWS", 8)
    learner = EvenHand(40, 3, seed=1)
    batches = [learner.ask(4) for _ in range(6)]
    assert [len(batch.orders) for batch in batches] == [4] * 6
    in_memory = [e.drawn is not None for e in learner._shelf._entries]
    assert in_memory == [False, False, False, True, True, True]  # two of four rows, and the newest
    learner.tell(batches[0].rows([1]), 0.5)
    in_memory = [e.drawn is not None for e in learner._shelf._entries]
    assert in_memory == [True, False, False, False, True, True]


def test_nothing_is_kept_of_plans_that_are_told_in_time():
    learner = EvenHand(40, 3, seed=1)
    for _ in range(20):
        batch = learner.ask()
        learner.tell(batch, half(batch))
    assert len(learner._shelf._entries) == 1
    late = [learner.ask() for _ in range(5)]
    for batch in late:
        learner.tell(batch, half(batch))
    assert set(learner._shelf._cached) == {entry.first for entry in learner._shelf._entries}


def test_a_receipt_across_plans_credits_each_row_with_its_own_reward():
    learner = EvenHand(40, 3, seed=1)
    batches = [learner.ask(4) for _ in range(3)]
    other = EvenHand.restore(learner.snapshot())
    rewards = np.random.default_rng(3).random((12, 1))
    numbers = np.array([9, 2, 5, 0, 11, 7])
    learner.tell(replace(batches[0], index=numbers), rewards[numbers])
    for row in numbers.tolist():
        other.tell(batches[row // 4].rows([row % 4]), rewards[[row]])
    np.testing.assert_allclose(learner.evidence.weighted, other.evidence.weighted, rtol=1e-12)


def test_a_plan_with_rows_to_ask_stays_when_those_asked_are_told():
    learner = EvenHand(200, 3, seed=2)
    batch = learner.ask(4)  # of a plan of 20 rows
    other = EvenHand.restore(learner.snapshot())
    learner.tell(batch.rows([2, 0, 3, 1]), half(batch))
    other.tell(batch, half(batch))
    assert learner.ask(5).index.tolist() == [4, 5, 6, 7, 8]
    assert learner.ask(5).orders.tolist() == [row.tolist() for row in other.ask(10).orders[5:]]


def test_plans_whose_rows_expired_are_dropped():
    learner = EvenHand(M, K, seed=2)
    learner.ledger.keep = 3
    for _ in range(9):
        assert len(learner.ask().orders) == 1
    # the last plan was made when rows 5..7 were kept
    assert [entry.first for entry in learner._shelf._entries] == [5, 6, 7, 8]


def test_rows_of_other_sizes_are_not_the_rows_that_were_asked(monkeypatch):
    learner = EvenHand(M, K, seed=2)
    batch = learner.ask()
    while not (batch.sizes > 1).any():
        batch = learner.ask()
    learner.ask()
    moved, draw = EvenHand.restore(learner.snapshot()), SetPlan.draw

    def cut(self, n, rng):
        rows = draw(self, n, rng)
        return rows._replace(sizes=np.ones_like(rows.sizes))

    monkeypatch.setattr(SetPlan, "draw", cut)
    with pytest.raises(ValueError, match="come out differently here"):
        moved.tell(batch, half(batch))


def test_rows_skipped_elsewhere_are_not_out(monkeypatch):
    learner = EvenHand(200, 3, seed=2)
    first = learner.ask(4)  # of a plan of 20 rows
    learner.tell(first, half(first))
    moved, draw = EvenHand.restore(learner.snapshot()), SetPlan.draw

    def other(self, n, rng):
        rows = draw(self, n, rng)
        return Rows(rows.orders[::-1].copy(), rows.sizes[::-1].copy(), rows.weights[::-1].copy())

    monkeypatch.setattr(SetPlan, "draw", other)
    batch = moved.ask(5)
    assert batch.index.tolist() == [4, 5, 6, 7, 8]  # rows that were never asked take no numbers
    assert moved.ledger.n_open == 5
    assert [entry.first for entry in moved._shelf._entries] == [4]


def taken_over(learner, change):
    """Let a shelf take over what another one gave, its first rows and counts changed."""
    data = learner._shelf.to_array().copy()
    heads = data[:, :16].copy().view("<i8")
    change(heads)
    data[:, :16] = heads.view(np.uint8)
    return shelf.Shelf("PCG64").set_array(data, learner.ledger)


def test_a_shelf_takes_back_only_what_one_could_have_given():
    learner = EvenHand(40, 3, seed=1)
    for _ in range(4):
        learner.ask()
    assert isinstance(taken_over(learner, lambda heads: None), Plan)
    for place, value in (((2, 0), 3), ((1, 1), 0), ((1, 1), 5), ((0, 0), -1), ((3, 1), 2**40)):
        with pytest.raises(ValueError, match="plans must follow each other"):
            taken_over(learner, lambda heads: heads.__setitem__(place, value))  # noqa: B023
    for place, value in (((3, 1), 3), ((3, 0), 17)):
        with pytest.raises(ValueError, match="the newest plan must hold row 16"):
            taken_over(learner, lambda heads: heads.__setitem__(place, value))  # noqa: B023


# ---- plans ----


def test_plans_without_room_for_their_mixing_are_refused():
    marginals, sizes = np.array([0.9, 0.5, 0.4, 0.2]), np.array([0.5, 0.5])
    Plan.from_bytes(SetPlan(0, np.arange(4), 2, marginals, sizes, np.full(2, 0.2)).to_bytes())
    for wrong in (
        SetPlan(0, np.arange(4), 2, marginals.copy(), sizes, np.full(2, 0.5)),  # 0.2 is below 0.25
        SetPlan(0, np.arange(4), 2, marginals * 0.9, sizes, np.full(2, 0.2)),
        SetPlan(0, np.arange(4), 2, marginals.copy(), sizes * 0.9, np.full(2, 0.2)),
        SetPlan(0, np.arange(4), 2, marginals.copy(), np.array([1.5, -0.5]), np.full(2, 0.2)),
        SetPlan(0, np.arange(4), 2, marginals.copy(), sizes, np.array([-0.2, 0.3])),
    ):
        with pytest.raises(ValueError, match="but its marginals are wrong"):
            Plan.from_bytes(wrong.to_bytes())


def test_the_newest_plan_is_the_learners_own():
    learner = EvenHand(M, K, seed=1)
    for _ in range(4):
        learner.ask()
    EvenHand.restore(forged(learner))
    for plans in (0, 3, 5):
        with pytest.raises(ValueError, match="the newest plan must be number"):
            EvenHand.restore(forged(learner, values={"plans": plans}))
    other = EvenHand(M, K - 1, seed=1)
    for _ in range(4):
        other.ask()
    with pytest.raises(ValueError, match="the newest plan must be number 3 of m=6 and k=3"):
        EvenHand.restore(forged(learner, arrays={"plans": other.snapshot()["arrays"]["plans"]}))
    with pytest.raises(ValueError, match="the newest plan is missing"):
        EvenHand.restore(forged(learner, arrays={"plans": np.zeros((0, 0), np.uint8)}))


# ---- batches ----


def test_some_rows_keep_their_own_targets():
    batch = GapE(M, K, 3000, seed=1).ask(12)
    some = batch.rows([4, 1])
    assert some.exposure.arms.tolist() == batch.exposure.arms[[4, 1]].tolist()


def test_receipts_keep_names_and_refuse_what_is_no_arm():
    batch = EvenHand(3, 2, names=["ada", "bob", "cy"], seed=1).ask(1)
    again = Batch.from_dict(batch.to_dict())
    assert again.names == batch.names
    assert again.sets() == batch.sets()
    for orders in ([[-1, -1]], [[3, -1]]):
        with pytest.raises(ValueError, match="orders must hold arms"):
            Batch.from_dict(batch.to_dict() | {"orders": orders, "sizes": [[1]]})


# ---- fields and snapshots ----


class Part:
    def __init__(self):
        self.number, self.array = 1.0, np.ones(3)


@pytest.mark.parametrize("bad", [-0.5, 2.5, np.nan, np.inf])
def test_fields_refuse_what_is_outside_their_range(bad):
    fields = {"number": Field(0, 2), "array": Field(0, 2)}
    write(Part(), fields, {"number": 2.0}, {"array": np.array([0.0, 1.0, 2.0])})
    with pytest.raises(ValueError, match=r"number must be a number of type float in \[0, 2\]"):
        write(Part(), fields, {"number": bad}, {"array": np.ones(3)})
    with pytest.raises(ValueError, match=r"array must lie in \[0, 2\] and not be nan"):
        write(Part(), fields, {"number": 1.0}, {"array": np.array([1.0, bad, 1.0])})


def test_fields_obey_their_rule():
    fields = {"array": Field(rule=lambda array: "must be different")}
    with pytest.raises(ValueError, match="array must be different"):
        write(Part(), fields, {}, {"array": np.ones(3)})


def test_a_snapshot_shares_no_memory():
    learner = EvenHand(M, K, seed=1)
    snapshot = learner.snapshot()
    before = checksum({n: x for n, x in snapshot.items() if n != "checksum"})
    for one in (learner, EvenHand.restore(snapshot)):
        for _ in range(20):
            batch = one.ask()
            one.tell(batch, half(batch))
        assert checksum({n: x for n, x in snapshot.items() if n != "checksum"}) == before


def test_arrays_that_changed_places_are_noticed():
    learner = IWKSVFair(M, K, 900, eta=0.4, seed=1)
    snapshot = learner.snapshot()
    arrays = dict(snapshot["arrays"])
    arrays["evidence.counts"] = arrays["evidence.counts"] + 1
    one = checksum({"arrays": arrays})
    arrays["evidence.kounts"] = arrays.pop("evidence.counts")  # at the same place when sorted
    assert checksum({"arrays": arrays}) != one


def test_no_more_queries_than_the_horizon_are_restored():
    learner = IWKSVFair(M, K, 900, eta=0.4, seed=1)
    assert IWKSVFair.restore(forged(learner, values={"queries": 900})).done
    with pytest.raises(ValueError, match=r"queries must be a number of type int in \[0, 900\]"):
        IWKSVFair.restore(forged(learner, values={"queries": 901}))


# ---- learners ----


def test_a_row_of_the_empty_set_and_a_missing_reward_is_closed():
    learner = GapE(M, K, 3000, seed=1)
    batch = learner.ask(60)
    row = np.flatnonzero(batch.sizes[:, 0] == 0)[:1]
    learner.tell(batch.rows(row), [[0.0, np.nan]])
    with pytest.raises(evenhand.AlreadyTold, match=f"row {row[0]} was closed"):
        learner.tell(batch.rows(row), [[0.0, 0.5]])


@pytest.mark.parametrize("what", ["ask", "tell", "snapshot", "estimate", "base estimate"])
def test_every_call_waits_for_its_turn(what):
    learner = EvenHand(M, K, seed=1)
    batch = learner.ask()
    call = {
        "ask": learner.ask,
        "tell": lambda: learner.tell(batch, half(batch)),
        "snapshot": learner.snapshot,
        "estimate": learner.estimate,
        "base estimate": lambda: Learner.estimate(learner),
    }[what]
    thread = threading.Thread(target=call)
    with learner._lock:
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join(30)
    assert not thread.is_alive()


def test_ids_are_not_reused_by_those_who_join_later():
    roster = Roster.of(2).add(2, joined=5).add(1, joined=9)
    assert roster.ids.tolist() == [0, 1, 2, 3, 4]
    assert roster.retire([4]).add(1, joined=9).ids.tolist() == [0, 1, 2, 3, 5]


# ---- evidence ----


def test_means_skip_gains_next_to_a_gap_and_arms_without_data():
    means = Means(4)
    rows = Rows(np.array([[2, 0, 1]]), np.array([[1, 2, 3]]), np.ones((1, 3)))
    means.absorb(rows, np.array([[0.2, np.nan, 0.8]]))
    assert means.counts.tolist() == [0, 0, 1, 0]
    np.testing.assert_array_equal(means.estimate(), [np.nan, np.nan, 0.2, np.nan])


def test_merged_evidence_has_all_of_both():
    whole = Evidence(3, 2)
    rows = Rows(np.array([[0, 1], [2, -1]]), np.array([[2], [1]]), np.array([[7.0, 3.0], [1, 0]]))
    whole.estimate()
    branch = whole.branch()
    branch.absorb(rows, np.array([[0.75], [0.25]]))
    whole.merge(branch)
    once = Evidence(3, 2)
    once.absorb(rows, np.array([[0.75], [0.25]]))
    assert (whole.told, whole.largest) == (once.told, once.largest) == (2, 7.0)
    for mine, theirs in zip(whole.sums, once.sums, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(whole.estimate().merit, once.estimate().merit)


# ---- version 2 ----


def test_the_generator_of_version_2_is_the_one_that_was_saved():
    _, old = read_arrays(VERSION2 / "urs.npz")
    assert to_bytes(evenhand.load(VERSION2 / "urs.npz")._rng.bit_generator.state) == to_bytes(
        old["rng"]
    )


def changed(name, path, arrays):
    """A learner of version 2 with some arrays of its own."""
    old, values = read_arrays(VERSION2 / f"{name}.npz")
    write_arrays(path / f"{name}.npz", {**old, **arrays}, values)
    return evenhand.load(path / f"{name}.npz")


@pytest.mark.filterwarnings("ignore:rows that were out")
def test_gains_of_version_2_that_were_chosen_are_asked_next(tmp_path):
    pending = {
        "pending_arms": np.array([2, 4]),
        "pending_orders": np.array([[2, 0, 1], [5, 4, 3]]),
        "pending_sizes": np.array([[0, 1], [1, 2]]),
    }
    batch = changed("gap_e", tmp_path, pending).ask(4)
    assert batch.orders.tolist() == [[2, -1, -1], [5, 4, -1]]
    assert batch.sizes.tolist() == [[0, 1], [1, 2]]
    assert batch.exposure.arms.tolist() == [2, 4]


@pytest.mark.filterwarnings("ignore:rows that were out")
def test_a_policy_of_version_2_that_was_committed_to_stays(tmp_path):
    policy = np.array([0.1, 0.2, 0.3, 0.6, 0.8, 1.0])
    arrays = {"remaining": np.zeros(M, np.int64), "committed": policy, "order": np.arange(M)[::-1]}
    learner = changed("muras", tmp_path, arrays)
    np.testing.assert_array_equal(learner.marginals, policy)
    assert learner._order.tolist() == [5, 4, 3, 2, 1, 0]
    assert not learner.ask(50).learns


def test_version_2_is_read_by_our_own_classes():
    theirs = type("URS", (evenhand.learners.URS,), {"__module__": "elsewhere"})
    try:
        assert type(evenhand.load(VERSION2 / "urs.npz")) is evenhand.learners.URS
    finally:
        del Learner.kinds[theirs.name]


# ---- random streams ----


def test_seeds_that_were_spawned_differ():
    seed = np.random.SeedSequence(5)
    children = np.random.SeedSequence(5).spawn(6)
    draws = [as_generator(child, "learner").random() for child in (seed, *children)]
    draws += [np.random.default_rng(child).random() for child in (seed, *children)]
    assert len(set(draws)) == len(draws)  # a learner shares no numbers with the caller's own


# ---- files ----


class Opened:
    """Says when it is unpickled."""

    times = 0

    def __reduce__(self):
        return _open, ()


def _open():
    Opened.times += 1
    return 0


def test_nothing_in_a_file_is_run(tmp_path):
    evenhand.save(EvenHand(M, K, seed=1), tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz") as data:
        arrays = dict(data)
    np.savez(tmp_path / "bad.npz", **arrays, extra=np.array([Opened()], object))
    with pytest.raises(ValueError, match="must be a file written by"):
        evenhand.load(tmp_path / "bad.npz")
    assert Opened.times == 0


def test_damaged_compressed_files_are_refused(tmp_path):
    evenhand.save(EvenHand(M, K, seed=1), tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz") as data:
        np.savez_compressed(tmp_path / "small.npz", **data)
    assert evenhand.load(tmp_path / "small.npz").m == M
    whole = (tmp_path / "small.npz").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        info = max(archive.infolist(), key=lambda one: one.compress_size)
    head = whole[info.header_offset :]
    name, extra = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
    start = info.header_offset + 30 + name + extra
    damaged = whole[:start] + b"\xff" * 20 + whole[start + 20 :]
    (tmp_path / "bad.npz").write_bytes(damaged)
    with pytest.raises(ValueError, match="must be a file written by"):
        evenhand.load(tmp_path / "bad.npz")

"""What a user of a learner sees: names, reprs, seeds, refusals."""

import threading

import numpy as np
import pytest

import evenhand
from evenhand.exchange.snapshot import sealed
from evenhand.games import NoisyOr
from evenhand.learners import ETCG, URS, EvenHand, GapE, IWKSVFair, Learner, MURaS
from evenhand.storage import read_arrays, write_arrays

NAMES = ["ada", "bob", "cy", "dee"]


def test_the_same_integer_is_not_the_same_numbers_twice():
    learner = EvenHand(4, 2, seed=1)
    assert learner._rng.random() != np.random.default_rng(1).random()
    one, other = EvenHand(4, 2, seed=1), EvenHand(4, 2, seed=np.random.SeedSequence(1))
    np.testing.assert_array_equal(one._rng.random(5), other._rng.random(5))
    given = np.random.default_rng(1)
    assert EvenHand(4, 2, seed=given)._rng is given
    draws = {
        float(evenhand.randomness.streams.as_generator(1, name).random())
        for name in evenhand.randomness.streams.STREAMS
    }
    assert len(draws) == len(evenhand.randomness.streams.STREAMS)


def test_a_class_of_the_same_name_does_not_take_ours_place(tmp_path):
    evenhand.save(EvenHand(4, 2, seed=1), tmp_path / "learner.npz")
    ours = EvenHand
    theirs = type("EvenHand", (ours,), {"__module__": "elsewhere"})  # registers itself
    assert type(evenhand.load(tmp_path / "learner.npz")) is ours
    with pytest.raises(TypeError, match="name must be one's own, got 'even-hand' of evenhand"):
        type("Mine", (ours,), {"__module__": "elsewhere", "name": "even-hand"})
    learner = theirs(4, 2, seed=1)
    evenhand.save(learner, tmp_path / "theirs.npz")
    assert type(evenhand.load(tmp_path / "theirs.npz")) is theirs
    del Learner.kinds[theirs.name]
    with pytest.raises(ValueError, match=r"snapshot must be of one of .* got 'elsewhere"):
        evenhand.load(tmp_path / "theirs.npz")


def test_names_are_shown_wherever_arms_are():
    learner = EvenHand(4, 2, names=NAMES, seed=1)
    while learner.queries < 200:
        batch = learner.ask()
        assert all(name in NAMES for arms in batch.sets() for name in arms)
        learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    assert learner.names == learner.estimate().names == tuple(NAMES)
    for text in (learner._repr_html_(), learner.estimate()._repr_html_(), batch._repr_html_()):
        assert any(f">{name}" in text for name in NAMES)
    run = evenhand.simulate(learner, NoisyOr([0.1, 0.2, 0.3, 0.4]), 300, seed=1)
    assert run.names == tuple(NAMES)
    labels = [text.get_text() for text in evenhand.plot.exposure(learner).texts]
    assert set(labels) == set(NAMES)
    again = EvenHand.restore(learner.snapshot())
    assert again.names == tuple(NAMES)


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        (URS(5, 2, seed=1), "URS(m=5, k=2, queries=0)"),
        (ETCG(5, 2, 100, seed=1), "ETCG(m=5, k=2, horizon=100, queries=0)"),
        (EvenHand(5, 2, seed=1), "EvenHand(m=5, k=2, sizes=[0.6, 0.4], queries=0)"),
        (
            EvenHand(50, 8, seed=1),
            "EvenHand(m=50, k=8, sizes=[0.6, 0.0571429, 0.0571429, 0.0571429, 0.0571429, "
            "0.0571429, ...], queries=0)",
        ),
        (
            MURaS(5, 2, 1000, lam=8, seed=1),
            "MURaS(m=5, k=2, horizon=1000, lam=8, rounding=DependentRounding, shuffled=True, "
            "queries=0)",
        ),
    ],
)
def test_learners_show_themselves_in_a_line(learner, text):
    assert repr(learner) == text


def test_an_estimate_holds_all_conclusions():
    learner = EvenHand(4, 2, seed=1)
    while learner.queries < 500:
        batch = learner.ask()
        learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    found = learner.estimate()
    np.testing.assert_array_equal(found.merit, learner.merit)
    np.testing.assert_array_equal(found.marginals, learner.marginals)
    np.testing.assert_array_equal(found.intervals, learner.intervals())
    assert found.stderr.shape == (4,)
    assert found.asked.sum() >= 500
    assert found.queries == learner.queries
    assert repr(found).startswith(f"Estimate(m=4, queries={learner.queries}, merit=")
    plain = GapE(4, 2, 100, seed=1).estimate()
    assert np.isnan(plain.stderr).all()
    assert plain.intervals is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda path: evenhand.save(3, path), TypeError, "learner must be a Learner, got int"),
        (
            lambda path: evenhand.save(URS(3, 1, seed=1), path / "no" / "where.npz"),
            FileNotFoundError,
            r"folder .*no does not exist; make it first",
        ),
        (lambda path: evenhand.load(path / "none.npz"), FileNotFoundError, "none.npz"),
        (
            lambda path: evenhand.Batch.from_dict("{}"),
            TypeError,
            "data must be a dictionary, got str; json.loads it first",
        ),
        (
            lambda path: evenhand.Batch.from_dict({}),
            ValueError,
            r"data must come from Batch.to_dict, but 'owner' is missing",
        ),
        (lambda path: EvenHand(10**12, 2, seed=1), ValueError, "would take .* GiB of memory"),
        (lambda path: EvenHand(True, 1, seed=1), TypeError, "m must be an integer, got True"),
        (lambda path: EvenHand(3, 1, seed=True), TypeError, "seed must be an integer, got True"),
        (lambda path: URS(3, 1, seed=1).ask(True), TypeError, "limit must be an integer, got True"),
        (lambda path: IWKSVFair(3, 1, None, eta=0.5, seed=1), TypeError, "horizon must be an int"),
        (lambda path: ETCG(3, 1, None, seed=1), TypeError, "horizon must be an integer, got None"),
    ],
)
def test_refusals_name_the_argument_and_the_way_out(call, error, message, tmp_path):
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_emptied_files_are_refused(tmp_path):
    evenhand.save(EvenHand(4, 2, seed=1), tmp_path / "learner.npz")
    arrays, values = read_arrays(tmp_path / "learner.npz")
    for change in ({"values": {}}, {"config": {}}, {"rng": None}, {"owner": None}):
        write_arrays(tmp_path / "bad.npz", arrays, {**values, **change})
        with pytest.raises(ValueError, match="snapshot must be as it was made, but its checksum"):
            evenhand.load(tmp_path / "bad.npz")
    write_arrays(tmp_path / "bad.npz", {}, {**values})
    with pytest.raises(ValueError, match="checksum is wrong"):
        evenhand.load(tmp_path / "bad.npz")


def test_two_threads_may_share_a_learner():
    """Every row is asked once and told once, whoever does it."""
    learner, asked, failed = EvenHand(6, 3, seed=1), [], []

    def work():
        try:
            for _ in range(300):
                batch = learner.ask(3)
                asked.extend(batch.index.tolist())
                learner.tell(batch, np.full(batch.sizes.shape, 0.5))
        except Exception as error:  # a thread's error would be lost
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(asked) == list(range(learner.ledger.next))
    assert learner.evidence.told == len(asked) == learner.queries
    assert learner.ledger.n_open == 0


def forged(learner, **change):
    """A snapshot with other content and a checksum that fits."""
    good = learner.snapshot()
    names = ("learner", "config", "owner", "rng", "values", "arrays")
    return sealed({**{name: good[name] for name in names}, **change})


def test_states_of_generators_that_reach_outside_are_refused():
    learner = URS(4, 2, seed=np.random.Generator(np.random.MT19937(1)))
    bits = bytearray.fromhex(learner.snapshot()["rng"]["state"])
    for place, value in ((-16, 625), (-13, 2)):  # the place in the key, small and huge
        changed = bytearray(bits)
        changed[place : place + 2 if place + 2 else None] = value.to_bytes(2, "little")
        with pytest.raises(ValueError, match="pos of MT19937 must be at most 624"):
            URS.restore(forged(learner, rng={"kind": "MT19937", "state": changed.hex()}))
    plain = URS(4, 2, seed=1)
    with pytest.raises(ValueError, match=r"snapshot must be as URS\.snapshot returned it"):
        URS.restore(forged(plain, rng={"kind": "PCG64", "state": "ff" * 64}))


def test_rewards_come_in_many_types():
    learner = EvenHand(6, 3, sizes=[1, 1, 1], seed=1)
    for rewards in (np.int64(1), np.float32(0.5), True, np.array([[1]], np.uint8)):
        learner.tell(learner.ask(1), rewards)
    assert learner.evidence.told == 4
    wide = IWKSVFair(6, 2, 900, eta=0.5, seed=1)
    wide.tell(wide.ask(2), [np.int64(1), None])
    wide.tell(wide.ask(2), np.ma.masked_array([0.5, 0.9], mask=[False, True]))
    assert wide.evidence.counts.sum() == 2  # what is masked or None is missing
    with pytest.raises(TypeError, match="rewards must be numbers"):
        wide.tell(wide.ask(2), [10**400, 0])


def test_damaged_files_are_refused_kindly(tmp_path):
    evenhand.save(URS(4, 2, seed=1), tmp_path / "learner.npz")
    data = bytearray((tmp_path / "learner.npz").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 8] |= 1  # the flag of an encrypted entry
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"bad\.npz must be a file written by evenhand\.save"):
        evenhand.load(tmp_path / "bad.npz")


def test_rosters_take_names_or_a_number():
    from evenhand.exchange import Roster

    assert Roster.of(2, ["a", "b"]).add("cd", joined=0).names == ("a", "b", "cd")
    with pytest.raises(ValueError, match="names must be new, but 'b' is there already"):
        Roster.of(2, ["a", "b"]).add("b", joined=0)
    for wrong in (None, ["a", 0], 0.5, True, [[0, 1], [0]]):
        with pytest.raises(TypeError, match="arms must be names or ids, one or a list of them"):
            Roster.of(2, ["a", "b"]).pause(wrong)
    for one in ("a", ["a"], {"a"}, 0, np.array(0), (arm for arm in "a")):
        assert Roster.of(2, ["a", "b"]).pause(one).names == ("b",)
    with pytest.raises(ValueError, match="arms must be present, but 'a' is paused already"):
        Roster.of(2, ["a", "b"]).pause("a").pause("a")
    for wrong in (0, -1, True):
        with pytest.raises((TypeError, ValueError), match="names must be"):
            Roster.of(2).add(wrong, joined=0)
    assert Roster.of(2).add(np.int64(2), joined=0).m == 4
    with pytest.raises(ValueError, match="ids must be of arms present, got 0"):
        Roster.of(1).retire([0]).columns([0])

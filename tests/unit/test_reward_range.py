"""Rewards in a range of their own, and an empty set that is worth something."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

import evenhand
from evenhand.exchange.rewards import check_rewards
from evenhand.games import Bernoulli, SetFunction, TruncatedGaussian
from evenhand.learners import ETCG, URS, EvenHand, FairCMAB, FullSets, GapE, IWKSVFair, MURaS
from evenhand.testing import keeping, telling

M, K, T = 8, 3, 1000
WORTH = np.array([-0.04, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3])
LEARNERS = {
    "even_hand": lambda **units: EvenHand(M, K, **units, seed=1),
    "full_sets": lambda **units: FullSets(M, K, **units, seed=1),
    "iw_ksvfair": lambda **units: IWKSVFair(M, K, T, eta=0.4, **units, seed=1),
    "muras": lambda **units: MURaS(M, K, T, lam=4.0, **units, seed=1),
    "gap_e": lambda **units: GapE(M, K, T, **units, seed=1),
    "etcg": lambda **units: ETCG(M, K, T, **units, seed=1),
    "fair_cmab": lambda **units: FairCMAB(M, K, T, **units, seed=1),
    "urs": lambda **units: URS(M, K, **units, seed=1),
}


def copies(low=-0.125, noise=None):
    """A game in [low, low + 1] whose empty set is worth 0, and 3 + 8 times it.

    Rewards of 0 and 1 are mapped without rounding.
    """
    empty, scale = 3.0, 8.0

    def bring(sets):
        return sets @ WORTH - 0.05 * (sets[:, 6] & sets[:, 7])

    noise = Bernoulli() if noise is None else noise
    ends = empty + scale * low, empty + scale * (low + 1.0)
    plain = SetFunction(bring, M, noise=noise, rewards=(low, low + 1.0))
    other = SetFunction(
        lambda sets: empty + scale * bring(sets), M, noise=noise, rewards=ends, empty=empty
    )
    return plain, other


def played(learner, game):
    asks = []
    run = evenhand.simulate(learner, game, T, seed=2, watch=lambda b: asks.append(b.orders))
    return np.concatenate(asks), run, learner.estimate()


@pytest.mark.parametrize("name", LEARNERS)
def test_a_shifted_and_scaled_game_has_the_same_policy_and_scaled_merits(name):
    plain, other = copies()
    asks, run, found = played(LEARNERS[name](rewards=plain.rewards), plain)
    units = {"rewards": other.rewards, "empty": other.empty}
    same_asks, same_run, same = played(LEARNERS[name](**units), other)
    assert np.array_equal(asks, same_asks)
    np.testing.assert_allclose(same_run.regret, run.regret, rtol=1e-9)  # targets are rounded
    assert np.array_equal(same.marginals, found.marginals)
    assert np.array_equal(same.merit, 8.0 * found.merit, equal_nan=True)
    assert np.array_equal(same.stderr, 8.0 * found.stderr, equal_nan=True)
    assert (found.intervals is None) == (name not in ("even_hand", "full_sets"))
    if found.intervals is not None:
        assert np.array_equal(same.intervals, 8.0 * found.intervals)
    if name != "urs":
        assert same_run.reward == pytest.approx(3.0 + 8.0 * run.reward)


def test_rewards_from_0_are_those_of_a_plain_learner():
    """With rewards from ``empty`` on, what is inside is what it was for rewards in [0, 1]."""
    rng, twin = np.random.default_rng(1), EvenHand(M, K, rewards=(-2, 6), empty=-2, seed=1)
    learner = EvenHand(M, K, seed=1)
    for _ in range(50):
        batch, same = learner.ask(), twin.ask()
        assert np.array_equal(batch.orders, same.orders)
        rewards = rng.integers(0, 9, batch.sizes.shape) / 8  # exact in binary
        learner.tell(batch, rewards)
        twin.tell(same, 8 * rewards - 2)
    assert np.array_equal(twin.merit, 8 * learner.merit)
    assert np.array_equal(twin.intervals(), 8 * learner.intervals())


def listed_merits(game, empty):
    """K-Shapley values by the definition, the empty set being worth what is given."""

    def worth(members):
        inside = np.isin(np.arange(M), members)
        return game.f(inside[None, :])[0] if members else empty

    merits = np.zeros(M)
    for a in range(M):
        rest = [b for b in range(M) if b != a]
        for s in range(K):
            gains = [worth((*before, a)) - worth(before) for before in combinations(rest, s)]
            merits[a] += np.mean(gains) / K
    return merits


def test_merits_are_the_definitions_and_need_the_empty_set():
    plain, other = copies(noise=TruncatedGaussian(sd=0.1))
    right = listed_merits(other, other.empty)
    np.testing.assert_allclose(right, 8.0 * listed_merits(plain, 0.0), atol=1e-12)
    np.testing.assert_allclose(evenhand.kshapley(other, K), right, atol=1e-12)
    np.testing.assert_allclose(listed_merits(other, 0.0), right + other.empty / K, atol=1e-12)
    for estimator in (evenhand.merit.stratified, evenhand.merit.monte_carlo):
        found = estimator(other, K, 20_000, np.random.default_rng(3))
        assert np.all(np.abs(found.merit - right) < 4.5 * found.stderr)
        assert found.stderr.max() < 0.1 * other.empty / K  # it would show


def test_scaling_alone_gives_another_policy():
    """Without ``empty``, each merit holds a part of what nobody brings."""
    _, game = copies(noise=TruncatedGaussian(sd=0.1))  # rewards from 2 to 10
    merit = evenhand.kshapley(game, K)
    due = evenhand.fair_policy(np.maximum(merit, 0.0), K)
    far = []
    for units in ({"rewards": (2, 10), "empty": 3}, {"rewards": (0, 10)}):
        learner, rng = EvenHand(M, K, **units, seed=1), np.random.default_rng(4)
        while learner.queries < T:
            batch = learner.ask()
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        shift = 0.0 if "empty" in units else game.empty / K
        assert np.all(np.abs(learner.merit - merit - shift) < 0.4)
        far.append(np.abs(learner.marginals - due).sum())
    assert far[0] < 0.4
    assert far[1] > 0.8


def test_intervals_hold_the_merits():
    """In the units of rewards, with rewards below those of the empty set."""
    _, game = copies()
    merit, outside = evenhand.kshapley(game, K), 0
    for seed in range(3):
        learner = EvenHand(M, K, rewards=game.rewards, empty=game.empty, seed=seed)
        evenhand.simulate(learner, game, 3000, seed=seed)
        low, high = learner.intervals().T
        outside += int(np.sum((merit < low) | (merit > high)))
        assert np.median(high - low) < 8.0  # the range of one reward
    assert outside == 0


def test_simulate_wants_both_to_agree_on_the_empty_set():
    _, game = copies()
    with pytest.raises(ValueError, match=r"learner.empty=2.9 and 3 in the game; make the learner"):
        evenhand.simulate(EvenHand(M, K, rewards=game.rewards, empty=2.9, seed=1), game, 10, seed=1)


def test_a_game_with_binary_rewards_gives_the_ends_of_its_range():
    game = SetFunction(
        lambda sets: 2.0 + sets.sum(axis=1), 4, noise=Bernoulli(), rewards=(1, 7), empty=2
    )
    orders, sizes = np.tile(np.arange(4), (2000, 1)), np.tile([0, 1, 4], (2000, 1))
    rewards = game.pull(orders, sizes, np.random.default_rng(1))
    assert np.all(rewards[:, 0] == 2.0)
    assert set(rewards[:, 1:].reshape(-1)) == {1.0, 7.0}
    assert abs(rewards[:, 2].mean() - 6.0) < 4 * 6.0 * np.sqrt(5 / 36 / 2000)
    with pytest.raises(ValueError, match=r"lie in \[1, 5\], got 6.0 for the set \[0, 1, 2, 3\]"):
        SetFunction(game.f, 4, rewards=(1, 5), empty=2).pull(orders, sizes, np.random.default_rng())


CHECKS = [
    telling.what_does_not_belong_is_refused,
    telling.missing_rewards_are_skipped,
    telling.rewards_are_taken_in_every_form,
    keeping.a_restored_learner_goes_on_bit_for_bit,
    keeping.open_batches_survive_on_disk,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_rewards_are_told_and_kept_in_other_units_too(check):
    check(lambda m, k, horizon, seed: EvenHand(m, k, rewards=(-0.05, 1.2), empty=0.3, seed=seed))


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"rewards": (1, 0)}, r"rewards must be two finite numbers .* low < high, got \(1, 0\)"),
        ({"rewards": (0, np.inf)}, r"rewards must be two finite numbers"),
        ({"rewards": (0, np.nan)}, r"rewards must be two finite numbers"),
        ({"rewards": (-1e308, 1e308)}, r"rewards must be two finite numbers"),
        ({"rewards": 5}, r"rewards must be two finite numbers"),
        ({"rewards": "high"}, r"rewards must be two numbers \(low, high\), got 'high'"),
        ({"rewards": (2, 5)}, r"empty must lie in \[2, 5\].*empty=0; give rewards=\(0, 5\)"),
        ({"empty": np.nan}, r"empty must be finite, got empty=nan"),
        ({"empty": 1.5}, r"empty must lie in \[0, 1\].*empty=1.5; give rewards=\(0, 1.5\)"),
        ({"empty": None}, r"empty must be a number, got None"),
    ],
)
def test_what_is_no_range_is_refused(units, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EvenHand(M, K, **units, seed=1)


def test_refusals_name_the_learners_own_range():
    learner = EvenHand(M, K, rewards=(-2, 6), empty=1, seed=1)
    batch = learner.ask()
    rewards = np.full(batch.sizes.shape, 6.5)
    with pytest.raises(ValueError, match=r"lie in \[-2, 6\], got rewards\[0, 0\]=6.5; make the"):
        learner.tell(batch, rewards)
    learner.tell(batch, rewards - 0.5)


def test_the_range_is_shown_and_saved_and_files_without_one_load(tmp_path):
    learner = EvenHand(M, K, rewards=(-2, 6), empty=1, seed=1)
    assert repr(learner).startswith("EvenHand(m=8, k=3, sizes=[0.6, 0.2, 0.2], rewards=[-2, 6], em")
    evenhand.save(learner, tmp_path / "learner.npz")
    again = evenhand.load(tmp_path / "learner.npz")
    assert (again.rewards, again.empty) == ((-2.0, 6.0), 1.0)
    assert again.band.low == learner.band.low == -3 / 8

    plain = EvenHand(M, K, seed=1)
    assert "rewards" not in repr(plain)
    old = json.loads(json.dumps({n: x for n, x in plain.snapshot().items() if n != "arrays"}))
    for name in ("rewards", "empty"):
        del old["config"][name]
    old.pop("checksum")
    sealed = evenhand.exchange.snapshot.sealed({**old, "arrays": plain.snapshot()["arrays"]})
    loaded = EvenHand.restore(sealed)
    assert (loaded.rewards, loaded.empty) == ((0.0, 1.0), 0.0)
    assert np.array_equal(loaded.ask().orders, plain.ask().orders)


def test_warming_works_in_any_range():
    URS(4, 2, rewards=(10, 20), empty=10, seed=1).warm()
    MURaS(4, 2, 100, lam=4.0, rewards=(10, 20), empty=10, seed=1).warm()


def scaled_one_by_one(rewards, sizes, low, high, empty):
    """What rewards are inside, whether some are missing, or the first place that is refused."""
    inside = np.zeros(sizes.shape)
    for place in np.ndindex(sizes.shape):
        if sizes[place]:
            if rewards[place] < low or rewards[place] > high:
                return place
            inside[place] = (rewards[place] - empty) / (high - low)
    return inside, bool(np.isnan(inside).any())


@pytest.mark.parametrize("seed", range(30))
def test_rewards_are_scaled_one_by_one_and_the_first_that_is_outside_is_named(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, size=rng.integers(1, 9, size=2))
    rewards = rng.uniform(-1.0, 3.0, sizes.shape)
    rewards[rng.random(sizes.shape) < 0.1 * (seed % 3)] = np.nan
    outside = rng.random(sizes.shape) < 0.02 * (seed % 5)
    rewards[outside] = rng.choice([-1.5, 3.5, np.inf, -np.inf], int(outside.sum()))
    expected, given = scaled_one_by_one(rewards, sizes, -1.0, 3.0, 0.7), rewards.copy()
    if isinstance(expected[0], np.ndarray):
        found, gaps = check_rewards(given, sizes, (-1.0, 3.0), 0.7)
        np.testing.assert_array_equal(found, expected[0])
        assert gaps == expected[1]
    else:
        row, column = expected
        place = f"rewards[{row}, {column}]={rewards[row, column]:g};"
        with pytest.raises(ValueError, match=re.escape(place)):
            check_rewards(given, sizes, (-1.0, 3.0), 0.7)
    np.testing.assert_array_equal(given, rewards)  # the caller's own stay what they are

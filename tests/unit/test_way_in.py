"""What a learner can be given beforehand: past sets with their chances, and believed merits."""

import json
from itertools import combinations
from math import comb

import numpy as np
import pytest

import evenhand
from evenhand.games import SetFunction, synthetic
from evenhand.learners import EvenHand
from evenhand.learners.log import logged_rows
from evenhand.learners.prior import Prior
from evenhand.merit import Estimate

M, K = 6, 3
RNG = np.random.default_rng(8)
VALUES = {s: RNG.random() for r in range(1, K + 1) for s in combinations(range(M), r)}  # any game
GAME = SetFunction.per_set(lambda arms: VALUES[tuple(sorted(arms))], m=M)
UNEVEN = {s: int(RNG.integers(1, 9)) for s in VALUES}  # how often each set was shown


def listed_log():
    """Every set as often as its chance says, without noise: the log that is expected."""
    total = {r: sum(n for s, n in UNEVEN.items() if len(s) == r) for r in range(1, K + 1)}
    sets = [s for s, n in UNEVEN.items() for _ in range(n)]
    chances = [UNEVEN[s] / total[len(s)] for s in sets]
    return sets, [VALUES[s] for s in sets], np.array(chances)


def free_merits(chances):
    """Merits that rest on no model, of the listed log taken in against one forecast."""
    learner = EvenHand(M, K, seed=1)
    sets, rewards, _ = listed_log()
    # means of the forecast of worths 1/2 and curvature 1, over all sets of a size
    learner.evidence.expected[:] = (1 - 0.5 ** np.arange(1.0, K + 1))[:, None]
    rows = logged_rows(sets, chances, learner.roster, K)
    learner.evidence.absorb(rows, np.array(rewards)[:, None])
    return learner.evidence.estimate().free


def test_merits_of_a_log_are_those_of_the_game_by_listing_all_sets():
    sets, _, chances = listed_log()
    merit = evenhand.kshapley(GAME, K)
    np.testing.assert_allclose(free_merits(chances), merit, atol=1e-9)
    uniform = [1 / comb(M, len(s)) for s in sets]  # a lie
    assert np.abs(free_merits(uniform) - merit).max() > 0.02


def test_a_sorted_log_does_as_well_as_any():
    """Parts of it hold some of the sets only: taken in as they stand, merits would stay off."""
    sets, rewards, chances = listed_log()
    learner = EvenHand(M, K, seed=1)
    learner.learn([s for s in sets for _ in range(100)], *np.repeat([rewards, chances], 100, 1))
    off = np.abs(learner.evidence.estimate().free - evenhand.kshapley(GAME, K)).max()
    assert off < 0.01  # as they stand: 0.03


def test_weights_are_those_of_the_definition():
    sets, _, chances = listed_log()
    rows = logged_rows(sets, chances, EvenHand(M, K, seed=1).roster, K)
    for order, (r,), w, s, chance in zip(*rows, sets, chances, strict=True):
        assert tuple(order[:r]) == s
        np.testing.assert_allclose(w[:r], 1 / (chance * comb(M, r)), rtol=1e-12)
        assert not w[r:].any()


def test_sets_are_taken_by_number_by_name_and_as_orders_of_a_batch():
    names = ["ada", "bob", "cy", "dee", "eve", "flo"]
    rewards, chances = [0.5, np.nan, 0.25], [0.1, 0.2, 0.3]
    states = []
    for sets in (
        [[0, 2], [1], [5, 4, 3]],
        [["ada", "cy"], ["bob"], ("flo", "eve", "dee")],
        np.array([[0, 2, -1], [1, -1, -1], [5, 4, 3]]),
    ):
        learner = EvenHand(M, K, names=names, seed=1)
        learner.learn(sets, rewards, chances)
        states.append(learner.snapshot()["arrays"])
        assert learner.evidence.told == 2  # one reward is missing
        assert (learner.queries, learner.ledger.n_open, learner.asked.sum()) == (0, 0, 0)
        assert learner.band.count == 0
    for other in states[1:]:
        assert all(np.array_equal(states[0][n], other[n], equal_nan=True) for n in other)


@pytest.mark.parametrize(
    ("sets", "rewards", "chances", "message"),
    [
        ([[0]], [0.5], [0.0], r"chances must lie in \(0, 1\].*got chances\[0\]=0"),
        ([[0]], [0.5], [1.2], r"chances must lie in \(0, 1\].*got chances\[0\]=1.2"),
        ([[0]], [0.5], [np.nan], r"chances must lie in \(0, 1\].*got chances\[0\]=nan"),
        ([[0]], [0.5], [0.1, 0.1], r"chances must hold one number per set, 1 of them, got shape"),
        ([[0]], [0.5], ["0.1"], r"chances must be numbers"),
        ([[0], [1]], [0.5], [0.1, 0.1], r"rewards must have shape \(2, 1\)"),
        ([[0]], [1.5], [0.1], r"rewards must lie in \[0, 1\], got rewards\[0\]=1.5"),
        ([[0], []], [0, 0], [0.1, 0.1], r"1 to k=3 arms each, got 0 in sets\[1\]; leave such"),
        ([[0, 1, 2, 3]], [0], [0.1], r"1 to k=3 arms each, got 4 in sets\[0\]"),
        ([[0, 0]], [0], [0.1], r"different arms in 0..5, got sets\[0\]=\[0, 0\]"),
        ([[6]], [0], [0.1], r"different arms in 0..5, got sets\[0\]=\[6\]"),
        ([[-1, 0]], [0], [0.1], r"different arms in 0..5, got sets\[0\]=\[-1, 0\]"),
        ([["ada"]], [0], [0.1], r"sets must hold names of arms, got 'ada' in sets\[0\]"),
        ([[0.5]], [0], [0.1], r"sets must be a list of sets, each a list of arms"),
        (7, [0], [0.1], r"sets must be a list of sets, each a list of arms, .* got 7"),
    ],
)
def test_a_malformed_log_is_refused_and_changes_nothing(sets, rewards, chances, message):
    learner = EvenHand(M, K, seed=1)
    before = learner.snapshot()
    with pytest.raises((ValueError, TypeError), match=message):
        learner.learn(sets, rewards, chances)
    assert learner.snapshot()["checksum"] == before["checksum"]


def test_what_was_learnt_is_saved_and_goes_on(tmp_path):
    sets, rewards, chances = listed_log()
    learner = EvenHand(M, K, prior=(np.arange(1.0, 7) / 20, 0.1), seed=1)
    learner.learn(sets, rewards, chances)
    evenhand.save(learner, tmp_path / "learner.npz")
    twin = evenhand.load(tmp_path / "learner.npz")
    for _ in range(20):
        one, other = learner.ask(), twin.ask()
        assert np.array_equal(one.orders, other.orders)
        for who, batch in ((learner, one), (twin, other)):
            who.tell(batch, np.full(batch.sizes.shape, 0.4))
    assert np.array_equal(learner.merit, twin.merit)


def test_beliefs_are_joined_by_their_precisions():
    prior = Prior.of(([1.0, 2.0, 3.0], [0.5, 1.0, np.inf]), 3)
    merit, variance = prior.join(np.array([0.2, 0.3, 0.4]), np.array([0.01, 0.04, 0.02]), 5.0)
    given = np.array([0.5, 1.0]) ** 2 / 25
    share = np.array([0.01, 0.04]) / (np.array([0.01, 0.04]) + given)
    np.testing.assert_allclose(merit[:2], [0.2, 0.3 + share[1] * 0.1])
    np.testing.assert_allclose(variance[:2], given * share)
    np.testing.assert_allclose([merit[2], variance[2]], [0.4, 0.02])  # nothing was believed


def test_beliefs_that_are_contradicted_count_less():
    m, stderr = 400, 0.1
    rng = np.random.default_rng(3)
    truth, variance = rng.normal(size=m), np.full(m, 0.05**2)
    seen = truth + 0.05 * rng.normal(size=m)
    for off in (0.1, 0.4):  # as sure as claimed, and four times as wrong
        prior = Prior.of((truth + off * rng.normal(size=m), stderr), m)
        merit, claimed = prior.join(seen, variance, 1.0)
        z = (merit - truth) / np.sqrt(claimed)
        assert abs(np.mean(z**2) - 1.0) < 4.5 * np.sqrt(2 / m)
        excess = prior._excess((seen - prior.merit) ** 2, variance, np.full(m, stderr**2))
        # its error is that of a mean of m squares
        assert abs(excess * stderr**2 - off**2) < 4.5 * np.sqrt(2 / m) * (off**2 + 0.05**2)


def test_before_any_reward_the_policy_is_that_of_the_beliefs():
    believed = np.array([0.1, 0.15, 0.2, 0.2, 0.15, 0.2])
    learner = EvenHand(M, K, prior=(believed, 0.05), seed=1)
    np.testing.assert_allclose(learner.marginals, evenhand.fair_policy(believed, K))
    found = learner.estimate()
    np.testing.assert_allclose([found.merit, found.stderr], [believed, np.full(M, 0.05)])
    learner.ask()
    np.testing.assert_allclose(learner.plan.marginals, evenhand.fair_policy(believed, K))


def test_an_estimate_is_a_prior_and_arms_it_does_not_know_are_taken_as_average():
    known = Estimate(np.array([0.1, 0.2, 0.3, 0.2, 0.2, np.nan]), np.full(M, 0.01), 100)
    learner = EvenHand(M, K, prior=known, rewards=(0, 10), seed=1)
    np.testing.assert_allclose(learner.marginals[5], learner.marginals[1])
    assert np.isnan(learner.merit[5])
    again = EvenHand.restore(json.loads(json.dumps(plain(learner))) | {"arrays": arrays(learner)})
    assert np.array_equal(again.prior.stderr, [*[0.01] * 5, np.inf])


def plain(learner):
    return {n: x for n, x in learner.snapshot().items() if n != "arrays"}


def arrays(learner):
    return learner.snapshot()["arrays"]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (0.5, r"prior must be an Estimate or \(merits, stderr\), got 0.5"),
        (([0.1] * 5, 0.1), r"a merit per arm, m=6, .* got shapes \(5,\) and \(\)"),
        (([0.1] * 6, [0.1] * 5), r"got shapes \(6,\) and \(5,\)"),
        (([0.1] * 6, 0.0), r"standard errors above 0, got prior\[1\]\[0\]=0; give inf"),
        (([0.1] * 6, np.nan), r"standard errors above 0, got prior\[1\]\[0\]=nan"),
        (([0.1] * 6, np.inf), r"a finite standard error for some arm, got none; leave prior out"),
        (([0.1] * 5 + [np.inf], 0.1), r"prior\[0\] must be finite, got prior\[0\]\[5\]=inf"),
        ((["a"] * 6, 0.1), r"prior\[0\] must be a vector of real numbers"),
    ],
)
def test_what_is_no_prior_is_refused(prior, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EvenHand(M, K, prior=prior, seed=1)


def regrets(give, n=1000, worlds=4):
    """Regret (worlds,) of learners that were given something, same worlds and same noise."""
    found = []
    for world in range(worlds):
        rng = np.random.default_rng([9, world])
        game = synthetic(12, rng)
        merit = evenhand.kshapley(game, 4)
        learner = give(game, merit, rng, world)
        run = evenhand.simulate(learner, game, n, seed=world, checkpoints=[n])
        found.append(run.regret[-1])
    return np.array(found)


@pytest.mark.slow
def test_what_is_given_saves_regret_and_lies_do_little_harm():
    def nothing(game, merit, rng, world):
        return EvenHand(12, 4, seed=world)

    def log(game, merit, rng, world):
        learner = EvenHand(12, 4, seed=world)
        orders = rng.permuted(np.tile(np.arange(12), (2000, 1)), axis=1)[:, :4]
        sizes = rng.choice([1, 1, 2, 3, 4], 2000)
        rewards = game.pull(orders, sizes[:, None], rng)[:, 0]
        sets = [order[:r] for order, r in zip(orders, sizes, strict=True)]
        learner.learn(sets, rewards, [1 / comb(12, r) for r in sizes.tolist()])
        return learner

    def believed(merits):
        def give(game, merit, rng, world):
            return EvenHand(12, 4, prior=(merits(merit, rng), 0.1 * merit.mean()), seed=world)

        return give

    without = regrets(nothing)
    for give, least, most in [
        (log, 0.0, 0.7),
        (believed(lambda merit, rng: merit + 0.1 * merit.mean() * rng.normal(size=12)), 0.0, 0.95),
        (believed(lambda merit, rng: rng.permutation(merit)), 0.9, 1.5),
    ]:
        ratio = np.exp(np.log(regrets(give) / without).mean())
        assert least < ratio < most


def test_logs_speak_of_ids():
    """After arms have come and gone, numbers in a log are those of batches."""
    learner = EvenHand(5, 2, seed=1)
    learner.retire([1])
    assert learner.add(1).tolist() == [5]
    learner.learn([[5], [0, 5]], [1.0, 0.0], chances=[1 / 5, 1 / 10])
    assert learner.evidence.singles[:, 0].tolist() == [0, 0, 0, 0, 1]  # columns 0, 2, 3, 4, 5
    with pytest.raises(ValueError, match="sets must hold different arms on the roster"):
        learner.learn([[1]], [1.0], chances=[1 / 5])

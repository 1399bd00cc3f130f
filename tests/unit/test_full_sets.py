"""FullSets: its sums by enumeration, its parts against naive ones, its behaviour."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

import evenhand
from evenhand import merit
from evenhand.exchange import FullSetPlan, Plan, Rows
from evenhand.games import Carrier, NoisyOr, SetFunction, additive
from evenhand.games.game import prefix_sets
from evenhand.learners import FullSets, curves, full_evidence
from evenhand.learners.curves import Curves
from evenhand.learners.full_evidence import FullEvidence

M, K = 6, 3
RNG = np.random.default_rng(5)
SETS = np.array(list(combinations(range(M), K)))
VALUES = dict(zip(map(tuple, SETS.tolist()), RNG.random(len(SETS)), strict=True))  # any game
GAME = SetFunction.per_set(lambda arms: VALUES.get(tuple(sorted(arms)), 0.5), m=M)
MARGINALS = np.array([0.85, 0.75, 0.55, 0.4, 0.3, 0.15])
PLAN = FullSetPlan(0, np.arange(M), K, MARGINALS.copy(), 0.2)


def chances():
    """How likely the plan draws each set."""
    rows = PLAN.draw(20_000, np.random.default_rng(1))
    found = {
        tuple(sorted(s)): 1.0 / (comb(M, K) * w)
        for s, (w,) in zip(rows.orders.tolist(), rows.weights, strict=True)
    }
    return np.array([found[s] for s in VALUES])


def mean_estimate(weights):
    """Expectation of the value estimated from one reward, with a forecast that is far off."""
    total = np.zeros(M)
    for s, chance, weight in zip(VALUES, chances(), weights, strict=True):
        evidence = FullEvidence(M, K)
        evidence.worth = np.linspace(-0.3, 0.9, M)
        row = Rows(np.array([s]), np.array([[K]]), np.array([[weight]]))
        evidence.absorb(row, np.array([[VALUES[s]]]))
        total += chance * evidence.estimate().value
    return total


def test_the_plan_has_its_marginals_and_its_weights():
    p = chances()
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0.2 / len(SETS) - 1e-12  # every set can be drawn
    inside = (SETS[:, :, None] == np.arange(M)).any(axis=1)
    np.testing.assert_allclose(p @ inside, MARGINALS, atol=1e-9)  # mixing moves no marginal
    rows = PLAN.draw(50, np.random.default_rng(2))
    assert rows.orders.shape == (50, K)
    assert np.all(rows.sizes == K)


def test_values_are_unbiased_whatever_the_forecast():
    expected = merit.full_set_value(GAME, K)
    np.testing.assert_allclose(mean_estimate(1.0 / (len(SETS) * chances())), expected, atol=1e-8)
    assert np.abs(mean_estimate(np.ones(len(SETS))) - expected).max() > 0.1  # a control


@pytest.mark.parametrize("vector", [MARGINALS[:-1], MARGINALS + 0.1, np.eye(M)[0] * K])
def test_damaged_plans_are_refused(vector):
    bad = FullSetPlan(0, np.arange(M), K, vector.copy(), 0.2)
    with pytest.raises(ValueError, match=r"data must come from Plan\.to_bytes"):
        Plan.from_bytes(bad.to_bytes())


def test_least_squares_are_those_of_numpy():
    rng = np.random.default_rng(3)
    sets = np.array([rng.permutation(M)[:K] for _ in range(40)])
    rewards = rng.random((40, 1))
    rewards[3] = np.nan
    pairs, totals = np.zeros((M, M)), np.zeros(M)
    full_evidence.count_pairs(pairs, totals, sets, rewards)
    members = (sets[:, :, None] == np.arange(M)).any(axis=1).astype(float)
    members, rewards = np.delete(members, 3, 0), np.delete(rewards[:, 0], 3)
    np.testing.assert_array_equal(pairs, members.T @ members)
    found = full_evidence.least_squares(pairs, totals, 0.2)
    rows = np.vstack([members, np.eye(M)])  # each arm once more, alone
    expected = np.linalg.lstsq(rows, np.append(rewards, np.full(M, 0.2)), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_the_blend_follows_least_squares_until_they_are_seen_to_be_wrong():
    rng, small = np.random.default_rng(1), np.full(400, 0.01)
    plain = np.full(400, 0.3)
    near = plain + rng.normal(0.0, 0.1, 400) * np.sqrt(0.9)  # apart by noise alone
    best, _ = full_evidence.blend(near, small, plain, 0.1 * small)
    assert np.mean((best - 0.3) ** 2) < 0.2 * np.mean((near - 0.3) ** 2)
    far = near + rng.normal(0.0, 1.0, 400)
    best, variance = full_evidence.blend(far, small, plain, 0.1 * small)
    np.testing.assert_allclose(best, far, atol=0.05)
    np.testing.assert_allclose(variance, small, rtol=0.05)
    one = near.copy()
    one[7] = 3.0  # a single arm is off
    best, _ = full_evidence.blend(one, small, plain, 0.1 * small)
    assert best[7] > 2.9


def test_shrinking_takes_noise_away_and_leaves_differences():
    rng, noise = np.random.default_rng(2), np.full(500, 0.04)
    same = 0.5 + rng.normal(0.0, 0.2, 500)
    assert full_evidence.shrink(same, noise).std() < 0.2 * same.std()
    different = same + rng.normal(0.0, 3.0, 500)
    np.testing.assert_allclose(full_evidence.shrink(different, noise), different, atol=0.2)
    unseen = np.where(np.arange(500) == 3, np.inf, noise)
    shown = full_evidence.shrink(different, unseen)
    assert shown[3] == pytest.approx(different.mean())


def curve_of(game, k, psi):
    """The curve through the values of all k-sets."""
    found, sets = Curves(game.m, k), np.array(list(combinations(range(game.m), k)))
    for i in range(1, 15):
        found.fit(psi, 10**i)
    values = game.value(prefix_sets(sets, np.full((len(sets), 1), k), game.m))
    found.absorb(sets, np.ones((len(sets), 1)), values[:, None])
    return found, found.average(psi, noise=0.0)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_curves_have_the_full_set_values_they_are_led_through(k):
    game = NoisyOr(np.linspace(0.1, 0.6, M))
    psi = merit.full_set_value(game, k)
    found, _ = curve_of(game, k, psi)
    ends = np.minimum(1.0, (1.0 - curves.LEFT) / np.maximum(found.gamma, 1e-9))[:, None]
    free = ((found.worth > 0.0) & (found.worth < ends)).all(axis=1)  # no arm is at an end
    assert free.sum() >= 4
    for gamma, worth in zip(found.gamma[free], found.worth[free], strict=True):
        drawn = SetFunction(
            lambda sets, g=gamma, x=worth: (1.0 - np.where(sets, 1.0 - g * x, 1.0).prod(1)) / g, M
        )
        np.testing.assert_allclose(merit.full_set_value(drawn, k), psi, atol=1e-6)
    np.testing.assert_allclose(curves.kshapley_of(game.mu, 1.0, k), game.kshapley(k), rtol=1e-12)


def test_the_curve_of_a_noisy_or_and_of_an_additive_game_is_theirs():
    game = NoisyOr(np.linspace(0.1, 0.6, M))
    _, shown = curve_of(game, K, merit.full_set_value(game, K))
    assert shown.curvature == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(shown.kshapley, game.kshapley(K), atol=2e-3)
    straight = additive(np.linspace(0.05, 0.3, M))
    _, shown = curve_of(straight, K, merit.full_set_value(straight, K))
    assert shown.curvature == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(shown.kshapley, straight.kshapley(K), atol=1e-4)


def learnt(game, k, horizon, seed=1):
    learner, rng = FullSets(game.m, k, seed=seed), np.random.default_rng(seed + 50)
    while learner.queries < horizon:
        batch = learner.ask(horizon - learner.queries)
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return learner


def test_it_learns_full_set_values_and_follows_them():
    learner = learnt(GAME, K, 6000)
    psi = merit.full_set_value(GAME, K)
    target = evenhand.fair_policy(np.maximum(psi, 0.0), K)
    found = learner.estimate()
    assert np.all(np.abs(found.merit - psi) < 5.0 * found.stderr)
    assert np.abs(learner.marginals - target).sum() < 0.3 < np.abs(K / M - target).sum()
    low, high = found.intervals.T
    assert np.all((low <= psi) & (psi <= high))
    assert np.abs(psi - merit.exact(GAME, K)).max() > 0.1  # and these are not K-Shapley values
    assert found.diagnostics.effective_sample_size.shape == (M,)
    assert found.diagnostics.largest_weight > 1.0
    assert 0.0 < found.diagnostics.mixing <= 1.0


def test_every_query_is_a_full_set():
    learner = FullSets(M, K, seed=1)
    while learner.queries < 300:
        batch = learner.ask()
        assert np.all(batch.sizes == K)
        assert all(len(set(row)) == K for row in batch.orders.tolist())
        learner.tell(batch, np.full(batch.sizes.shape, 0.5))


def test_values_below_0_get_what_exploring_needs():
    game = Carrier([[0, 1]], [0.6], m=4)
    learner = learnt(game, 2, 3000)
    assert np.all(learner.merit[2:] < 0.0)
    floor = learner.marginals[2:].max()
    assert floor < 0.1
    assert learner.marginals[:2].min() > 0.9


def test_all_rewards_0_leave_all_arms_alike():
    learner = learnt(SetFunction(lambda sets: np.zeros(len(sets)), m=M), K, 200)
    np.testing.assert_allclose(learner.marginals, K / M, atol=1e-6)


def test_with_k_equal_to_m_arms_cannot_be_told_apart():
    game = SetFunction(lambda sets: 0.6 * sets.all(axis=1), m=3)
    learner = learnt(game, 3, 100)
    np.testing.assert_allclose(learner.merit, 0.2)
    np.testing.assert_allclose(merit.full_set_value(game, 3), 0.2)
    np.testing.assert_allclose(learner.marginals, 1.0)


def test_before_anything_is_told_nothing_is_claimed():
    learner = FullSets(4, 2, seed=1)
    assert np.isnan(learner.merit).all()
    assert np.isnan(learner.estimate().stderr).all()
    assert np.isnan(learner.extrapolate().kshapley).all()
    np.testing.assert_array_equal(learner.intervals(), [[-1.0, 1.0]] * 4)
    np.testing.assert_allclose(learner.marginals, 0.5)


def test_many_arms_do_without_counts_of_pairs(monkeypatch):
    monkeypatch.setattr(full_evidence, "MAX_PAIRS", M - 1)
    learner = learnt(GAME, K, 3000)
    assert learner.evidence.pairs.size == 0
    found = learner.estimate()
    assert np.all(np.abs(found.merit - merit.full_set_value(GAME, K)) < 5.0 * found.stderr)


def test_evidence_of_another_forecast_is_not_merged():
    learner, other = learnt(GAME, K, 100), learnt(GAME, K, 200)
    with pytest.raises(ValueError, match="evidence must have the same forecast to be merged"):
        learner.evidence.merge(other.evidence)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match="level must lie"):
        FullSets(5, 3, seed=1).intervals(level)


def test_too_many_sets_are_refused():
    game = SetFunction(lambda sets: sets.mean(axis=1), m=534)
    with pytest.raises(ValueError, match=r"max_sets >= .* evenhand\.merit\.full_set_estimate"):
        merit.full_set_value(game, 10)
    with pytest.raises(ValueError, match="queries must be at least"):
        merit.full_set_estimate(GAME, K, 1, np.random.default_rng(1))


def test_a_game_without_noise_is_listed_once():
    found = merit.full_set_estimate(GAME, K, 10_000, np.random.default_rng(1))
    assert found.queries == comb(M, K)
    np.testing.assert_allclose(found.merit, merit.full_set_value(GAME, K), atol=1e-12)
    np.testing.assert_array_equal(found.stderr, 0.0)

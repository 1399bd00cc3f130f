"""Estimators of merit: unbiased, with honest standard errors, never more queries than allowed."""

from functools import partial
from importlib import import_module
from itertools import combinations
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest

from evenhand import games, kshapley, merit
from evenhand.datasets import facebook_stand_in
from evenhand.merit.running_mean import RunningMean
from evenhand.testing.statistics import check_estimate, check_mean
from tests import reference
from tests.contracts import GAMES

pytestmark = pytest.mark.statistical
RNG = partial(np.random.default_rng, 0)
estimators = pytest.mark.parametrize("estimate", [merit.monte_carlo, merit.stratified])


def check_claims(runs, *, resolution):
    """Check that squared standard errors are the variance of the values, to a fraction of it."""
    values, n = np.array([run.merit for run in runs]), len(runs)
    squares = (values - values.mean(axis=0)) ** 2 * n / (n - 1)
    claimed = np.array([run.stderr**2 for run in runs])
    check_mean(squares - claimed, np.zeros(values.shape[1]), resolution=resolution * claimed.mean())


every_game = pytest.mark.parametrize("make", GAMES.values(), ids=GAMES)


def check_found(found, game, k):
    low, high = getattr(game, "rewards", (0.0, 1.0))
    check_estimate(found.merit, found.stderr, kshapley(game, k), resolution=0.1 * (high - low))


@every_game
@pytest.mark.parametrize("k", [1, 3, 5])
def test_monte_carlo_estimates_are_the_merits(make, k):
    game = make()
    found = merit.monte_carlo(game, k, 40_000, np.random.default_rng(k))
    assert found.queries <= 40_000
    check_found(found, game, k)


@every_game
@pytest.mark.parametrize("k", [1, 3, 5])
def test_stratified_estimates_are_the_merits_of_the_mean_rewards(make, k, monkeypatch):
    """To the last digits where all sets are listed; and those of the game, within errors."""
    module = import_module("evenhand.merit.stratified")  # the name stands for the function
    pull, by_listing, told = module._pull, module.by_listing, {}

    def noted(asked, sets, rng):
        rewards = pull(asked, sets, rng)
        if sets.shape[1] in told:
            told[sets.shape[1]].append(rewards)
        return rewards

    def listing(asked, size, n, rng):
        told[size] = []  # after the pilot
        return by_listing(asked, size, n, rng)

    monkeypatch.setattr(module, "_pull", noted)
    monkeypatch.setattr(module, "by_listing", listing)
    game = make()
    found = merit.stratified(game, k, 40_000, np.random.default_rng(k))
    assert found.queries <= 40_000
    check_found(found, game, k)
    assert sorted(told) == list(range(1, k + 1))
    means = {(): 0.0}
    for size, rewards in told.items():
        sets = combinations(range(5), size)
        listings = np.concatenate(rewards).reshape(-1, comb(5, size))
        means |= dict(zip(sets, listings.mean(axis=0), strict=True))
    seen = SimpleNamespace(m=5, value=lambda sets: [means[tuple(np.flatnonzero(sets))]])
    expected = reference.kshapley(seen, k)
    np.testing.assert_allclose(found.merit, expected, rtol=1e-10, atol=1e-12)


@estimators
def test_standard_errors_are_the_spread_of_repeated_estimates(estimate):
    game, k, n = games.NoisyOr([0.1, 0.3, 0.5, 0.7, 0.9, 0.4, 0.6]), 4, 2000
    rng = np.random.default_rng(0)
    runs = [estimate(game, k, 400, rng) for _ in range(n)]
    check_mean([run.merit for run in runs], kshapley(game, k), resolution=0.02)
    check_claims(runs, resolution=0.5)


@pytest.mark.parametrize(("m", "k", "queries"), [(4, 2, 18), (6, 2, 20), (6, 5, 60), (8, 3, 60)])
def test_few_queries_are_enough_to_be_unbiased(m, k, queries):
    table = np.random.default_rng(m).random(2**m) ** 3
    game = games.SetFunction(
        lambda sets: table[sets @ (1 << np.arange(m))], m, noise=games.TruncatedGaussian(0.05)
    )
    rng = np.random.default_rng(0)
    values = np.array([merit.stratified(game, k, queries, rng).merit for _ in range(4000)])
    check_mean(values, kshapley(game, k), resolution=0.02)


def test_taking_off_what_is_owed_to_company_brings_no_bias_and_honest_errors(monkeypatch):
    module = import_module("evenhand.merit.stratified")  # the name stands for the function
    worth, k, n = np.linspace(0.2, 1.0, 9), 6, 2000
    game = games.SetFunction(lambda sets: (sets * worth).max(axis=1) * sets.mean(axis=1), m=9)
    spread = []
    for cells in (2**22, 150):  # at once, in blocks
        monkeypatch.setattr(module, "BLOCK_CELLS", cells)
        rng = np.random.default_rng(0)
        runs = [merit.stratified(game, k, 160, rng) for _ in range(n)]
        values = np.array([run.merit for run in runs])
        check_mean(values, kshapley(game, k), resolution=0.005)
        check_claims(runs, resolution=0.5)
        spread.append(values.var(axis=0).mean())
    monkeypatch.setattr(module, "_corrected", lambda samples, off: samples)
    plain = np.array([merit.stratified(game, k, 160, rng).merit for _ in range(n)])
    assert max(spread) < 0.5 * plain.var(axis=0).mean()


def test_standard_errors_of_reverse_reachable_are_the_spread_of_repeated_estimates():
    game, k, n = GAMES["cascade"](), 3, 2000
    rng = np.random.default_rng(0)
    runs = [merit.reverse_reachable(game, k, 100, rng) for _ in range(n)]
    check_mean([run.merit for run in runs], kshapley(game, k), resolution=0.02)
    check_claims(runs, resolution=0.4)


@pytest.mark.parametrize("level", [0.0, 1e8])
def test_sums_give_mean_and_standard_error_in_any_blocks(level):
    samples = level + np.random.default_rng(0).normal(size=(50, 2))
    sums = RunningMean(2)
    for block in np.split(samples, [1, 7, 30]):
        sums.add(block)
    np.testing.assert_allclose(sums.mean, samples.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums.stderr, samples.std(axis=0, ddof=1) / np.sqrt(50), rtol=1e-6)
    one = RunningMean(2)
    one.add(samples[:1])
    np.testing.assert_array_equal(one.stderr, 0.0)


def test_common_live_edges_are_used_where_the_game_has_them(monkeypatch):
    game = GAMES["cascade"]()
    fresh = merit.monte_carlo(games.SetFunction(lambda s: s.mean(axis=1), m=5), 3, 200, RNG())
    assert fresh.queries == 200  # a game without them is pulled

    def never(*args):
        raise AssertionError("pulled without coupling")

    monkeypatch.setattr(game, "pull", never, raising=False)
    assert merit.monte_carlo(game, 3, 200, RNG()).queries == 200


@pytest.mark.parametrize("k", [1, 5, 7, 10])
@pytest.mark.parametrize("queries", [200, 201, 999, 5000])
def test_queries_are_counted_and_never_exceeded(k, queries):
    asked = 0

    def value(sets):
        nonlocal asked
        asked += len(sets)
        return sets.mean(axis=1)

    game = games.SetFunction(value, m=10, noise=games.Bernoulli())
    found = merit.stratified(game, k, queries, np.random.default_rng(0))
    assert asked == found.queries <= queries
    assert found.queries >= 0.9 * queries - 60
    asked = 0
    game = games.SetFunction(value, m=10)
    found = merit.stratified(game, k, queries, np.random.default_rng(0))
    assert asked == found.queries <= queries
    found = merit.stratified(game, 1, 10, np.random.default_rng(0))  # all sets, without noise
    assert found.queries == 10
    asked = 0
    found = merit.monte_carlo(game, k, queries, np.random.default_rng(0))
    assert asked <= found.queries <= queries  # the empty set is counted but not asked


def test_without_noise_sizes_are_listed_once_and_no_more():
    game = games.SetFunction(lambda sets: (sets * np.linspace(0.1, 0.9, 10)).max(axis=1), m=10)
    found = merit.stratified(game, 4, 5000, np.random.default_rng(0))
    np.testing.assert_allclose(found.merit, kshapley(game, 4), atol=1e-12)
    assert found.queries == 385  # all sets of at most four
    assert not found.stderr.any()


def test_rare_successes_are_not_taken_for_certainty():
    game = games.SetFunction(lambda sets: 0.002 * sets.any(axis=1), m=6, noise=games.Bernoulli())
    found = merit.stratified(game, 2, 20_000, np.random.default_rng(1))
    assert found.stderr.min() > 0.0
    check_estimate(found.merit, found.stderr, kshapley(game, 2), resolution=1.0)


def test_stratified_needs_fewer_queries_than_arm_by_arm():
    game = games.synthetic(20, np.random.default_rng(0))
    one = merit.monte_carlo(game, 5, 20_000, np.random.default_rng(1))
    other = merit.stratified(game, 5, 20_000, np.random.default_rng(1))
    assert np.mean(other.stderr**2) < 0.25 * np.mean(one.stderr**2)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_reverse_reachable_is_the_merit_of_a_cascade(k):
    game = GAMES["cascade"]()
    found = merit.reverse_reachable(game, k, 200_000, np.random.default_rng(k))
    check_estimate(found.merit, found.stderr, kshapley(game, k), resolution=0.01)
    assert found.queries == 200_000


def test_reverse_reachable_is_exact_for_isolated_nodes():
    game = games.IndependentCascade([[0, 1]], m=4, p=0.5)
    found = merit.reverse_reachable(game, 2, 40, np.random.default_rng(0))
    np.testing.assert_allclose(found.merit[2:], 0.25, rtol=1e-12)
    np.testing.assert_allclose(found.stderr[2:], 0.0, atol=1e-15)


def test_all_estimators_agree_on_a_large_cascade():
    graph = facebook_stand_in()
    game = games.IndependentCascade(graph.edges, graph.m, 0.1)
    reference = merit.reverse_reachable(game, 10, 400_000, np.random.default_rng(0))
    paper = merit.monte_carlo(game, 10, 2 * 534 * 1000, np.random.default_rng(1))
    every = merit.stratified(game, 10, 2 * 534 * 1000, np.random.default_rng(2))
    # nodes worth little more than themselves: too rare a variation for the normal law
    seen = reference.merit > 1.5 / 534
    assert seen.mean() > 0.6
    for other in (paper, every):
        both = np.hypot(other.stderr, reference.stderr)[seen]
        check_estimate(other.merit[seen], both, reference.merit[seen], resolution=0.03)
    assert np.median(reference.stderr) < 0.5 * np.median(paper.stderr)


def test_the_check_sees_a_bias_of_a_tenth():
    """Negative control: merits of the neighbouring K are not accepted."""
    game = GAMES["noisy_or"]()
    found = merit.stratified(game, 3, 40_000, np.random.default_rng(3))
    with pytest.raises(AssertionError, match=r"mean .*is off"):
        check_estimate(found.merit, found.stderr, kshapley(game, 2), resolution=0.1)

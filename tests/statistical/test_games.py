"""The laws of the observations."""

import numpy as np
import pytest
from scipy.stats import binom, truncnorm

from evenhand.games import Bernoulli, IndependentCascade, NoisyOr, TruncatedGaussian
from evenhand.games.cascade.independent import pull_one_by_one
from evenhand.games.cascade.parallel import pull_in_parallel
from evenhand.games.noise import _draws, half_mass
from evenhand.randomness.xoshiro import start_words
from evenhand.testing.statistics import check_frequencies, check_mean
from tests import reference

pytestmark = pytest.mark.statistical


def noise(width, sd, n):
    widths = np.full(n, width)
    return _draws(widths, half_mass(widths, sd), sd, np.random.default_rng(1).random(n))


@pytest.mark.parametrize(
    ("width", "sd"), [(0.1, 0.1), (0.02, 0.1), (0.3, 0.1), (0.143, 0.1), (0.145, 0.1)]
)
def test_noise_is_the_truncated_gaussian(width, sd):
    draws = noise(width, sd, 200_000)
    law = truncnorm(-width / sd, width / sd, scale=sd)
    edges = law.ppf(np.linspace(0, 1, 41))
    edges[0], edges[-1] = -width, width
    check_frequencies(np.histogram(draws, edges)[0], np.full(40, 1 / 40))


def test_noise_is_the_quantile_of_its_uniform_number():
    """By inversion: the same uniform numbers through scipy's quantile function."""
    for width in (0.1, 0.03, 0.143):
        u = np.random.default_rng(1).random(10_000)
        expected = truncnorm(-width / 0.1, width / 0.1, scale=0.1).ppf(u)
        np.testing.assert_allclose(noise(width, 0.1, 10_000), expected, atol=1e-14)


def test_no_width_no_noise():
    assert not noise(0.0, 0.1, 10).any()


def test_a_gaussian_of_another_width_is_caught():
    """Negative control: a standard deviation wrong by a fifth."""
    draws = noise(0.1, 0.1, 200_000)
    law = truncnorm(-1 / 1.2, 1 / 1.2, scale=0.12)
    edges = law.ppf(np.linspace(0, 1, 41))
    with pytest.raises(AssertionError, match="chi-square"):
        check_frequencies(np.histogram(draws, edges)[0], np.full(40, 1 / 40))


def test_noisy_or_observes_a_fresh_quality_of_every_arm_in_every_query():
    """Moments of the paper's observation, from independent truncated Gaussians per arm."""
    mu = np.array([0.3, 0.6, 0.8])
    rewards = NoisyOr(mu).pull(
        np.tile([0, 1, 2], (200_000, 1)), np.tile([2, 2, 3], (200_000, 1)), np.random.default_rng(2)
    )
    variance = truncnorm(-1, 1, scale=0.1).var()
    second = lambda arms: np.prod((1 - mu[arms]) ** 2 + variance)  # noqa: E731
    check_mean((1 - rewards[:, 0]) ** 2, second([0, 1]), resolution=1e-2)
    check_mean((1 - rewards[:, 2]) ** 2, second([0, 1, 2]), resolution=1e-2)
    # the two queries of the same set, and the longer one, share no noise
    centred = rewards - rewards.mean(axis=0)
    check_mean(centred[:, 0] * centred[:, 1], 0.0, resolution=1e-4)
    check_mean(centred[:, 1] * centred[:, 2], 0.0, resolution=1e-4)
    assert np.mean(centred[:, 0] ** 2) > 1e-3  # shared noise would show


def test_set_function_noise_is_truncated_at_the_nearer_end():
    means = np.full(100_000, 0.03)
    rewards = TruncatedGaussian().observe(means, np.random.default_rng(3))
    assert rewards.min() >= 0.0
    assert rewards.max() <= 0.06
    check_mean(rewards, 0.03, resolution=1e-3)
    law = truncnorm(-0.3, 0.3, scale=0.1)
    check_mean((rewards - 0.03) ** 2, law.var(), resolution=1e-4)


def test_bernoulli_rewards_have_the_mean():
    for mean in (0.01, 0.5, 0.9):
        rewards = Bernoulli().observe(np.full(10**6, mean), np.random.default_rng(8))
        assert set(np.unique(rewards)) == {0.0, 1.0}
        check_mean(rewards, mean, resolution=0.004)


def one_by_one(arcs, orders, sizes, rng):
    return pull_one_by_one(arcs, orders, sizes, start_words(rng))


def in_parallel(arcs, orders, sizes, rng):
    return pull_in_parallel(arcs, orders, sizes, 100, start_words(rng))


both_kernels = pytest.mark.parametrize("pull", [one_by_one, in_parallel])


@both_kernels
@pytest.mark.parametrize("p", [1e-3, 0.1, 0.5, 0.9, 0.999])
def test_skipping_arcs_is_tossing_a_coin_an_arc(p, pull):
    """A star: the number of active leaves is binomial, at small and at extreme p."""
    leaves, n = 12, 200_000
    edges = np.stack([np.zeros(leaves, int), np.arange(1, leaves + 1)], axis=1)
    arcs = IndependentCascade(edges, leaves + 1, p).arcs
    rewards = pull(arcs, np.zeros((n, 1), int), np.ones((n, 1), int), np.random.default_rng(4))
    active = np.rint(rewards[:, 0] * (leaves + 1)).astype(int) - 1
    counts = np.bincount(active, minlength=leaves + 1)
    law = binom(leaves, p).pmf(np.arange(leaves + 1))
    rare = law * n < 10  # merged into one cell
    merged = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(law[~rare], law[rare].sum())
    keep = expected * n >= 10
    check_frequencies(merged[keep], expected[keep] / expected[keep].sum())


@pytest.mark.parametrize("p", [1e-4, 2e-3, 0.02])
@pytest.mark.parametrize("alike", [True, False])
@both_kernels
def test_long_rows_of_failures_take_several_skips(p, alike, pull):
    """More arcs than one skip can pass: each leaf is reached with its own chance."""
    leaves, n = 1000, 20_000
    edges = np.stack([np.zeros(leaves, int), np.arange(1, leaves + 1)], axis=1)
    chances = np.full(leaves, p)
    if not alike:
        chances[::2] *= 0.25
    arcs = IndependentCascade(edges, leaves + 1, chances).arcs
    rewards = pull(arcs, np.zeros((n, 1), int), np.ones((n, 1), int), np.random.default_rng(9))
    active = rewards[:, 0] * (leaves + 1) - 1
    variance = (chances * (1 - chances)).sum()
    check_mean(active, chances.sum(), resolution=0.2 * np.sqrt(variance))
    check_mean((active - chances.sum()) ** 2, variance, resolution=0.2 * variance)


@pytest.mark.parametrize("chances", [[0.5] * 7, [0.05, 0.9, 0.3, 1.0, 0.0, 0.6, 0.2]])
@both_kernels
def test_the_spread_has_the_law_of_a_coin_an_edge(chances, pull):
    """Whole distribution of the spread against all live-edge graphs, listed."""
    edges = [[0, 1], [1, 2], [2, 0], [0, 3], [3, 4], [4, 2], [1, 4]]
    game, n = IndependentCascade(edges, 5, chances), 100_000
    law = np.zeros(6)
    for world in range(2**7):
        live = [world >> e & 1 for e in range(7)]
        weight = np.prod([c if x else 1 - c for c, x in zip(chances, live, strict=True)])
        reached = reference.cascade(edges, live, 5, [0, 3], np.random.default_rng(0))
        law[len(reached)] += weight
    pairs, twos = np.tile([0, 3], (n, 1)), np.full((n, 1), 2)
    rewards = pull(game.arcs, pairs, twos, np.random.default_rng(5))
    counts = np.bincount(np.rint(rewards[:, 0] * 5).astype(int), minlength=6)
    check_frequencies(counts, law)
    coupled = game.pull_coupled(
        np.tile([0, 3], (n, 1)), np.full((n, 1), 2), np.random.default_rng(6)
    )
    counts = np.bincount(np.rint(coupled[:, 0] * 5).astype(int), minlength=6)
    check_frequencies(counts, law)


@both_kernels
def test_queries_of_one_call_are_independent(pull):
    """The total of a hundred queries varies a hundred times as much as one of them."""
    edges = np.random.default_rng(0).integers(0, 30, (90, 2))
    arcs = IndependentCascade(edges, 30, 0.3).arcs
    n = 400_000
    rewards = pull(arcs, np.tile([0, 1], (n, 1)), np.full((n, 1), 2), np.random.default_rng(7))[
        :, 0
    ]
    gaps = (rewards - rewards.mean()) / rewards.std()
    check_mean(gaps.reshape(-1, 100).sum(axis=1) ** 2, 100.0, resolution=20.0)
    check_mean(gaps[1:] * gaps[:-1], 0.0, resolution=0.01)


def test_coupled_prefixes_share_a_live_edge_graph():
    """Joint law of two prefixes in one live-edge graph, listed."""
    edges, chances = [[0, 1], [2, 1], [1, 3]], [0.5, 0.4, 0.7]
    game, n = IndependentCascade(edges, 4, chances), 100_000
    law = np.zeros((5, 5))
    for world in range(8):
        live = [world >> e & 1 for e in range(3)]
        weight = np.prod([c if x else 1 - c for c, x in zip(chances, live, strict=True)])
        sizes = [
            len(reference.cascade(edges, live, 4, seeds, np.random.default_rng(0)))
            for seeds in ([0], [0, 2])
        ]
        law[sizes[0], sizes[1]] += weight
    rewards = game.pull_coupled(
        np.tile([0, 2], (n, 1)), np.tile([1, 2], (n, 1)), np.random.default_rng(7)
    )
    active = np.rint(rewards * 4).astype(int)
    counts = np.zeros((5, 5), np.int64)
    np.add.at(counts, (active[:, 0], active[:, 1]), 1)
    check_frequencies(counts.ravel(), law.ravel())

"""Laws of designs too large to list, and of counts."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from evenhand.designs import ConditionalPoisson, DependentRounding, Systematic, Uniform
from evenhand.designs.design import MAX_ORDERED, draw_listed
from evenhand.designs.head_tree import HeadTree
from evenhand.policy import waterfill
from evenhand.randomness.alias import build_alias
from evenhand.testing.statistics import check_estimate, check_frequencies, check_mean

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(
    ("m", "k", "sampler"), [(70, 35, HeadTree), (150, 60, HeadTree), (70, 4, np.ndarray)]
)
def test_pairs_meet_as_often_as_they_should(m, k, sampler):
    """Marginals and pair marginals of both samplers, the tree with several levels."""
    policy = waterfill(np.exp(np.random.default_rng(m).normal(0, 0.7, m)), k)
    design = ConditionalPoisson.fit(policy)
    assert isinstance(design._sampler, sampler)
    rows = design.sample(40_000, np.random.default_rng(1))
    inside = np.zeros((len(rows), m), np.float32)
    np.put_along_axis(inside, rows, 1.0, axis=1)
    check_mean(inside, design.marginals, resolution=0.025)
    first, second = np.triu_indices(m, 1)
    expected = design.pair_marginals()[first, second]
    together = (inside.T @ inside)[first, second].astype(float) / len(rows)  # a count is exact
    stderr = np.sqrt(together * (1.0 - together) / (len(rows) - 1))
    check_estimate(together, stderr, expected, resolution=0.025)


def test_heads_of_the_left_half_vary_as_they_should():
    """The number of members among the first half: its mean and its variance."""
    m, k = 70, 35
    policy = waterfill(np.exp(np.random.default_rng(3).normal(0, 0.7, m)), k)
    design = ConditionalPoisson.fit(policy)
    rows = design.sample(40_000, np.random.default_rng(2))
    heads = (rows < 32).sum(axis=1)
    pairs = design.pair_marginals()[:32, :32]
    mean = design.marginals[:32].sum()
    check_mean(heads, mean, resolution=0.1)
    check_mean((heads - mean) ** 2, pairs.sum() - mean**2, resolution=0.3)


@pytest.mark.parametrize(
    "design",
    [
        Uniform(4, 2),
        Systematic.fit([0.5, 0.7, 0.3, 0.5]),
        ConditionalPoisson.fit([0.6, 0.7, 0.3, 0.4]),
    ],
    ids=["uniform", "systematic", "conditional_poisson"],
)
@pytest.mark.parametrize("n", [500, 100_000])
def test_counts_vary_like_those_of_independent_draws(design, n):
    """Mean and variance of an arm's count over repeated tallies: binomial."""
    rng = np.random.default_rng(4)
    repeats = 1500 if n <= 1000 else 300
    counts = np.zeros((repeats, design.m))
    for i in range(repeats):
        sets, times = design.tally(n, rng)
        np.add.at(counts[i], sets.ravel(), np.repeat(times, design.k))
    p = design.marginals
    check_mean(counts / n, p, resolution=0.05)
    spread = (counts - n * p) ** 2 / (n * p * (1 - p))
    check_mean(spread, np.ones(design.m), resolution=0.7)


def test_small_marginals_are_not_rounded_away():
    marginals = np.array([0.004, 0.996, 0.008, 0.992])
    rows = DependentRounding.fit(marginals).sample(200_000, np.random.default_rng(5))
    inside = np.zeros((len(rows), 4))
    np.put_along_axis(inside, rows, 1.0, axis=1)
    check_mean(inside, marginals, resolution=2e-3)


def test_listed_sets_come_in_every_order_as_often_as_they_should():
    """The law of ordered sets: what set it is says nothing of its order."""
    probabilities = np.array([0.5, 0.3, 0.2])
    sets = np.array([[0, 1, 2], [1, 2, 3], [0, 2, 3]], np.uint32)
    numbers = np.random.default_rng(0).random(60_000)
    rows = draw_listed(build_alias(probabilities), sets, numbers)
    expected = [
        (tuple(order), p / 6)
        for s, p in zip(sets, probabilities, strict=True)
        for order in permutations(s.tolist())
    ]
    counts = Counter(map(tuple, rows.tolist()))
    check_frequencies([counts[order] for order, _ in expected], [p for _, p in expected])
    assert counts.total() == sum(counts[order] for order, _ in expected)


def test_sets_with_too_many_orders_to_keep_are_shuffled():
    k = MAX_ORDERED + 1
    rows = draw_listed(
        build_alias(np.ones(1)), np.arange(k)[None, :], np.random.default_rng(0).random(40_000)
    )
    assert (np.sort(rows, axis=1) == np.arange(k)).all()
    for place in (0, k // 2, k - 1):
        check_frequencies(np.bincount(rows[:, place]), np.full(k, 1 / k))
    pairs = np.bincount(rows[:, 0] * k + rows[:, -1], minlength=k * k)
    check_frequencies(pairs, (1 - np.eye(k)).ravel() / (k * (k - 1)))

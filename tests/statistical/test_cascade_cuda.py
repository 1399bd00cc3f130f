"""The GPU's cascades have the law of the processor's."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from evenhand import merit
from evenhand.datasets import facebook_stand_in
from evenhand.games import IndependentCascade
from evenhand.testing.statistics import ALPHA, check_estimate, check_mean
from tests.unit.test_cascade_cuda import places

pytestmark = pytest.mark.statistical


def spreads(game, n, seed):
    """Spread of three and of ten seeds, often."""
    arms = np.random.default_rng(0).permutation(game.m)[:10]
    rewards = game.pull(
        np.tile(arms, (n, 1)), np.tile([3, 10], (n, 1)), np.random.default_rng(seed)
    )
    return np.rint(rewards * game.m).astype(int)


def same_law(one, other):
    """Chi-square check that two samples of whole numbers have one law, rare ones merged."""
    values, which = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = np.zeros((2, len(values)), np.int64)
    np.add.at(counts, (np.repeat([0, 1], [len(one), len(other)]), which), 1)
    cells, enough = [np.zeros(2, np.int64)], 40
    for column in counts.T:
        if cells[-1].sum() >= enough:
            cells.append(np.zeros(2, np.int64))
        cells[-1] = cells[-1] + column
    if len(cells) > 1 and cells[-1].sum() < enough:
        cells[-2:] = [cells[-2] + cells[-1]]
    if len(cells) > 1:
        assert chi2_contingency(np.transpose(cells)).pvalue >= ALPHA, "chi-square"


@places
@pytest.mark.parametrize("p", [1e-3, 0.1, 0.9, 1.0])
def test_the_spread_has_the_law_of_the_processors(make, p):
    graph, n = facebook_stand_in(), 20_000
    ours = spreads(make(graph, p=p), n, 1)
    theirs = spreads(IndependentCascade(graph, p=p), n, 2)
    for column in range(2):
        same_law(ours[:, column], theirs[:, column])
    check_mean(ours - theirs, [0.0, 0.0], resolution=10.0)


@places
def test_probabilities_of_their_own_for_every_edge(make):
    graph, n = facebook_stand_in(), 20_000
    p = np.random.default_rng(3).beta(0.3, 2.0, size=len(graph.edges))
    ours = spreads(make(graph, p=p), n, 1)
    theirs = spreads(IndependentCascade(graph, p=p), n, 2)
    for column in range(2):
        same_law(ours[:, column], theirs[:, column])
    check_mean(ours - theirs, [0.0, 0.0], resolution=10.0)


@places
def test_a_slightly_larger_probability_is_caught(make):
    """Negative control: p wrong by a twentieth."""
    graph, n = facebook_stand_in(), 20_000
    ours = spreads(make(graph, p=0.105), n, 1)
    theirs = spreads(IndependentCascade(graph, p=0.1), n, 2)
    with pytest.raises(AssertionError):
        same_law(ours[:, 1], theirs[:, 1])


@places
def test_reverse_reachable_merits_are_those_of_the_processor(make):
    graph, k = facebook_stand_in(), 10
    ours = merit.reverse_reachable(make(graph, p=0.1), k, 200_000, np.random.default_rng(1))
    theirs = merit.reverse_reachable(
        IndependentCascade(graph, p=0.1), k, 200_000, np.random.default_rng(2)
    )
    error = np.hypot(ours.stderr, theirs.stderr)
    check_estimate(ours.merit, error, theirs.merit, resolution=0.01)

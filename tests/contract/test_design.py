"""What holds for every design."""

from math import factorial

import numpy as np
import pytest

from evenhand.designs import DependentRounding
from evenhand.testing.statistics import check_frequencies, check_mean, count_sets
from tests import reference
from tests.contracts import DESIGNS

designs = pytest.mark.parametrize("make", DESIGNS.values(), ids=DESIGNS)
listed = pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name) for name, make in DESIGNS.items() if name != "dependent_rounding"],
)


@designs
def test_marginals_sum_to_k(make):
    design = make()
    assert design.marginals.shape == (design.m,)
    assert design.marginals.sum() == pytest.approx(design.k, abs=1e-7)


@designs
def test_sets_have_k_distinct_arms_and_the_seed_decides(make):
    design = make()
    rows = design.sample(500, np.random.default_rng(3))
    assert rows.shape == (500, design.k)
    assert rows.min() >= 0
    assert rows.max() < design.m
    assert all(len(set(row)) == design.k for row in rows.tolist())
    np.testing.assert_array_equal(rows, make().sample(500, np.random.default_rng(3)))
    assert design.sample(0, np.random.default_rng(3)).shape == (0, design.k)


@listed
def test_probabilities_sum_to_one_and_give_the_marginals(make):
    design = make()
    sets = reference.sets_of(design.m, design.k)
    probabilities = np.exp(design.log_prob(sets))
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    given = reference.marginals_of(sets, probabilities, design.m)
    np.testing.assert_allclose(given, design.marginals, atol=1e-12)


@listed
def test_log_prob_does_not_depend_on_the_order(make):
    design = make()
    sets = np.array(reference.sets_of(design.m, design.k))
    np.testing.assert_allclose(design.log_prob(sets), design.log_prob(sets[:, ::-1]), rtol=1e-13)


@listed
@pytest.mark.statistical
def test_draws_and_tallies_follow_the_law_over_whole_sets(make):
    design, n = make(), 200_000
    sets = reference.sets_of(design.m, design.k)
    probabilities = np.exp(design.log_prob(sets))
    rare = (probabilities > 0) & (probabilities * n < 10)
    assert not rare.any()
    check_frequencies(count_sets(design.sample(n, np.random.default_rng(11)), sets), probabilities)
    rows, times = design.tally(n, np.random.default_rng(12))
    assert times.sum() == n
    assert len(np.unique(np.sort(rows, axis=1), axis=0)) == len(rows)
    counts = count_sets(np.repeat(rows, times, axis=0), sets)
    check_frequencies(counts, probabilities)


@designs
@pytest.mark.statistical
def test_orders_are_uniformly_random(make):
    design = make()
    rows = design.sample(60_000, np.random.default_rng(13))
    ranks = np.argsort(np.argsort(rows, axis=1), axis=1)
    orders = reference.orders_of(range(design.k))
    counts = np.zeros(len(orders), np.int64)
    index = {tuple(order): i for i, order in enumerate(orders)}
    for rank, times in zip(*np.unique(ranks, axis=0, return_counts=True), strict=True):
        counts[index[tuple(rank.tolist())]] += times
    check_frequencies(counts, np.full(len(orders), 1 / factorial(design.k)))


@designs
@pytest.mark.statistical
def test_draws_have_the_marginals(make):
    design = make()
    rows = design.sample(40_000, np.random.default_rng(14))
    drawn = np.zeros((len(rows), design.m))
    np.put_along_axis(drawn, rows, 1.0, axis=1)
    check_mean(drawn, design.marginals, resolution=0.02)


@pytest.mark.statistical
def test_the_law_check_can_fail():
    """Negative control: a law with 3 % of its mass moved between two sets is caught."""
    design = DESIGNS["conditional_poisson"]()
    sets = reference.sets_of(design.m, design.k)
    wrong = np.exp(design.log_prob(sets))
    order = np.argsort(wrong)
    wrong[order[-1]] -= 0.03
    wrong[order[-2]] += 0.03
    counts = count_sets(design.sample(200_000, np.random.default_rng(11)), sets)
    with pytest.raises(AssertionError, match="chi-square"):
        check_frequencies(counts, wrong)


@pytest.mark.statistical
def test_equal_marginals_are_not_the_same_law():
    """Negative control: systematic draws have the marginals but not the maximum-entropy law."""
    design = DESIGNS["conditional_poisson"]()
    sets = reference.sets_of(design.m, design.k)
    other = DESIGNS["systematic"]().sample(200_000, np.random.default_rng(11))
    with pytest.raises(AssertionError, match="chi-square"):
        check_frequencies(count_sets(other, sets), np.exp(design.log_prob(sets)))


def test_dependent_rounding_has_no_log_prob():
    with pytest.raises(NotImplementedError, match="no closed form for the probability of a set"):
        DependentRounding([0.5, 0.5]).log_prob([[0]])


@designs
def test_bad_arguments_are_refused(make):
    design = make()
    with pytest.raises(ValueError, match="n must be at least 0, got n=-1"):
        design.sample(-1, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got NoneType"):
        design.sample(1, None)
    with pytest.raises(ValueError, match="n must be at least 0, got n=-2"):
        design.tally(-2, np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"sets must have shape \(n, {design.k}\)"):
        design.log_prob([list(range(design.k + 1))])
    with pytest.raises(ValueError, match="sets must hold distinct arms"):
        design.log_prob([[design.m] * design.k])
    with pytest.raises(TypeError, match="sets must hold integers"):
        design.log_prob([[0.5] * design.k])

"""Rows of a plan have the sizes, the sets and the weights that it says, in whatever way drawn."""

from itertools import combinations

import numpy as np
import pytest

from evenhand.designs import ConditionalPoisson, Mixture
from evenhand.designs.mixture import fill_rows
from evenhand.exchange import SetPlan
from evenhand.testing.statistics import check_frequencies, count_sets

SIZES = np.array([0.3, 0.3, 0.4])
MANY = 40_000
MARGINALS = {
    "by a table": ([0.75, 0.7, 0.6, 0.5, 0.45], 0.2),
    "arms that have no choice": ([1.0, 0.8, 0.7, 0.5, 0.0], 0.0),
    "by a tree": ([0.9, 0.75, 0.6, 0.45, 0.3], 0.2),
    "uniformly": ([0.6] * 5, 1.0),
}


def plan_of(marginals, mixing):
    return SetPlan(0, np.arange(5), 3, np.array(marginals), SIZES, np.full(3, mixing))


def by_size(rows, r):
    return rows.pick(np.flatnonzero(rows.sizes[:, 0] == r))


@pytest.mark.statistical
@pytest.mark.parametrize("way", MARGINALS)
def test_rows_have_the_law_of_their_plan(way):
    plan = plan_of(*MARGINALS[way])
    rows = plan.draw(MANY, np.random.default_rng(5))
    counts = np.bincount(rows.sizes[:, 0], minlength=4)[1:]
    check_frequencies(counts, SIZES)
    for r in (1, 2, 3):
        sets = np.array(list(combinations(range(5), r)))
        drawn = by_size(rows, r)
        assert (drawn.orders[:, r:] == -1).all()
        assert (drawn.weights[:, r:] == 0.0).all()
        chances = np.exp(plan.law(r).log_prob(sets))
        check_frequencies(count_sets(np.sort(drawn.orders[:, :r]), sets), chances)
        first = np.bincount(drawn.orders[:, 0], minlength=5)  # in random order
        check_frequencies(first, plan.law(r).marginals / r)


def test_a_table_is_used_where_it_can_be_and_only_there():
    ways = {}
    for way, (marginals, mixing) in MARGINALS.items():
        law = plan_of(marginals, mixing).law(3)
        ways[way] = isinstance(law, Mixture) and law.design.arm_table is not None
    assert ways == {way: way == "by a table" for way in MARGINALS}


@pytest.mark.parametrize("way", MARGINALS)
def test_weights_are_those_of_rows_drawn_elsewhere(way):
    plan = plan_of(*MARGINALS[way])
    rows = plan.draw(500, np.random.default_rng(6))
    again = plan.weigh(rows.orders, rows.sizes)
    np.testing.assert_allclose(rows.weights, again.weights, rtol=1e-12)
    for r in (1, 2, 3):  # and those of the definition
        some, law = by_size(rows, r), plan.law(r)
        chance, sets = (
            np.exp(law.log_prob(some.orders[:, :r])),
            len(list(combinations("abcd", r - 1))),
        )
        expected = law.marginals[some.orders[:, :r]] / (sets * chance)[:, None]
        np.testing.assert_allclose(some.weights[:, :r], expected, rtol=1e-9)


@pytest.mark.parametrize("odds", [0.0, np.inf])
def test_weights_are_right_where_products_leave_the_range_of_floats(odds):
    law = plan_of(*MARGINALS["by a table"]).law(3)
    numbers, rows = np.random.default_rng(8).random(50), np.arange(50)
    orders, weights, expected = np.empty((50, 3), np.int64), np.empty((50, 3)), np.empty((50, 3))
    law._fill(rows, numbers, np.random.default_rng(7), orders, expected)
    level = np.log(10.0) - law.design.log_normaliser
    what = law.design.arm_table, np.full(5, odds), law.design.log_weights, level, law.eta
    fill_rows(*what, law.marginals, 3, rows, numbers, orders, weights)
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


def test_a_row_hangs_on_its_own_number_alone():
    """So rows may be drawn in any number of pieces."""
    law = plan_of(*MARGINALS["by a table"]).law(2)
    rng, numbers = np.random.default_rng(7), np.random.default_rng(8).random(50)
    whole, pieces = (np.full((50, 3), 9) for _ in range(2))
    weights = np.zeros((50, 3))
    law._fill(np.arange(50), numbers, rng, whole, weights)
    for part in (np.arange(20, 50), np.arange(20)):
        law._fill(part, numbers, rng, pieces, weights)
    assert np.array_equal(whole, pieces)


@pytest.mark.statistical
def test_another_law_would_be_seen():
    plan = plan_of(*MARGINALS["by a table"])
    other = plan_of([0.7, 0.7, 0.6, 0.5, 0.5], 0.2)
    drawn = by_size(plan.draw(MANY, np.random.default_rng(5)), 3)
    sets = np.array(list(combinations(range(5), 3)))
    with pytest.raises(AssertionError):
        check_frequencies(
            count_sets(np.sort(drawn.orders), sets), np.exp(other.law(3).log_prob(sets))
        )


def test_single_arms_have_exactly_the_marginals_asked_for():
    tiny = np.array([0.999, 0.9, 0.6, 0.5, 1e-3])
    law = SetPlan(0, np.arange(5), 3, tiny, SIZES, np.full(3, 1e-3)).law(1)
    assert isinstance(law.design, ConditionalPoisson)
    np.testing.assert_allclose(law.marginals, tiny / 3, rtol=1e-13)

"""The axioms of the full-set value, on random games; and the one it must lose."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import fair_policy, merit
from evenhand.games import Carrier, NoisyOr, SetFunction, additive
from evenhand.merit import Estimate
from evenhand.subsets.full_sets import coefficients
from tests import reference
from tests.property.test_axioms import games, table_game


def mean_value(game, arms, size):
    """Mean value of the sets of one size among some arms."""
    return float(np.mean([reference.value_of(game, s) for s in combinations(arms, size)]))


def psi_of(game, k):
    """The definition, sum by sum."""
    m = game.m
    level = mean_value(game, range(m), k)
    if k == m:
        return np.full(m, level / k)
    inside = [
        np.mean([reference.value_of(game, s) for s in reference.sets_of(m, k) if a in s])
        for a in range(m)
    ]
    return level / k + (m - 1) / (m - k) * (np.array(inside) - level)


@settings(max_examples=20)
@given(games(most=4))
def test_the_value_is_the_definition(drawn):
    values, m, k = drawn
    game = table_game(values, m)
    np.testing.assert_allclose(merit.full_set_value(game, k), psi_of(game, k), atol=1e-9)


@given(games())
def test_it_is_the_nearest_additive_game_on_full_sets(drawn):
    values, m, k = drawn
    game, sets = table_game(values, m), reference.sets_of(m, k)
    members = np.zeros((len(sets), m))
    for row, s in zip(members, sets, strict=True):
        row[s] = 1.0
    nearest = np.linalg.lstsq(members, game.value(members > 0), rcond=None)[0]
    np.testing.assert_allclose(merit.full_set_value(game, k), nearest, atol=1e-8)


@given(games(), st.floats(-3, 3), st.floats(-3, 3), st.randoms(use_true_random=False))
def test_linearity(drawn, alpha, beta, random):
    values, m, k = drawn
    others = [random.uniform(-10, 10) for _ in values]
    mixed = [alpha * x + beta * y for x, y in zip(values, others, strict=True)]
    one, other, both = (merit.full_set_value(table_game(v, m), k) for v in (values, others, mixed))
    np.testing.assert_allclose(both, alpha * one + beta * other, atol=1e-8)


@given(games(), st.randoms(use_true_random=False))
def test_symmetry(drawn, random):
    values, m, k = drawn
    order = list(range(m))
    random.shuffle(order)
    game = table_game(values, m)
    relabelled = SetFunction(lambda sets: game.value(sets[:, order]), m=m)
    psi = merit.full_set_value(relabelled, k)
    np.testing.assert_allclose(psi[order], merit.full_set_value(game, k), atol=1e-9)


@given(games())
def test_k_efficiency(drawn):
    values, m, k = drawn
    game = table_game(values, m)
    total = m / k * mean_value(game, range(m), k)
    np.testing.assert_allclose(merit.full_set_value(game, k).sum(), total, atol=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.data())
def test_additive_games_give_their_worths(worth, data):
    k = data.draw(st.integers(1, len(worth) - 1))
    game = additive(worth)
    np.testing.assert_allclose(merit.full_set_value(game, k), worth, atol=1e-9)
    np.testing.assert_allclose(merit.full_set_value(game, k), game.kshapley(k), atol=1e-9)


@given(games())
def test_only_full_sets_count(drawn):
    values, m, k = drawn
    sizes = np.array([i.bit_count() for i in range(2**m)])
    full = np.where(sizes == k, values, 7.0)
    one, other = (merit.full_set_value(table_game(v, m), k) for v in (values, full))
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize(("m", "k"), [(3, 2), (5, 1), (7, 3), (9, 8)])
def test_these_axioms_leave_no_other_value(m, k):
    """Linear, symmetric, from K-sets: x for sets with an arm, y for those without; two equations.

    Additive games are spanned by "one arm is worth 1": that arm gets 1, the others 0.
    """
    with_one, with_two = comb(m - 1, k - 1), comb(m - 2, k - 2) if k > 1 else 0
    # what the arm worth 1 gets, and what another gets, of which K-efficiency follows
    equations = [[with_one, 0.0], [with_two, with_one - with_two]]
    found = np.linalg.solve(equations, [1.0, 0.0]) * comb(m, k)
    np.testing.assert_allclose(found, coefficients(m, k), rtol=1e-9)


@given(games())
def test_what_a_null_player_gets(drawn):
    """The mean gain of the r-th arm over r = 1..K, less that of the K-th, in sets of the others."""
    values, m, k = drawn
    if k == m:
        return
    table = np.array(values)
    table[0] = 0.0
    game = table_game(table[np.arange(2**m) & ~1], m)  # arm 0 changes nothing
    means = [mean_value(game, range(1, m), r) for r in range(k + 1)]
    gains = np.diff(means)
    psi = merit.full_set_value(game, k)[0]
    np.testing.assert_allclose(psi, gains.mean() - gains[-1], atol=1e-9)


def test_the_null_player_is_lost():
    game = NoisyOr([0.5, 0.5, 0.0])
    assert game.kshapley(2)[2] == 0.0
    assert merit.full_set_value(game, 2)[2] == pytest.approx(0.125)


@st.composite
def coverages(draw):
    """A weighted coverage game, which is monotone and submodular, and a budget."""
    m = draw(st.integers(2, 6))
    items = draw(st.integers(1, 5))
    weights = np.array(draw(st.lists(st.floats(0, 1), min_size=items, max_size=items)))
    rows = st.lists(st.booleans(), min_size=items, max_size=items)
    covers = np.array(draw(st.lists(rows, min_size=m, max_size=m)), float)
    return SetFunction(lambda sets: (sets @ covers > 0) @ weights, m=m), draw(st.integers(1, m))


@given(coverages())
def test_no_value_is_below_0_where_gains_only_shrink(drawn):
    game, k = drawn
    assert merit.full_set_value(game, k).min() >= -1e-9


@given(coverages())
def test_what_full_sets_say_about_k_shapley_values_where_gains_only_shrink(drawn):
    """max(0, with - without) <= phi <= the least value of a full set with the arm."""
    game, k = drawn
    phi, m, sets = merit.exact(game, k), game.m, reference.sets_of(game.m, k)
    for a in range(m):
        inside = [reference.value_of(game, s) for s in sets if a in s]
        outside = [reference.value_of(game, s) for s in sets if a not in s]
        low = max(0.0, np.mean(inside) - np.mean(outside)) if outside else 0.0
        assert low - 1e-9 <= phi[a] <= min(inside) + 1e-9


def test_values_below_0_where_gains_grow_and_what_the_policy_makes_of_them():
    game = Carrier([[0, 1]], [0.6], m=4)  # a pair that is worth nothing apart
    psi = merit.full_set_value(game, 2)
    np.testing.assert_allclose(psi, [0.2, 0.2, -0.1, -0.1])
    with pytest.raises(ValueError, match="merit must be finite and >= 0"):
        fair_policy(psi, 2)
    counted = Estimate(psi, np.zeros(4), queries=0)  # of which noise may be below 0
    np.testing.assert_allclose(fair_policy(counted, 2), [1.0, 1.0, 0.0, 0.0])

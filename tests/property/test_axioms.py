"""The axioms that make the K-Shapley value unique, on random games."""

from math import comb

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import merit
from evenhand.games import SetFunction
from tests import reference


def table_game(values, m):
    """A game from a table of 2**m numbers, V(empty) = 0."""
    table = np.array(values)
    table[0] = 0.0
    return SetFunction(lambda sets: table[sets @ (1 << np.arange(m))], m=m)


@st.composite
def games(draw, most=5):
    """A random real-valued game and a budget."""
    m = draw(st.integers(2, most))
    k = draw(st.integers(1, m))
    numbers = st.floats(-10, 10, allow_nan=False, width=32)
    values = draw(st.lists(numbers, min_size=2**m, max_size=2**m))
    return values, m, k


@given(games())
def test_k_efficiency(drawn):
    values, m, k = drawn
    game = table_game(values, m)
    worth = sum(reference.value_of(game, s) for s in reference.sets_of(m, k)) / comb(m - 1, k - 1)
    np.testing.assert_allclose(merit.exact(game, k).sum(), worth, atol=1e-9)


@given(games(), st.floats(-3, 3), st.floats(-3, 3), st.randoms(use_true_random=False))
def test_linearity(drawn, alpha, beta, random):
    values, m, k = drawn
    others = [random.uniform(-10, 10) for _ in values]
    mixed = [alpha * x + beta * y for x, y in zip(values, others, strict=True)]
    left = merit.exact(table_game(mixed, m), k)
    right = alpha * merit.exact(table_game(values, m), k)
    right = right + beta * merit.exact(table_game(others, m), k)
    np.testing.assert_allclose(left, right, atol=1e-9)


@given(games())
def test_null_player(drawn):
    values, m, k = drawn
    table = np.array(values)
    table[0] = 0.0
    table = table[np.arange(2**m) & ~1]  # arm 0 changes nothing
    assert abs(merit.exact(table_game(table, m), k)[0]) <= 1e-9


@given(games())
def test_symmetry(drawn):
    values, m, k = drawn
    masks = np.arange(2**m)
    swapped = (masks & ~3) | ((masks & 1) << 1) | ((masks & 2) >> 1)
    table = 0.5 * (np.array(values) + np.array(values)[swapped])  # arms 0 and 1 are alike
    phi = merit.exact(table_game(table, m), k)
    np.testing.assert_allclose(phi[0], phi[1], atol=1e-9)


@given(games(), st.randoms(use_true_random=False))
def test_relabelling_arms_relabels_merits(drawn, random):
    values, m, k = drawn
    order = list(range(m))
    random.shuffle(order)
    game = table_game(values, m)
    relabelled = SetFunction(lambda sets: game.value(sets[:, order]), m=m)
    phi = merit.exact(relabelled, k)
    np.testing.assert_allclose(phi[order], merit.exact(game, k), atol=1e-9)


@settings(max_examples=20)
@given(games(most=4))
def test_exact_is_the_definition(drawn):
    values, m, k = drawn
    game = table_game(values, m)
    np.testing.assert_allclose(merit.exact(game, k), reference.kshapley(game, k), atol=1e-9)


@given(games())
def test_carrier_coefficients_and_back(drawn):
    values, m, k = drawn
    game = table_game(values, m)
    form = merit.carrier_form(game, k)
    sets = [s for size in range(1, k + 1) for s in reference.sets_of(m, size)]
    rows = np.zeros((len(sets), m), bool)
    for row, s in zip(rows, sets, strict=True):
        row[s] = True
    np.testing.assert_allclose(form.value(rows), game.value(rows), atol=1e-9)
    np.testing.assert_allclose(form.kshapley(k), merit.exact(game, k), atol=1e-9)

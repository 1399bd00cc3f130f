"""What holds for every game."""

import numpy as np
import pytest
import shapiq

from evenhand import kshapley, merit
from evenhand.games import CudaCascade, IndependentCascade
from evenhand.testing.statistics import check_mean
from tests import reference
from tests.contracts import GAMES

games = pytest.mark.parametrize("make", GAMES.values(), ids=GAMES)
ORDERS = np.array([[3, 1, 4], [0, 2, 1], [4, 3, 2]])
SIZES = np.array([[0, 1, 3], [2, 1, 3], [3, 2, 0]])


@games
def test_the_empty_set_is_worth_nothing(make):
    game = make()
    assert reference.value_of(game, []) == 0.0
    rewards = game.pull(ORDERS, np.zeros((3, 2), int), np.random.default_rng(0))
    np.testing.assert_array_equal(rewards, np.zeros((3, 2)))


@games
def test_same_generator_same_rewards_and_input_left_alone(make):
    game, orders, sizes = make(), ORDERS.copy(), SIZES.copy()
    first = game.pull(orders, sizes, np.random.default_rng(5))
    second = game.pull(orders, sizes, np.random.default_rng(5))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(orders, ORDERS)
    assert first.shape == SIZES.shape
    assert first.min() >= 0.0
    assert first.max() <= 1.0


@games
@pytest.mark.statistical
def test_rewards_average_to_the_value(make):
    game, n = make(), 40_000
    rewards = game.pull(np.repeat(ORDERS, n, 0), np.repeat(SIZES, n, 0), np.random.default_rng(1))
    for i, (order, sizes) in enumerate(zip(ORDERS, SIZES, strict=True)):
        expected = [reference.value_of(game, order[:size]) for size in sizes]
        check_mean(rewards[i * n : (i + 1) * n], expected, resolution=0.02)


@games
@pytest.mark.parametrize("k", [1, 3, 5])
def test_merits_are_the_papers_definition(make, k):
    game = make()
    expected = reference.kshapley(game, k)
    np.testing.assert_allclose(merit.exact(game, k), expected, atol=1e-12)
    np.testing.assert_allclose(kshapley(game, k), expected, atol=1e-12)


@games
@pytest.mark.parametrize("k", [2, 5])
def test_carrier_form_is_the_same_game_with_the_same_merits(make, k):
    game = make()
    form = merit.carrier_form(game, k)
    for size in range(1, k + 1):
        for arms in reference.sets_of(game.m, size):
            assert reference.value_of(form, arms) == pytest.approx(
                reference.value_of(game, arms), abs=1e-12
            )
    np.testing.assert_allclose(form.kshapley(k), merit.exact(game, k), atol=1e-12)


@games
@pytest.mark.parametrize(
    ("orders", "sizes", "rng", "error", "message"),
    [
        ([[0, 9]], [[1, 2]], 0, ValueError, r"orders must hold distinct arms in 0..4, got row 0"),
        ([[1, 1]], [[2]], 0, ValueError, r"distinct arms in 0..4, got row 0: \[1, 1\]"),
        ([[-1, 1]], [[2]], 0, ValueError, "distinct arms"),
        (
            [[0, 1]],
            [[3]],
            0,
            ValueError,
            r"sizes must lie in 0..2, the columns of orders, got row 0: \[3\]",
        ),
        ([[0, 1]], [[-1]], 0, ValueError, r"sizes must lie in 0..2"),
        ([[0, 1]], [1], 0, ValueError, r"orders must have shape \(n, k\) and sizes \(n, s\)"),
        ([[0.5, 1]], [[1]], 0, TypeError, "orders must hold integers, got dtype float64"),
        ([[0, 1]], [[1]], None, TypeError, "rng must be a numpy.random.Generator, got int"),
    ],
)
def test_bad_queries_are_refused(make, orders, sizes, rng, error, message):
    generator = 7 if rng is None else np.random.default_rng(rng)
    with pytest.raises(error, match=message):
        make().pull(orders, sizes, generator)


@games
def test_bad_sets_are_refused(make):
    with pytest.raises(TypeError, match=r"sets must be a boolean \(n, m\) matrix, got dtype int"):
        make().value(np.ones((1, 5), int))
    for shape in [(1, 4), (4,), (1, 1, 5), ()]:
        with pytest.raises(ValueError, match=r"sets must have shape \(n, 5\) or \(5,\), got \("):
            make().value(np.ones(shape, bool))


@games
def test_a_single_set_is_a_row(make):
    game, one = make(), np.array([True, False, True, True, False])
    assert game.value(one).shape == (1,)
    np.testing.assert_array_equal(game.value(one), game.value(one[None, :]))


@games
def test_value_is_what_shapiq_calls_a_game(make):
    """The exact computer passes all coalitions at once, permutation sampling also single ones."""
    game = make()
    shapley = kshapley(game, 5)
    found = shapiq.ExactComputer(game.value, n_players=5)("SV", order=1)
    np.testing.assert_allclose([found[(arm,)] for arm in range(5)], shapley, atol=1e-12)
    sampler = shapiq.PermutationSamplingSV(n=5, random_state=1)
    found = sampler.approximate(2000, game.value)
    # some 400 permutations of gains in [0, 1]: standard errors of at most 0.025
    np.testing.assert_allclose([found[(arm,)] for arm in range(5)], shapley, atol=0.1)


@games
def test_a_game_says_what_an_experiment_must_know(make):
    game = make()
    assert game.trajectory == (1 if type(game) is IndependentCascade else 0)
    assert getattr(game, "needs_gpu", False) == isinstance(game, CudaCascade)
    assert f"(m={game.m}, " in repr(game)
    assert len(repr(game)) < 100

"""What holds for every game."""

import numpy as np
import pytest

from evenhand import kshapley, merit
from evenhand.games import CudaCascade, IndependentCascade
from evenhand.testing import GAME_CHECKS
from tests import reference
from tests.contracts import GAMES

games = pytest.mark.parametrize("make", GAMES.values(), ids=GAMES)


@games
@pytest.mark.parametrize("check", GAME_CHECKS)
def test_games(check, make):
    check(make)


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
def test_bad_queries_are_refused(make):
    game, rng = make(), np.random.default_rng(0)
    for orders, sizes, generator, error, message in [
        ([[0, 9]], [[1, 2]], rng, ValueError, r"orders must hold distinct arms in 0..4, got row 0"),
        ([[1, 1]], [[2]], rng, ValueError, r"distinct arms in 0..4, got row 0: \[1, 1\]"),
        ([[-1, 1]], [[2]], rng, ValueError, "distinct arms"),
        (
            *([[0, 1]], [[3]], rng, ValueError),
            r"sizes must lie in 0..2, the columns of orders, got row 0: \[3\]",
        ),
        ([[0, 1]], [[-1]], rng, ValueError, r"sizes must lie in 0..2"),
        ([[0, 1]], [1], rng, ValueError, r"orders must have shape \(n, k\) and sizes \(n, s\)"),
        ([[0.5, 1]], [[1]], rng, TypeError, "orders must hold integers, got dtype float64"),
        ([[0, 1]], [[1]], 7, TypeError, "rng must be a numpy.random.Generator, got int"),
    ]:
        with pytest.raises(error, match=message):
            game.pull(orders, sizes, generator)


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


def test_value_is_what_shapiq_calls_a_game():
    """The exact computer passes all coalitions at once, permutation sampling also single ones."""
    import shapiq  # takes seconds, and no other test needs it

    for name, make in GAMES.items():
        game = make()
        shapley = kshapley(game, 5)
        found = shapiq.ExactComputer(game.value, n_players=5)("SV", order=1)
        exact = [found[(arm,)] for arm in range(5)]
        np.testing.assert_allclose(exact, shapley, atol=1e-12, err_msg=name)
        sampler = shapiq.PermutationSamplingSV(n=5, random_state=1)
        found = sampler.approximate(2000, game.value)
        sampled = [found[(arm,)] for arm in range(5)]
        # some 400 permutations of gains in [0, 1]: standard errors of at most 0.025
        np.testing.assert_allclose(sampled, shapley, atol=0.1, err_msg=name)


@games
def test_a_game_says_what_an_experiment_must_know(make):
    game = make()
    assert game.trajectory == (2 if type(game) is IndependentCascade else 1)
    assert getattr(game, "needs_gpu", False) == isinstance(game, CudaCascade)
    assert f"(m={game.m}, " in repr(game)
    assert len(repr(game)) < 100

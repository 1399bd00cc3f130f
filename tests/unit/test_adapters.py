import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import shapiq
from scipy import sparse
from shapiq_games import synthetic as theirs

import evenhand
from evenhand import adapters
from evenhand.games import IndependentCascade, NoisyOr, SetFunction
from evenhand.learners import IWKSVFair
from evenhand.merit import Estimate


def some_games():
    return [
        theirs.DummyGame(5, interaction=(1, 2)),
        theirs.SOUM(n=6, n_basis_games=20, random_state=3, normalize=True),
        theirs.SOUM(n=6, n_basis_games=20, random_state=4, normalize=False),
    ]


@pytest.mark.parametrize("game", some_games(), ids=lambda game: game.game_name)
def test_a_shapiq_game_has_its_shapley_values_here(game):
    ours = adapters.from_shapiq(game)
    values = shapiq.ExactComputer(game, n_players=game.n_players)("SV", order=1)
    due = [values[(player,)] for player in range(game.n_players)]
    assert evenhand.kshapley(ours, k=ours.m) == pytest.approx(due, abs=1e-12)


def test_a_shapiq_game_is_centred():
    class Lifted(shapiq.Game):
        def __init__(self):
            super().__init__(n_players=3, normalize=False)

        def value_function(self, coalitions):
            return 0.3 + 0.1 * coalitions.sum(axis=1)

    game = adapters.from_shapiq(Lifted())
    assert game.value(np.eye(3, dtype=bool)) == pytest.approx([0.1, 0.1, 0.1])
    assert game.value(np.zeros((1, 3), bool)) == [0.0]


def test_a_shapiq_game_can_be_learnt():
    game = adapters.from_shapiq(theirs.DummyGame(4, interaction=(1, 2)))
    scaled = SetFunction(lambda sets: game.value(sets) / 2, m=4)
    learner = IWKSVFair(m=4, k=2, horizon=20_000, gamma=0.8, seed=1)
    target = evenhand.fair_policy(evenhand.kshapley(scaled, k=2), k=2)
    run = evenhand.simulate(learner, scaled, 20_000, target=target, seed=2)
    assert np.abs(run.marginals - target).max() < 0.1


def test_our_games_are_shapiq_games():
    game = NoisyOr([0.1, 0.5, 0.7, 0.9])
    values = shapiq.ExactComputer(game.value, n_players=game.m)("SV", order=1)
    assert [values[(arm,)] for arm in range(4)] == pytest.approx(game.kshapley(4))


def test_merits_as_interaction_values():
    merit = NoisyOr([0.1, 0.5, 0.7]).kshapley(2)
    values = adapters.to_shapiq(merit)
    assert isinstance(values, shapiq.InteractionValues)
    assert (values.index, values.n_players, values.max_order) == ("SV", 3, 1)
    assert [values[(arm,)] for arm in range(3)] == pytest.approx(merit)
    assert values.get_n_order_values(1) == pytest.approx(merit)
    assert not values.estimated
    same = shapiq.ExactComputer(NoisyOr([0.1, 0.5, 0.7]).value, n_players=3)("SV", order=1)
    again = adapters.to_shapiq(NoisyOr([0.1, 0.5, 0.7]).kshapley(3))
    assert (same - again).get_n_order_values(1) == pytest.approx(0.0)  # theirs adds to ours


def test_an_estimate_tells_shapiq_what_it_cost():
    values = adapters.to_shapiq(Estimate(np.array([0.2, 0.1]), np.array([0.01, 0.01]), 500))
    assert values.estimated
    assert values.estimation_budget == 500


def test_without_shapiq_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"to_shapiq needs shapiq; install it with: pip install"):
        adapters.to_shapiq([0.2, 0.1])


def test_what_is_no_shapiq_game_is_refused():
    with pytest.raises(TypeError, match=r"n_players, got function; wrap a plain function"):
        adapters.from_shapiq(lambda sets: sets.sum(axis=1))
    with pytest.raises(ValueError, match="merit must"):
        adapters.to_shapiq([[1.0, 2.0]])


def test_a_graph_is_the_same_game_as_edges_sparse_matrix_and_networkx():
    edges, chances = [[0, 1], [1, 2], [0, 3], [3, 2]], [0.5, 0.25, 1.0, 0.125]
    matrix = sparse.lil_array((4, 4))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(4))
    for (u, v), chance in zip(edges, chances, strict=True):
        matrix[u, v] = chance
        graph.add_edge(u, v, weight=chance)
    sets = np.array([[True, False, False, False], [False, True, False, True]])
    wanted = IndependentCascade(edges, m=4, p=chances).value(sets)
    for other in (matrix, matrix.tocsr(), sparse.coo_matrix(matrix)):
        assert IndependentCascade(other).value(sets) == pytest.approx(wanted)
    assert IndependentCascade(graph, p="weight").value(sets) == pytest.approx(wanted)


@pytest.fixture(scope="module")
def run():
    game = NoisyOr([0.2, 0.4, 0.6, 0.8])
    target = evenhand.fair_policy(game.kshapley(2), k=2)
    learner = IWKSVFair(m=4, k=2, horizon=5000, gamma=0.8, seed=1)
    return evenhand.simulate(learner, game, 5000, target=target, seed=2)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_run_as_a_frame(run, frame):
    arms, curve = frame(adapters.arms(run)), frame(adapters.curve(run))
    assert list(arms.columns) == ["arm", "due", "exposure", "selections", "merit", "marginal"]
    assert arms.shape == (4, 6)
    assert np.asarray(arms["due"]).sum() == pytest.approx(1.0)
    assert np.asarray(arms["exposure"]) == pytest.approx(run.selections / run.selections.sum())
    assert np.array_equal(np.asarray(curve["queries"]), run.checkpoints)
    assert np.array_equal(np.asarray(curve["regret"]), run.regret)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_frame_has_the_names_of_the_arms(run, frame):
    arms = frame(adapters.arms(replace(run, names=("ann", "bob", "cy", "dot"))))
    assert list(arms.columns)[:3] == ["arm", "name", "due"]
    assert list(arms["name"]) == ["ann", "bob", "cy", "dot"]

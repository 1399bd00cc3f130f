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


def test_our_games_are_shapiq_games_for_one_coalition_and_for_many():
    game = NoisyOr([0.1, 0.5, 0.7, 0.9])
    shown = adapters.to_shapiq_game(game)
    sets = np.array([[True, False, True, False], [False] * 4, [True] * 4])
    assert isinstance(shown, shapiq.Game)
    np.testing.assert_allclose(shown(sets), game.value(sets))
    for one in sets:
        np.testing.assert_allclose(shown(one), game.value(one))
    assert shown((0, 2)) == pytest.approx(game.value(sets[:1]))
    values = shapiq.ExactComputer(shown, n_players=4)("SV", order=1)
    np.testing.assert_allclose(adapters.from_shapiq_values(values), game.kshapley(4))
    kernel = shapiq.KernelSHAP(n=4, random_state=1).approximate(16, shown)
    np.testing.assert_allclose(adapters.from_shapiq_values(kernel), game.kshapley(4))


def test_names_go_along_to_shapiq():
    game = SetFunction.per_set(len, m=3)
    game.names = ("ada", "bob", "cy")
    shown = adapters.to_shapiq_game(game)
    assert shown([("ada", "cy"), ("bob",)]).tolist() == [2.0, 1.0]


def test_their_games_take_one_set_here_too():
    game = adapters.from_shapiq(theirs.DummyGame(4, interaction=(1, 2)))
    sets = np.array([[True, True, True, False], [True, False, False, False]])
    np.testing.assert_allclose([game.value(one)[0] for one in sets], game.value(sets))


def test_only_values_are_values():
    with pytest.raises(TypeError, match="values must be shapiq's InteractionValues"):
        adapters.from_shapiq_values([1.0])


class Utility:
    """What pyDVL's utilities offer, and no more of it."""

    def __init__(self, training_data=None):
        self.training_data = training_data

    def __call__(self, sample):
        assert hash(sample) == hash(sample)
        return 0.25 + (self.training_data.weights[sample.subset].sum() if len(sample.subset) else 0)


class Grouped:
    indices = np.array([3, 1, 2])
    weights = np.array([9.0, 0.1, 0.2, 0.3])

    def __len__(self):
        return 3


def test_a_pydvl_utility_is_a_game_of_its_indices():
    game = adapters.from_pydvl(Utility(Grouped()))
    np.testing.assert_allclose(evenhand.kshapley(game, 2), [0.3, 0.1, 0.2], atol=1e-12)
    with pytest.raises(TypeError, match=r"call utility.with_dataset\(train\) first"):
        adapters.from_pydvl(Utility())


@pytest.fixture(scope="module")
def wine():
    from sklearn.datasets import load_wine

    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    return x[order], y[order]


def test_data_sources_are_trained_on_together(wine):
    from sklearn.naive_bayes import GaussianNB

    x, y = wine
    sources = [(x[i * 20 : i * 20 + 20], y[i * 20 : i * 20 + 20]) for i in range(4)]
    sources[3] = (x[y == 2][:20], y[y == 2][:20])  # a single class: no model can be trained
    test = (x[80:], y[80:])
    game = adapters.data_sources(GaussianNB(), sources, test, empty=0.25, names=list("abcd"))
    both = np.concatenate([sources[0][0], sources[2][0]]), np.r_[sources[0][1], sources[2][1]]
    expected = [GaussianNB().fit(*both).score(*test) - 0.25, np.mean(test[1] == 2) - 0.25]
    sets = np.array([[True, False, True, False], [False, False, False, True]])
    np.testing.assert_allclose(game.value(sets), expected)
    assert game.names == tuple("abcd")
    errors = adapters.data_sources(
        GaussianNB(), sources, test, metric=lambda true, guess: -np.mean(true != guess)
    )
    np.testing.assert_allclose(errors.value(sets[:1]), expected[0] + 0.25 - 1)


def test_features_are_seen_together(wine):
    from sklearn.linear_model import LinearRegression

    x, y = wine
    train, test = (x[:100], y[:100]), (x[100:], y[100:])
    game = adapters.features(LinearRegression(), train, test, groups=[[0, 1], [2], [5, 6, 7]])
    model = LinearRegression().fit(x[:100, [0, 1, 5, 6, 7]], y[:100])
    expected = model.score(x[100:, [0, 1, 5, 6, 7]], y[100:])
    assert game.value(np.array([True, False, True])) == pytest.approx(expected)
    assert adapters.features(LinearRegression(), train, test).m == 13


def test_members_of_a_forest_vote_together(wine):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    x, y = wine
    forest = RandomForestClassifier(5, random_state=1).fit(x[:60], y[:60])
    game = adapters.ensemble_members(forest.estimators_, (x[60:], y[60:]))
    assert game.value(np.ones(5, bool)) == pytest.approx(forest.score(x[60:], y[60:]))
    numbers = RandomForestRegressor(5, random_state=1).fit(x[:60], y[:60])
    game = adapters.ensemble_members(numbers.estimators_, (x[60:], y[60:]))
    assert game.value(np.ones(5, bool)) == pytest.approx(numbers.score(x[60:], y[60:]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adapters.data_sources(None, [], ([], [])), "got none"),
        (lambda: adapters.ensemble_members([], ([], [])), "got none"),
        (lambda: adapters.features(None, ([1.0], [1]), ([], [])), r"shape \(n, d\), got \(1,\)"),
        (
            lambda: adapters.data_sources(None, [([], [])], ([], []), names=["a", "b"]),
            "names must be 1, one per arm, got 2",
        ),
    ],
)
def test_what_is_no_data_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

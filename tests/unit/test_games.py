from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from evenhand import games, kshapley
from evenhand.checks import ROWS, first_bad_query
from evenhand.datasets import facebook_stand_in
from evenhand.games import IndependentCascade, NoisyOr, SetFunction
from evenhand.games.cascade.independent import pull_one_by_one
from evenhand.games.cascade.parallel import MAX_CELLS, MAX_PARALLEL, n_parallel, pull_in_parallel
from evenhand.games.game import prefix_sets
from evenhand.randomness.xoshiro import start_words
from tests import reference


def test_prefix_sets_are_the_asked_prefixes():
    sets = prefix_sets(np.array([[2, 0, 3]]), np.array([[0, 2, 3]]), 4)
    assert [np.flatnonzero(row).tolist() for row in sets] == [[], [0, 2], [0, 2, 3]]


def test_noisy_or_instances_are_the_papers():
    game = games.synthetic(10_000, np.random.default_rng(0))
    assert 0.2 <= game.mu.min() < 0.201
    assert 0.899 < game.mu.max() <= 0.9
    assert game.mu.mean() == pytest.approx(0.55, abs=0.01)
    assert np.all(game._noise[:, 1] == 0.1)  # the truncation of the paper, nowhere narrowed


def test_a_set_function_is_never_asked_for_the_empty_set():
    def value(sets):
        assert sets.any(axis=1).all()
        return sets.mean(axis=1)

    game = SetFunction(value, m=3)
    assert game.value(np.zeros((2, 3), bool)).tolist() == [0.0, 0.0]
    assert kshapley(game, 2) == pytest.approx(np.full(3, 1 / 3))


def test_set_functions_are_asked_in_blocks(monkeypatch):
    monkeypatch.setattr("evenhand.games.game.BLOCK_CELLS", 8)
    largest = []

    def value(sets):
        largest.append(len(sets))
        return sets.mean(axis=1)

    rewards = SetFunction(value, m=4).pull(
        np.tile([0, 1], (5, 1)), np.tile([1, 2], (5, 1)), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(rewards, np.tile([0.25, 0.5], (5, 1)))
    assert max(largest) <= 2


EDGES = np.array([[0, 1], [1, 2], [0, 3]])
P = np.array([0.2, 0.5, 0.7])


def cascades():
    dense = np.zeros((4, 4))
    dense[EDGES[:, 0], EDGES[:, 1]] = P
    graph = nx.DiGraph()
    graph.add_nodes_from(range(4))
    for (u, v), p in zip(EDGES.tolist(), P, strict=True):
        graph.add_edge(u, v, chance=p)
    return {
        "edges": IndependentCascade(EDGES, 4, P),
        "csr": IndependentCascade(sparse.csr_array(dense)),
        "coo_matrix": IndependentCascade(sparse.coo_matrix(dense)),
        "networkx": IndependentCascade(graph, p="chance"),
    }


@pytest.mark.parametrize("name", ["edges", "csr", "coo_matrix", "networkx"])
def test_graphs_come_in_every_form(name):
    game = cascades()[name]
    assert game.m == 4
    sets = np.eye(4, dtype=bool)
    expected = [(1 + 0.2 + 0.2 * 0.5 + 0.7) / 4, (1 + 0.5) / 4, 1 / 4, 1 / 4]
    np.testing.assert_allclose(game.value(sets), expected, atol=1e-15)


def test_an_undirected_networkx_graph_goes_both_ways_and_keeps_its_node_order():
    game = IndependentCascade(nx.Graph([("b", "a"), ("a", "c")]), p=1.0)
    assert sorted(game.edges.tolist()) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    np.testing.assert_allclose(game.value(np.eye(3, dtype=bool)), 1.0)


def test_an_undirected_edge_has_its_probability_both_ways():
    graph = nx.Graph([("b", "a"), ("a", "c")])
    game = IndependentCascade(graph, p=[0.2, 0.6])
    expected = [(1 + 0.2 + 0.2 * 0.6) / 3, (1 + 0.2 + 0.6) / 3, (1 + 0.6 + 0.6 * 0.2) / 3]
    np.testing.assert_allclose(game.value(np.eye(3, dtype=bool)), expected, atol=1e-15)


def test_a_sparse_matrix_means_its_values_however_it_is_stored():
    twice = sparse.coo_array(([0.2, 0.3, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    for matrix in (twice, twice.tocsr()):
        game = IndependentCascade(matrix)
        assert game.edges.tolist() == [[0, 1]]
        assert game.p.tolist() == [0.5]


def test_the_packages_own_graph_comes_in_as_it_is():
    graph = facebook_stand_in()
    game = IndependentCascade(graph, p=0.1)
    np.testing.assert_array_equal(game.edges, graph.edges)
    both = graph.both_ways()
    forward = {tuple(edge) for edge in graph.edges.tolist()}
    backward = {(v, u) for u, v in forward}
    assert {tuple(edge) for edge in both.edges.tolist()} == forward | backward


def test_rounding_above_one_is_no_offence():
    rng = np.random.default_rng(0)
    for _ in range(300):
        game = games.additive(rng.dirichlet(np.ones(7)))
        assert game.pull([rng.permutation(7)], [[7]], rng)[0, 0] == pytest.approx(1.0)


def test_no_prefix_asked_no_reward():
    for make in (games.NoisyOr([0.5, 0.5]), games.IndependentCascade([[0, 1]], 2, 0.5)):
        empty = np.empty((3, 0), int)
        assert make.pull(np.zeros((3, 1), int), empty, np.random.default_rng(0)).shape == (3, 0)
    assert make.pull_coupled(np.zeros((3, 1), int), empty, np.random.default_rng(0)).shape == (3, 0)


def test_a_graph_without_edges_is_additive():
    game = IndependentCascade(np.empty((0, 2), int), m=4, p=0.5)
    np.testing.assert_allclose(kshapley(game, 3), 0.25)


def test_one_probability_zero_and_one():
    rng, sizes = np.random.default_rng(0), np.array([[1]])
    for p, expected in [(0.0, 0.25), (1.0, 1.0)]:
        game = IndependentCascade([[0, 1], [1, 2], [2, 3]], 4, p)
        assert game.pull([[0]], sizes, rng)[0, 0] == expected


def test_coupled_pulls_never_fall_along_a_row():
    graph = facebook_stand_in()
    game = IndependentCascade(graph.edges, graph.m, 0.1)
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(graph.m)[:10] for _ in range(200)])
    rewards = game.pull_coupled(orders, np.tile(np.arange(11), (200, 1)), rng)
    assert np.all(np.diff(rewards, axis=1) >= 0)
    assert np.all(rewards[:, 1:] * graph.m >= np.arange(1, 11) - 1e-9)
    fresh = game.pull(orders, np.tile(np.arange(11), (200, 1)), rng)
    assert np.any(np.diff(fresh, axis=1) < 0)  # fresh cascades do: the test can fail


def test_the_exact_spread_points_elsewhere_where_it_cannot_be_had():
    graph = facebook_stand_in()
    game = IndependentCascade(graph.edges, graph.m, 0.1)
    message = (
        r"at most 20 edges with 0 < p < 1, got 8158; estimate merits with "
        r"evenhand.merit.reverse_reachable or evenhand.merit.monte_carlo"
    )
    with pytest.raises(ValueError, match=message):
        game.value(np.eye(graph.m, dtype=bool))
    for k in (2, 10):
        with pytest.raises(ValueError, match=message):
            kshapley(game, k)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NoisyOr([0.5, 1.5]), ValueError, r"mu must lie in \[0, 1\], got mu\[1\]=1.5"),
        (lambda: NoisyOr([0.5, np.nan]), ValueError, r"mu\[1\]=nan"),
        (lambda: NoisyOr([]), ValueError, r"mu must be a non-empty vector, got shape \(0,\)"),
        (lambda: NoisyOr([0.5], sd=0), ValueError, "sd must be above 0, got sd=0"),
        (
            lambda: NoisyOr([0.5], width=-1),
            ValueError,
            "width must be finite and >= 0, got width=-1",
        ),
        (
            lambda: IndependentCascade([[0, 5]], m=3, p=0.1),
            ValueError,
            r"edges must join nodes in 0..2, got edges\[0\]=\[0, 5\]",
        ),
        (lambda: IndependentCascade([[-1, 0]], m=3, p=0.1), ValueError, "nodes in 0..2"),
        (lambda: IndependentCascade([[0, 1, 2]], m=3, p=0.1), ValueError, r"edges must have shape"),
        (lambda: IndependentCascade([[0.0, 1.0]], 3, 0.1), TypeError, "edges must hold integers"),
        (lambda: IndependentCascade([[0, 1]], p=0.1), TypeError, "m, the number of nodes, must be"),
        (lambda: IndependentCascade([[0, 1]], m=3), TypeError, "p, the activation probability"),
        (lambda: IndependentCascade([[0, 1]], 3, 1.5), ValueError, r"p must lie in \[0, 1\], got"),
        (lambda: IndependentCascade([[0, 1]], 3, np.nan), ValueError, "p must lie in"),
        (lambda: IndependentCascade([[0, 1]], p=1.5), ValueError, r"p must lie in \[0, 1\], got"),
        (lambda: IndependentCascade([[0, 1]], 3, "0.5"), TypeError, "p must be a number or one"),
        (lambda: IndependentCascade([[0, 1]], 3, ["0.5"]), TypeError, "p must be a number or one"),
        (
            lambda: IndependentCascade([[0, 1]], 3, True),
            TypeError,
            "p must be a number .* got True",
        ),
        (lambda: IndependentCascade([[0, 1]], 3, 0.5j), TypeError, "p must be a number or one"),
        (
            lambda: IndependentCascade(sparse.csr_array(np.array([[0, 1j], [0, 0]]))),
            TypeError,
            "p must be a number or one per edge",
        ),
        (
            lambda: IndependentCascade([[0, 1]], 10**12, 0.5),
            ValueError,
            r"m must be at most 2\^31 - 1, got m=1000000000000",
        ),
        (
            lambda: IndependentCascade(games.Graph([[0.5, 1]], 2, "x"), p=0.5),
            TypeError,
            "edges must hold integers, got dtype float64",
        ),
        (
            lambda: IndependentCascade(nx.path_graph(3), m="3", p=0.1),
            TypeError,
            "m must be an integer, got '3'",
        ),
        (
            lambda: IndependentCascade([[0, 1]], 3, [0.1, 0.2]),
            ValueError,
            r"p must be a number or have shape \(1,\), got \(2,\)",
        ),
        (
            lambda: IndependentCascade(sparse.csr_array(np.ones((2, 3))), p=0.1),
            ValueError,
            r"edges must be a square matrix, got shape \(2, 3\)",
        ),
        (
            lambda: IndependentCascade(nx.path_graph(3), m=4, p=0.1),
            ValueError,
            "m must equal the graph's number of nodes 3, got m=4",
        ),
        (
            lambda: IndependentCascade(nx.path_graph(3), p="weight"),
            ValueError,
            "p must name an attribute of every edge, got p='weight'",
        ),
        (lambda: SetFunction(3, m=2), TypeError, "f must be a function"),
        (lambda: SetFunction(len, 2, noise=games.Bernoulli), TypeError, "noise must be None or"),
        (lambda: games.additive([0.1], noise="gauss"), TypeError, "noise must be None or have"),
        (lambda: IndependentCascade(nx.Graph(), p=0.1), ValueError, "m must be at least 1"),
        (lambda: IndependentCascade([[0, 1], [2]], 3, 0.1), ValueError, "edges must be a rectan"),
        (lambda: IndependentCascade([[0, 1]], 3, "high"), TypeError, "p must be a number or one"),
        (lambda: kshapley("x", 2), TypeError, "game must have m and value, got str"),
        (lambda: SetFunction.per_set(3, m=2), TypeError, "f must be a function of a frozenset"),
        (lambda: SetFunction(len, m=0), ValueError, "m must be at least 1, got m=0"),
        (
            lambda: SetFunction(len, 2, noise="gauss"),
            TypeError,
            "noise must be None or have observe",
        ),
        (
            lambda: games.Carrier([[0, 9]], [1.0], m=3),
            ValueError,
            r"coalitions must be non-empty sequences of distinct arms in 0..2, got \[0, 9\]",
        ),
        (lambda: games.Carrier([[]], [1.0], m=3), ValueError, "coalitions must be non-empty seq"),
        (lambda: games.Carrier([0], [1.0], m=3), ValueError, "distinct arms in 0..2, got 0"),
        (lambda: games.Carrier([{0, 1}], [1.0], m=3), ValueError, r"arms in 0..2, got \{0, 1\}"),
        (lambda: games.Carrier(3, [1.0], m=3), TypeError, "coalitions must be a sequence of sets"),
        (
            lambda: games.Carrier(({a} for a in range(1)), [1.0], m=3),
            TypeError,
            "coalitions must be a sequence of sets",
        ),
        (
            lambda: games.Carrier([[0]], [1.0, 2.0], m=3),
            ValueError,
            "coalitions and coefficients must have the same length, got 1 and 2",
        ),
        (
            lambda: games.additive([np.inf]),
            ValueError,
            r"values must be finite, got values\[0\]=inf",
        ),
        (
            lambda: games.hard_pair(4, 2, 0.5),
            ValueError,
            "delta must be at most zeta/2=0.0208333, got delta=0.5",
        ),
        (lambda: games.hard_pair(4, 4, 0.01), ValueError, "k must satisfy 1 < k < m for the lower"),
        (lambda: games.hard_pair(4, 2, 0.0), ValueError, "delta must be above 0, got delta=0"),
        (lambda: facebook_stand_in(-1), ValueError, "seed must be at least 0, got seed=-1"),
        (lambda: facebook_stand_in(1.5), TypeError, "seed must be an integer, got 1.5"),
        (lambda: games.synthetic(5, 1), TypeError, "rng must be a numpy.random.Generator, got int"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda sets: 0.5, ValueError, r"f must return one value per set, shape \(1,\), got \(\)"),
        (lambda sets: sets, ValueError, r"got \(1, 3\); for a function of a single set use SetFu"),
        (lambda sets: ["x"], TypeError, r"f must return real numbers, got \['x'\]"),
        (lambda sets: ["0.5"], TypeError, r"f must return real numbers, got \['0.5'\]"),
        (lambda sets: [0.5j], TypeError, r"f must return real numbers, got \[0.5j\]"),
        (lambda sets: [np.nan], ValueError, r"finite values, got nan for the set \[0, 2\]"),
    ],
)
def test_what_a_users_function_returns_is_checked(f, error, message):
    with pytest.raises(error, match=message):
        SetFunction(f, m=3).value(np.array([[True, False, True]]))


@pytest.mark.parametrize("noise", [None, games.Bernoulli(), games.TruncatedGaussian()])
def test_rewards_outside_the_unit_interval_are_refused(noise):
    game = SetFunction(lambda sets: sets.sum(axis=1) * 0.7, m=3, noise=noise)
    message = r"rewards must lie in \[0, 1\], got 1.4 for the set \[0, 1\]; rescale the game"
    with pytest.raises(ValueError, match=message):
        game.pull([[0, 1]], [[1, 2]], np.random.default_rng(0))
    assert game.value(np.ones((1, 3), bool))[0] == pytest.approx(2.1)  # merits need no bounds


def test_noise_of_ones_own_is_checked():
    class Wild:
        def observe(self, means, rng):
            return means + 5

    class Short:
        def observe(self, means, rng):
            return means[:1]

    for noise, message in [(Wild(), "must lie in"), (Short(), "noise must return shape")]:
        game = SetFunction(lambda sets: sets.mean(axis=1), m=2, noise=noise)
        with pytest.raises(ValueError, match=message):
            game.pull([[0, 1]], [[1, 2]], np.random.default_rng(0))


def test_a_function_of_one_set_must_return_one_number():
    game = SetFunction.per_set(lambda arms: [0.5, 0.5], m=2)
    with pytest.raises(ValueError, match=r"f must return one number per set, got \[0.5, 0.5\]"):
        game.value(np.ones((1, 2), bool))


def test_a_function_may_return_fractions_and_truth_values():
    pair = np.array([[True, True]])
    assert SetFunction.per_set(lambda arms: Fraction(len(arms), 4), m=2).value(pair) == [0.5]
    assert SetFunction(lambda sets: sets.all(axis=1), m=2).value(pair) == [1.0]


def test_wide_noisy_or_is_seen_as_success_or_failure():
    game = games.wide_noisy_or(6, np.random.default_rng(3))
    mu = 10.0 ** np.random.default_rng(3).uniform(-2.0, 0.0, 6)
    orders, sizes = np.tile([4, 1, 0], (50, 1)), np.tile([1, 3], (50, 1))
    means = [mu[4], 1.0 - (1.0 - mu[[4, 1, 0]]).prod()]
    expected = np.random.default_rng(5).random((50, 2)) < means
    np.testing.assert_array_equal(game.pull(orders, sizes, np.random.default_rng(5)), expected)
    np.testing.assert_array_equal(game.kshapley(3), NoisyOr(mu).kshapley(3))


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (NoisyOr([0.25, 0.5]), "NoisyOr(m=2, mu=0.25..0.5, sd=0.1, width=0.1)"),
        (SetFunction(len, 3), "SetFunction(m=3, noise=None)"),
        (SetFunction(len, 3, noise=games.Bernoulli()), "SetFunction(m=3, noise=Bernoulli())"),
        (
            games.additive([0.1, 0.2], noise=games.TruncatedGaussian(sd=0.2)),
            "Carrier(m=2, coalitions=2, noise=TruncatedGaussian(sd=0.2, width=0.1))",
        ),
        (
            games.wide_noisy_or(1, np.random.default_rng(0)),
            "BinaryNoisyOr(m=1, mu=0.188)",
        ),
        (IndependentCascade(EDGES, 4, 0.1), "IndependentCascade(m=4, edges=3, p=0.1)"),
        (IndependentCascade(EDGES, 4, P), "IndependentCascade(m=4, edges=3, p=0.2..0.7)"),
        (IndependentCascade([], 4, 0.1), "IndependentCascade(m=4, edges=0, p=none)"),
        (
            facebook_stand_in(),
            "Graph(m=534, edges=8158, name='stand-in for the Facebook graph (generated, seed 0)')",
        ),
    ],
)
def test_games_noises_and_graphs_show_themselves_in_one_line(thing, text):
    assert repr(thing) == text


def test_a_graph_given_as_a_list_is_read_too():
    graph = games.Graph([[0, 1], [1, 2]], 3, "a chain")
    assert graph.both_ways().edges.tolist() == [[0, 1], [1, 2], [1, 0], [2, 1]]
    assert IndependentCascade(graph, p=1.0).value(np.eye(3, dtype=bool)).tolist() == [
        1,
        2 / 3,
        1 / 3,
    ]


def graphs():
    """Arcs upwards, downwards, anyhow, with loops and twice."""
    rng = np.random.default_rng(3)
    path = np.stack([np.arange(39), np.arange(1, 40)], axis=1)
    return {
        "up": path,
        "down": path[:, ::-1],
        "ring": np.concatenate([path, [[39, 0]]]),
        "anyhow": rng.integers(0, 40, (50, 2)),
        "loops": np.concatenate([path[::2], path[:, [0, 0]], path[::3, ::-1]]),
        "twice": np.concatenate([path[::3], path[::3]]),
        "none": np.empty((0, 2), np.int64),
    }


@pytest.mark.parametrize("name", graphs())
@pytest.mark.parametrize("parallel", [1, 7, 64])
def test_certain_arcs_reach_what_can_be_reached(name, parallel):
    edges = graphs()[name]
    game = IndependentCascade(edges, 40, 1.0)
    rng = np.random.default_rng(4)
    orders = np.array([rng.permutation(40)[:6] for _ in range(50)])
    sizes = np.tile([0, 1, 3, 6], (50, 1))
    live = [1] * len(edges)
    expected = [
        [len(reference.cascade(edges, live, 40, order[:size], rng)) / 40 for size in row]
        for order, row in zip(orders, sizes, strict=True)
    ]
    np.testing.assert_array_equal(
        pull_in_parallel(game.arcs, orders, sizes, parallel, start_words(rng)), expected
    )
    np.testing.assert_array_equal(
        pull_one_by_one(game.arcs, orders, sizes, start_words(rng)), expected
    )


def test_cascades_run_in_parallel_where_that_pays():
    assert n_parallel(534, 10) == 0
    assert n_parallel(534, 500) == 500
    assert n_parallel(534, 10**5) == MAX_PARALLEL
    assert n_parallel(20_000, 10**5) == MAX_CELLS // 20_000
    assert n_parallel(10**6, 10**5) == 0


def test_a_repeated_arm_is_found_wherever_it_stands():
    rng = np.random.default_rng(0)
    found = [0, 0]
    for _ in range(300):
        m, k, n = rng.integers(1, 7, 3)
        orders = rng.integers(0, m, (n, k))
        sizes = rng.integers(0, k + 1, (n, 2))
        bad = [
            i
            for i, (row, asked) in enumerate(zip(orders.tolist(), sizes.max(axis=1), strict=True))
            if len(set(row[:asked])) < asked
        ]
        assert first_bad_query(orders, sizes, m) == ((bad[0] if bad else -1), False)
        found[bool(bad)] += 1
    assert min(found) > 50


def test_the_first_bad_row_is_named_and_whether_its_size_is():
    rng, found, found_behind = np.random.default_rng(1), {}, {}
    for trial in range(600):
        m, k, n, s = rng.integers(1, 6, 4)
        orders = np.array([rng.permutation(max(m, k))[:k] for _ in range(n)])
        sizes = rng.integers(0, min(m, k) + 1, (n, s))
        for _ in range(rng.integers(0, 3)):  # some arms or sizes that are none
            where = rng.integers(n), rng.integers(k)
            orders[where] = rng.choice([-1, m, m + 7])
            sizes[where[0], rng.integers(s)] = rng.choice([-1, 0, k, k + 1])
        expected = -1, False
        for i, (row, asked) in enumerate(zip(orders, sizes, strict=True)):
            arms = row[: max(0, asked.max())].tolist()
            if asked.min() < 0 or asked.max() > k:
                expected = i, True
            elif not all(0 <= arm < m for arm in arms) or len(set(arms)) < len(arms):
                expected = i, False
            if expected[0] >= 0:
                break
        assert first_bad_query(orders, sizes, m) == expected
        found[expected[0] >= 0, expected[1]] = True
        if trial % 10 == 0:  # the same behind a block of good rows, but for one
            good = ROWS - 1
            orders = np.concatenate([np.tile(np.arange(k) % m, (good, 1)), orders])
            sizes = np.concatenate([np.ones((good, s), np.int64), sizes])
            bad, by_size = expected
            behind = bad + good if bad >= 0 else -1
            assert first_bad_query(orders, sizes, m) == (behind, by_size)
            found_behind[bad >= 0, by_size] = True
    assert len(found) == len(found_behind) == 3  # none bad, a bad arm, a bad size


def test_errors_in_a_users_function_say_what_it_was_given():
    with pytest.raises(ValueError, match="ambiguous") as caught:
        games.SetFunction(lambda arms: max(arms) / 4, m=3).value(np.eye(3, dtype=bool))
    assert "for a function of a single set use SetFunction.per_set" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        games.SetFunction.per_set(lambda sets: sets * 0.5, m=3).value(np.eye(3, dtype=bool))
    assert caught.value.__notes__[0].startswith("f was given a frozenset of arms: ")

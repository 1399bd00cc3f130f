from importlib import import_module
from math import comb

import numpy as np
import pytest
import shapiq
from shapiq_games import synthetic

from evenhand import games, kshapley, merit
from evenhand.display import html_table
from evenhand.merit.blocks import cut_orders
from evenhand.subsets.combinations import combinations
from tests import reference

stratified = import_module("evenhand.merit.stratified")  # the name stands for the function


@pytest.mark.parametrize(("m", "k", "block"), [(5, 0, 3), (5, 1, 2), (6, 3, 7), (4, 4, 9)])
def test_combinations_are_those_of_itertools_in_any_blocks(m, k, block):
    blocks = list(combinations(m, k, block))
    assert all(len(rows) <= block for rows in blocks)
    assert [row.tolist() for rows in blocks for row in rows] == reference.sets_of(m, k)


@pytest.mark.parametrize(("m", "k"), [(20, 5), (12, 12), (9, 1)])
def test_noisy_or_closed_form_is_the_enumeration(m, k):
    game = games.synthetic(m, np.random.default_rng(m))
    np.testing.assert_allclose(game.kshapley(k), merit.exact(game, k), atol=1e-14)


@pytest.mark.parametrize("mu", [[1.0, 1e-3, 1e-3, 1e-3, 1e-9], [0.0, 1.0, 1.0, 0.5], [0.7]])
def test_noisy_or_closed_form_loses_no_digits_at_the_ends(mu):
    """Removing a factor from a symmetric polynomial cancels here; taking in the others cannot."""
    game = games.NoisyOr(mu)
    for k in range(1, len(mu) + 1):
        np.testing.assert_allclose(
            game.kshapley(k), reference.kshapley(game, k), rtol=1e-9, atol=1e-15
        )


def test_noisy_or_closed_form_at_a_hundred_thousand_arms():
    mu = np.full(100_000, 0.01)
    mean = np.mean(0.99 ** np.arange(20))  # equal arms: every s-subset has the same product
    np.testing.assert_allclose(games.NoisyOr(mu).kshapley(20), 0.01 * mean, rtol=1e-12)


def test_exact_streams_blocks_smaller_than_the_sets(monkeypatch):
    game = games.synthetic(9, np.random.default_rng(0))
    expected = merit.exact(game, 4)
    monkeypatch.setattr(import_module("evenhand.merit.exact"), "BLOCK_CELLS", 64)
    np.testing.assert_allclose(merit.exact(game, 4), expected, atol=1e-14)


def test_exact_values_every_set_once_and_never_above_k():
    asked = []

    def value(sets):
        asked.extend(map(tuple, sets.tolist()))
        return sets.mean(axis=1)

    merit.exact(games.SetFunction(value, m=7), 3)
    assert len(asked) == len(set(asked)) == sum(comb(7, s) for s in (1, 2, 3))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_carrier_game_shares_as_claim_2(d):
    m, k = 7, 3
    game = games.Carrier([list(range(d))], [0.6], m=m)
    share = comb(m - d, k - d) / comb(m - 1, k - 1) / d
    expected = np.where(np.arange(m) < d, 0.6 * share, 0.0)
    np.testing.assert_allclose(game.kshapley(k), expected, atol=1e-15)
    np.testing.assert_allclose(merit.exact(game, k), expected, atol=1e-15)


def test_carrier_larger_than_k_is_worth_nothing():
    assert games.Carrier([[0, 1, 2]], [1.0], m=5).kshapley(2).tolist() == [0.0] * 5


@pytest.mark.parametrize(("m", "k", "delta"), [(4, 2, 0.02), (6, 3, 0.01), (5, 4, 0.02)])
def test_the_hard_pair_is_as_the_paper_derives(m, k, delta):
    v0, v1 = games.hard_pair(m, k, delta)
    beta = 1 / (4 * k)
    zeta = (k - 1) / (m - 1) * beta
    rho = delta / (k * comb(m - 1, k - 1))
    special = np.isin(np.arange(m), np.arange(1, k + 1))
    merit1 = np.where(np.arange(m) == 0, beta, np.where(special, zeta + rho, zeta))
    merit0 = np.where(np.arange(m) == 0, beta, zeta)
    np.testing.assert_allclose(kshapley(v0, k), merit0, atol=1e-15)
    np.testing.assert_allclose(kshapley(v1, k), merit1, atol=1e-15)
    pi0, pi1 = k * merit0 / merit0.sum(), k * merit1 / merit1.sum()
    assert pi0[0] == pytest.approx(1.0, abs=1e-12)
    assert pi1.max() <= 1.0
    assert np.abs(pi1 - pi0).sum() >= 4 * delta / comb(m - 1, k - 1)


@pytest.mark.parametrize(("m", "k", "delta"), [(4, 2, 0.02), (6, 3, 0.01), (5, 4, 0.02)])
def test_the_hard_pair_is_monotone_submodular_and_differs_on_one_feasible_set(m, k, delta):
    pair = games.hard_pair(m, k, delta)
    feasible = [s for size in range(k + 1) for s in reference.sets_of(m, size)]
    different = []
    for s in feasible:
        v = [reference.value_of(game, s) for game in pair]
        assert all(0.0 <= x < 1.0 for x in v)
        if abs(v[0] - v[1]) > 1e-12:
            different.append(s)
        if len(s) == k:
            continue
        for game, here in zip(pair, v, strict=True):
            gains = {a: reference.value_of(game, [*s, a]) - here for a in range(m) if a not in s}
            assert min(gains.values()) >= -1e-15
            for b in gains:
                if len(s) + 2 > k:
                    continue
                then = reference.value_of(game, [*s, b])
                for a in gains:
                    if a != b:
                        gain = reference.value_of(game, [*s, b, a]) - then
                        assert gain <= gains[a] + 1e-12
    assert different == [list(range(1, k + 1))]


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(lambda: synthetic.DummyGame(n=7, interaction=(1, 2, 5)), id="dummy"),
        pytest.param(lambda: synthetic.SOUM(n=8, n_basis_games=20, random_state=1), id="soum"),
        pytest.param(lambda: synthetic.SOUM(n=6, n_basis_games=50, random_state=3), id="soum6"),
    ],
)
def test_k_equal_m_is_the_shapley_value_of_shapiq_on_its_own_games(theirs):
    game = theirs()
    n = game.n_players
    empty = float(game(np.zeros((1, n), bool))[0])
    ours = games.SetFunction(lambda sets: game(sets) - empty, m=n)
    values = shapiq.ExactComputer(game, n_players=n)("SV", order=1)
    expected = [values[(i,)] for i in range(n)]
    np.testing.assert_allclose(merit.exact(ours, n), expected, atol=1e-10)
    assert np.abs(merit.exact(ours, 2) - expected).max() > 1e-3  # K makes a difference


def test_too_many_sets_are_refused_before_any_is_valued():
    def never(sets):
        raise AssertionError("the function was asked")

    with pytest.raises(
        ValueError,
        match=r"max_sets >= 4.87e\+20 .* got max_sets=1000000000; .* evenhand.merit.stratified",
    ):
        merit.exact(games.SetFunction(never, m=534), 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g, r: kshapley(g, 0), ValueError, "k must satisfy 1 <= k <= m, got k=0 with m=5"),
        (lambda g, r: merit.exact(g, 6), ValueError, "got k=6 with m=5"),
        (lambda g, r: merit.exact(g, "two"), TypeError, "k must be an integer, got 'two'"),
        (
            lambda g, r: merit.monte_carlo(g, 2, 19, r),
            ValueError,
            "queries must be at least 20, got queries=19",
        ),
        (
            lambda g, r: merit.stratified(g, 2, 15, r),
            ValueError,
            "queries must be at least 16, got queries=15",
        ),
        (
            lambda g, r: merit.stratified(g, 2, 1e3, r),
            TypeError,
            "queries must be an integer, got 1000.0",
        ),
        (lambda g, r: merit.exact(len, 2), TypeError, "game must have m and value, got builtin"),
        (
            lambda g, r: merit.carrier_form(None, 2),
            TypeError,
            "must have m and value, got NoneType",
        ),
        (
            lambda g, r: merit.stratified(lambda sets: 1, 2, 100, r),
            TypeError,
            "game must have m and pull, got function; wrap a function with .*SetFunction",
        ),
        (lambda g, r: merit.monte_carlo(3, 2, 100, r), TypeError, "have m and pull, got int"),
        (
            lambda g, r: merit.monte_carlo(g, 2, 100, 1),
            TypeError,
            "rng must be a numpy.random.Generator, got int",
        ),
        (
            lambda g, r: merit.reverse_reachable(g, 2, 100, r),
            TypeError,
            "cascade must be an IndependentCascade, got NoisyOr",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call(games.NoisyOr([0.1, 0.2, 0.3, 0.4, 0.5]), np.random.default_rng(0))


def test_an_estimate_shows_itself_in_one_line_and_as_a_table():
    found = merit.Estimate(np.linspace(0.1, 0.5, 25), np.full(25, 0.01), queries=900)
    assert repr(found) == "Estimate(m=25, queries=900, merit=0.1..0.5, stderr=0.01)"
    table = found._repr_html_()
    assert table.count("<tr>") == 1 + 20
    assert table.index("<td>24</td><td>0.5</td>") < table.index("<td>5</td><td>0.1833</td>")
    assert "<td>4</td><td>0.1667</td>" not in table  # the largest merits first
    assert table.endswith("<p>and 5 more</p>")
    few = merit.Estimate(np.array([0.1]), np.array([0.0]), queries=4)
    assert "more" not in few._repr_html_()


def test_tables_escape_what_they_show():
    table = html_table({"<b>": np.array(["<i>", "a & b"])}, n_rows=2)
    assert "<b>" not in table
    assert "<td>&lt;i&gt;</td>" in table


def test_carrier_form_refuses_many_arms():
    with pytest.raises(ValueError, match="m must be <= 22, got m=30"):
        merit.carrier_form(games.NoisyOr(np.full(30, 0.5)), 2)


@pytest.mark.parametrize(("m", "size"), [(6, 2), (6, 4), (7, 2), (7, 3), (7, 5), (7, 7), (1, 1)])
def test_each_arm_is_inside_and_outside_a_block_of_every_order(m, size):
    sets = cut_orders(m, size, 4, np.random.default_rng(1))
    assert all(len(set(row)) == size for row in sets.tolist())
    for order in np.split(sets, 4):
        times = np.bincount(order.ravel(), minlength=m)
        assert times.min() >= 1
        assert times.max() <= max(1, len(order) - 1)


@pytest.mark.parametrize("size", [1, 3, 5, 6])
def test_contrasts_are_means_inside_minus_means_outside(size):
    m, n, rng = 7, 4, np.random.default_rng(size)
    sets = cut_orders(m, size, n, rng)
    values = rng.normal(size=len(sets))
    contrasts, levels = stratified._contrast(sets, values, n, m)
    orders = zip(np.split(sets, n), np.split(values, n), contrasts, levels, strict=True)
    for rows, worth, contrast, level in orders:
        assert level == pytest.approx(worth.mean())
        for arm in range(m):
            inside = (rows == arm).any(axis=1)
            expected = worth[inside].mean() - worth[~inside].mean()
            assert contrast[arm] == pytest.approx(expected)


def test_arms_that_add_their_share_of_contrasts_have_them():
    m, size, rng = 7, 3, np.random.default_rng(0)
    believed = rng.normal(size=m)
    believed -= believed.mean()
    sets = next(combinations(m, size, block=comb(m, size)))
    values = (believed * (m - 1) / m)[sets].sum(axis=1)
    contrasts, _ = stratified._contrast(sets, values, 1, m)
    np.testing.assert_allclose(contrasts[0], believed, atol=1e-14)


def test_each_sample_is_corrected_by_the_others_regression():
    rng = np.random.default_rng(0)
    off = rng.normal(size=(6, 4))
    samples = 3.0 * off + rng.normal(size=(6, 4))
    found = stratified._corrected(samples, off)
    for i in range(6):
        others, off_others = np.delete(samples, i, axis=0), np.delete(off, i, axis=0)
        factor = (off_others * (others - others.mean(axis=0))).sum() / (off_others**2).sum()
        np.testing.assert_allclose(found[i], samples[i] - factor * off[i])
    np.testing.assert_array_equal(stratified._corrected(samples, 0.0 * off), samples)
    np.testing.assert_array_equal(stratified._corrected(samples[:2], off[:2]), samples[:2])

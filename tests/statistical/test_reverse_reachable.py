"""Merits from reverse-reachable sets where graphs are large: strata, random roots, threads."""

from importlib import import_module

import numpy as np
import pytest

from evenhand import games, kshapley, merit
from evenhand.merit import backward
from evenhand.testing.statistics import check_estimate, check_mean
from tests.contracts import GAMES
from tests.host_cuda import host_cascade
from tests.statistical.test_merit import check_claims

pytestmark = pytest.mark.statistical
module = import_module("evenhand.merit.reverse_reachable")  # the name stands for the function
EDGES = [[0, 1], [1, 2], [0, 3], [3, 2], [2, 4], [4, 0], [1, 4]]


def weighted(p=None):
    """A cascade in which the arcs into a node are alike, or as told."""
    into = np.bincount(np.array(EDGES)[:, 1], minlength=5)
    return games.IndependentCascade(EDGES, 5, p or [1.0 / into[v] for _, v in EDGES])


@pytest.fixture
def large(monkeypatch):
    """Every graph counts as large, and is cut into strata."""
    monkeypatch.setattr(module, "MANY_NODES", 0)


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_a_members_share_is_its_value_in_the_coverage_game(k):
    shares = module._shares(7, k)
    for r in range(1, 8):
        game = games.SetFunction(lambda sets, r=r: sets[:, :r].any(axis=1) * 1.0, m=7)
        due = np.where(np.arange(7) < r, shares[r], 0.0)
        np.testing.assert_allclose(merit.exact(game, k), due, atol=1e-14)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("make", [GAMES["cascade"], GAMES["cascade_cuda"], weighted])
@pytest.mark.parametrize("k", [1, 3])
def test_strata_give_the_merits(make, k):
    game = make()
    found = merit.reverse_reachable(game, k, 40_004, np.random.default_rng(k))
    check_estimate(found.merit, found.stderr, kshapley(game, k), resolution=0.02)
    assert found.queries == 40_000


@pytest.mark.usefixtures("large")
def test_the_check_sees_chances_that_are_a_little_larger():
    """Negative control: one arc of seven is likelier by a tenth."""
    found = merit.reverse_reachable(weighted(), 3, 100_000, np.random.default_rng(1))
    other = kshapley(weighted([0.9, 0.5, 1.0, 0.5, 0.5, 1.0, 0.5]), 3)
    with pytest.raises(AssertionError):
        check_estimate(found.merit, found.stderr, other, resolution=0.02)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("n_sets", [20, 9])  # four rounds of all nodes; nine random roots
def test_standard_errors_are_the_spread_of_repeated_estimates(n_sets):
    game, rng = weighted(), np.random.default_rng(0)
    runs = [merit.reverse_reachable(game, 3, n_sets, rng) for _ in range(600)]
    check_mean([run.merit for run in runs], kshapley(game, 3), resolution=0.05)
    check_claims(runs, resolution=1.0)


@pytest.mark.parametrize("make", [games.IndependentCascade, host_cascade])
def test_fewer_sets_than_twice_the_nodes_have_random_roots(make):
    chain = np.stack([np.arange(59), np.arange(1, 60)], axis=1)
    game = make(chain, 60, 0.5)
    runs = [merit.reverse_reachable(game, 4, 119, np.random.default_rng(i)) for i in range(100)]
    assert {run.queries for run in runs} == {65}  # rounds of one each
    plain = games.IndependentCascade(chain, 60, 0.5)
    truth = merit.reverse_reachable(plain, 4, 300_000, np.random.default_rng(1000)).merit
    check_mean([run.merit for run in runs], truth, resolution=0.02)


@pytest.mark.usefixtures("large")
def test_numbers_do_not_depend_on_the_number_of_threads():
    game = games.IndependentCascade(np.random.default_rng(0).integers(0, 500, (2000, 2)), 500, 0.2)
    for n_sets in (3000, 700):
        one, two, five = (
            merit.reverse_reachable(game, 4, n_sets, np.random.default_rng(7), workers=w)
            for w in (1, 2, 5)
        )
        for other in (two, five):
            np.testing.assert_array_equal(one.merit, other.merit)
            np.testing.assert_array_equal(one.stderr, other.stderr)


def test_few_rounds_are_cut_so_that_errors_are_known():
    rng = np.random.default_rng(0)
    for m, n_sets in [(1000, 2000), (1000, 6999), (10, 10_000), (3, 6)]:
        strata = backward.strata_of(m, n_sets, rng)
        rounds = n_sets // m
        assert [n for _, n in strata] == [rounds] * len(strata)
        assert len(strata) * (rounds - 1) >= min(64, m * (rounds - 1))
        np.testing.assert_array_equal(np.concatenate([r[0] for r, _ in strata]), np.arange(m))

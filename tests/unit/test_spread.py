"""Values of a cascade's sets from a kept sample of reverse-reachable sets."""

import itertools

import numpy as np
import pytest
from benchmarks import spread
from benchmarks.limit import LIMITS, truth_of
from benchmarks.spread import Spread

from evenhand.exchange import SetPlan
from evenhand.games import IndependentCascade, SetFunction
from evenhand.merit import kshapley

M, K = 7, 4
EDGES = [[0, 1], [1, 2], [2, 0], [2, 3], [4, 3], [3, 5], [5, 4], [0, 4]]
MARGINALS = np.array([0.9, 0.8, 0.7, 0.5, 0.4, 0.4, 0.3])
GAME = IndependentCascade(EDGES, M, p=0.4)
SETS = [one for r in range(1, K + 1) for one in itertools.combinations(range(M), r)]


def look(found, sets, rng):
    """Values of sets whose members come in any order."""
    orders, sizes = np.full((len(sets), K), -1), np.array([len(one) for one in sets])
    for row, one in zip(orders, sets, strict=True):
        row[: len(one)] = rng.permutation(one)
    return found.look(orders, sizes)


def members(found):
    """The sampled sets, read bit by bit."""
    bits = found.bits.transpose(1, 0, 2).reshape(M, -1)
    inside = (bits[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return inside.reshape(M, -1).astype(bool)[:, : found.n]


def test_values_are_shares_of_the_sample_and_means_are_over_all_sets_with_a_node():
    found = Spread.of(GAME, K, 64 * spread.WIDTH + 100)  # more than a block
    inside = members(found)
    assert found.n % M == 0
    assert len(found.bits) == 2
    assert inside[np.arange(found.n) % M, np.arange(found.n)].all()  # each root reaches itself
    naive = {one: inside[list(one)].any(axis=0).mean() for one in SETS}
    values = look(found, SETS, np.random.default_rng(1))
    assert values == pytest.approx(list(naive.values()), abs=1e-15)
    for r in range(1, K + 1):
        for a in range(M):
            with_it = [naive[one] for one in naive if len(one) == r and a in one]
            assert found.expected[r - 1, a] == pytest.approx(np.mean(with_it), abs=1e-12)


def test_values_are_those_of_the_cascade():
    found = Spread.of(GAME, K, 200_000)
    values = look(found, SETS, np.random.default_rng(2))
    inside = np.array([np.isin(np.arange(M), one) for one in SETS])

    def largest(game):
        off = values - game.value(inside)
        return np.abs(off).max() / (0.5 / np.sqrt(found.n))  # shares of independent sets

    assert largest(GAME) < 4.5
    assert largest(IndependentCascade(EDGES, M, p=0.42)) > 4.5


def test_limits_find_the_merits_of_the_cascade_with_it():
    rng, exact = np.random.default_rng(3), SetFunction(GAME.value, M)
    plan = SetPlan(0, np.arange(M), K, MARGINALS, np.full(K, 1 / K), np.full(K, 0.2))
    rows = plan.draw(300, rng)
    for make in LIMITS:
        evidence = make.kind(truth_of(GAME, K))
        evidence.absorb(rows, exact.pull(rows.orders, rows.sizes, rng))
        assert evidence.estimate().free == pytest.approx(kshapley(GAME, K), abs=0.003)

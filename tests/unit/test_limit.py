"""The learner that knows the true V, on games small enough to list."""

import itertools

import numpy as np
import pytest
from benchmarks import limit
from benchmarks.deployments import World
from benchmarks.limit import LIMITS, WHO, Knowing, Truth

from evenhand.exchange import SetPlan
from evenhand.games import Bernoulli, SetFunction
from evenhand.learners import EvenHand
from evenhand.learners.proportional import proportional
from evenhand.merit import kshapley

M, K = 6, 3
SIZES = np.array([0.4, 0.3, 0.3])
MARGINALS = np.array([0.9, 0.7, 0.5, 0.4, 0.3, 0.2])


def values(sets):
    worth = np.linspace(0.05, 0.3, M)
    return (sets @ worth + 0.2 * (sets[:, 0] & sets[:, 4])) / (1 + 0.3 * sets.sum(axis=1))


GAME = SetFunction(values, M, noise=Bernoulli())
OTHER = SetFunction(lambda sets: np.sqrt(sets.sum(axis=1)) / 2 * sets[:, 0], M)


def drawn(n, rng):
    """Rows of a policy far from even."""
    return SetPlan(0, np.arange(M), K, MARGINALS, SIZES, np.full(K, 0.2)).draw(n, rng)


def test_every_set_is_found_and_means_are_over_all_sets_with_an_arm():
    truth = Truth.of(GAME, K)
    rng, seen = np.random.default_rng(1), set()
    for r in range(1, K + 1):
        sums, counts = np.zeros(M), np.zeros(M)
        for one in itertools.combinations(range(M), r):
            inside = np.isin(np.arange(M), one)
            value = values(inside[None])[0]
            order = np.full((1, K), -1)
            order[0, :r] = rng.permutation(one)
            place = limit.places(order, np.array([r]), truth.choose, truth.starts)[0]
            assert truth.look(order, np.array([r])) == pytest.approx([value], abs=1e-15)
            seen.add(place)
            sums[inside] += value
            counts[inside] += 1
        assert truth.expected[r - 1] == pytest.approx(sums / counts, abs=1e-14)
    assert seen == set(range(len(truth.values)))


@pytest.mark.parametrize("make", LIMITS)
def test_without_noise_free_merits_are_exact_however_few_sets_were_seen(make):
    def free(game, n):
        evidence, rng = make.kind(Truth.of(game, K)), np.random.default_rng(2)
        rows = drawn(n, rng)
        evidence.absorb(rows, SetFunction(values, M).pull(rows.orders, rows.sizes, rng))
        return evidence.estimate().free

    truth = kshapley(GAME, K)
    assert free(GAME, 300) == pytest.approx(truth, abs=1e-12)
    assert np.abs(free(OTHER, 300) - truth).max() > 0.01  # another forecast leaves noise


@pytest.mark.parametrize("make", LIMITS[:2])
def test_merits_are_unbiased(make):
    n, rng, found, wrong = 400, np.random.default_rng(3), [], []
    truth = Truth.of(GAME, K)
    off = truth._replace(expected=truth.expected + 0.01 * np.arange(M))
    for _ in range(n):
        rows = drawn(200, rng)
        rewards = GAME.pull(rows.orders, rows.sizes, rng)
        for known, kept in ((truth, found), (off, wrong)):
            evidence = make.kind(known)
            evidence.absorb(rows, rewards)
            kept.append(evidence.renew()[0])

    def z(merits):
        error = np.mean(merits, axis=0) - kshapley(GAME, K)
        return error / (np.std(merits, axis=0, ddof=1) / np.sqrt(n))

    assert np.abs(z(found)).max() < 4.5
    assert np.abs(z(wrong)).max() > 4.5


@pytest.mark.parametrize("make", LIMITS[:2])
def test_without_noise_it_asks_as_even_hand_would_that_knew_the_merits(make):
    game, rng = SetFunction(values, M), np.random.default_rng(4)
    learner = make(Truth.of(game, K), seed=1)
    batch = learner.ask()
    assert (batch.orders == EvenHand(M, K, seed=1).ask().orders).all()
    learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    while learner.queries < 2000:
        batch = learner.ask()
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    due = proportional(kshapley(game, K), np.ones(game.m, bool), K, learner.plan.mixing)
    assert learner.plan.marginals == pytest.approx(due, abs=1e-9)


def test_who_knows_the_merits_gives_what_is_due_but_for_the_room_of_uniform_sets():
    rng, true = np.random.default_rng(5), kshapley(GAME, K)
    learner = Knowing(true, K, seed=1)
    while learner.queries < 500:
        batch = learner.ask()
        due = proportional(true, np.ones(M, bool), K, learner.plan.mixing)
        assert learner.plan.marginals == pytest.approx(due, abs=1e-9)
        learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))


def test_the_tables():
    marks = [100, 400]
    found = limit.played(World({"kind": "synthetic", "m": 8}, 5), marks, 2, 1)
    rows = limit.lines("synthetic", marks, found)
    assert [row[:3] for row in rows] == [["synthetic", "1e+02", "2"], ["synthetic", "4e+02", "2"]]
    assert all(len(row) == len(limit.HEAD) for row in rows)
    ratio = np.exp(np.log(found.regret[-1, :, 1] / found.regret[0, :, 1]).mean())
    assert rows[1][5].startswith(f"{ratio:.2f} ±")
    more = limit.more_lines("synthetic", 400, found)
    assert [row[2] for row in more] == WHO
    assert all(len(row) == len(limit.MORE) for row in more)
    assert more[-1][4] == "1.00 ± 0 %"
    assert more[0][4].startswith(f"{1 / ratio:.2f} ±")
    assert more[3][5].startswith(f"{found.reward[3].mean():.4f} ±")

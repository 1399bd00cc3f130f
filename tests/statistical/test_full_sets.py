"""Full-set values estimated from noisy rewards: unbiased, with honest standard errors."""

import numpy as np
import pytest

from evenhand import games, merit
from evenhand.exchange import FullSetPlan
from evenhand.learners import FullSets
from evenhand.learners.full_evidence import FullEvidence
from evenhand.learners.proportional import proportional
from evenhand.testing.statistics import check_estimate, check_mean
from tests.contracts import GAMES

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("k", [1, 2, 4, 5])
@pytest.mark.parametrize("name", ["noisy_or", "set_function", "carrier", "hidden_pair", "hard_v1"])
def test_estimates_are_the_full_set_values(name, k):
    game = GAMES[name]()
    found = merit.full_set_estimate(game, k, 20_000, np.random.default_rng(k))
    assert found.queries <= 20_000
    expected = merit.full_set_value(game, k)
    check_estimate(found.merit, found.stderr, expected, resolution=0.1)


@pytest.mark.parametrize("queries", [20, 200])  # without and with a pilot
def test_standard_errors_are_the_spread_of_repeated_estimates(queries):
    game, rng = (
        games.NoisyOr([0.1, 0.3, 0.5, 0.7, 0.9, 0.4, 0.6, 0.2, 0.8]),
        np.random.default_rng(0),
    )
    runs = [merit.full_set_estimate(game, 4, queries, rng) for _ in range(800)]
    check_mean([run.merit for run in runs], merit.full_set_value(game, 4), resolution=0.05)
    values, claimed = np.array([r.merit for r in runs]), np.array([r.stderr**2 for r in runs])
    squares = (values - values.mean(axis=0)) ** 2 * len(runs) / (len(runs) - 1)
    check_mean(squares - claimed, np.zeros(9), resolution=0.6 * claimed.mean())


def test_the_check_sees_k_shapley_values():
    """Negative control: they are not accepted in place of full-set values."""
    game = GAMES["noisy_or"]()
    found = merit.full_set_estimate(game, 3, 20_000, np.random.default_rng(3))
    with pytest.raises(AssertionError, match=r"mean .*is off"):
        check_estimate(found.merit, found.stderr, game.kshapley(3), resolution=0.1)


def test_standard_errors_of_the_learner_tell_the_truth():
    """Over plans that follow what was learnt, as the learner's do, but few of them."""
    game = games.Carrier(
        [[0], [1], [2], [3], [4], [0, 1]],
        [0.3, 0.0, 0.1, 0.2, 0.05, 0.3],
        5,
        noise=games.Bernoulli(),
    )
    psi, rng, z = merit.full_set_value(game, 2), np.random.default_rng(1), []
    for _ in range(300):
        evidence = FullEvidence(5, 2)
        for mixing in (0.5, 0.3, 0.2, 0.1):
            policy = proportional(evidence.renew().shrunk, np.ones(5, bool), 2, mixing)
            rows = FullSetPlan(0, np.arange(5), 2, policy, mixing).draw(150, rng)
            evidence.absorb(rows, game.pull(rows.orders, rows.sizes, rng))
        found = evidence.estimate()
        z.append((found.value - psi) / np.sqrt(found.variance))
    check_mean(z, np.zeros(5), resolution=0.5)
    check_mean(np.square(z).mean(axis=1) - 1.0, 0.0, resolution=0.4)


@pytest.mark.slow
def test_intervals_hold_at_all_times_together():
    """Coverage of 95 % intervals looked at 20 times, over 200 replications and every arm."""
    game = games.Carrier(
        [[0], [1], [2], [3], [0, 3]], [0.3, 0.2, 0.1, 0.1, 0.2], 4, noise=games.Bernoulli()
    )
    psi, held = merit.full_set_value(game, 2), []
    for seed in range(200):
        learner, rng = FullSets(4, 2, seed=seed), np.random.default_rng(seed + 1000)
        inside = np.ones(4, np.bool_)
        for until in np.unique(np.geomspace(200, 6000, 20).astype(int)):
            while learner.queries < until:
                batch = learner.ask(int(until) - learner.queries)
                learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
            low, high = learner.intervals().T
            inside &= (low <= psi) & (psi <= high)
        held.append(inside)
    coverage = np.mean(held, axis=0)
    print("coverage", coverage, "mean width", (high - low).mean())
    assert np.all(coverage >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200))

"""How quickly to forget: gains against plain sums, when they count, and what fading leaves."""

import numpy as np
import pytest
from scipy.stats import norm

from evenhand.account import figures
from evenhand.games import NoisyOr, Walk
from evenhand.learners import EvenHand
from evenhand.learners.moves import FEW
from evenhand.learners.rates import HALF_LIVES, NEVER, Rates
from tests.unit.test_roster import play

UNIT = 60


def stretches(m, n, rng):
    """n stretches of rewards of arms alone: told by then, counts and totals."""
    told = np.cumsum(rng.integers(UNIT, 5 * UNIT, n))
    counts = rng.integers(0, 9, (n, m))
    return told, counts, counts * rng.random((n, m))


def seen(m, told, counts, totals, variance):
    rates = Rates(m)
    for at, n, y in zip(told, counts, totals, strict=True):
        rates.new += np.column_stack([n, y])
        rates.see(variance, int(at), UNIT)
    return rates


def test_gains_are_likelihoods_of_what_came_by_means_that_forget():
    rng = np.random.default_rng(1)
    m, variance = 4, np.array([0.1, 0.2, 0.05, 0.3])
    told, counts, totals = stretches(m, 40, rng)
    rates = seen(m, told, counts, totals, variance)

    def likelihood(i, a, half_life):
        """Twice the log of it, of stretch i by all before it; None where these are few."""
        ages = told[i - 1] - told[:i]
        shares = 0.5 ** (ages / UNIT / half_life)
        n, y = shares @ counts[:i, a], shares @ totals[:i, a]
        if not counts[i, a] or n < FEW:
            return None
        spread = np.sqrt(variance[a] * (1 / counts[i, a] + 1 / n))
        return 2 * norm.logpdf(totals[i, a] / counts[i, a], y / n, spread)

    for h, half_life in enumerate(HALF_LIVES):
        for a in range(m):
            gain = 0.0
            for i in range(1, len(told)):
                ours, plain = likelihood(i, a, half_life), likelihood(i, a, NEVER)
                gain += 0.0 if ours is None else (ours - plain) * told[i] / told[-1]
            assert rates.gains[h, a] == pytest.approx(gain, rel=1e-9, abs=1e-9)


def walked(m, sd, n, seed, few=0):
    """Stretches of many rewards of arms whose means walk, or only a few of them, so far each."""
    rng = np.random.default_rng(seed)
    steps = sd * rng.normal(size=(n, m))
    steps[:, few or m :] = 0.0
    means = np.cumsum(steps, axis=0)
    counts = np.full((n, m), 20)
    totals = counts * means + np.sqrt(counts) * rng.normal(size=(n, m))
    return seen(m, 2 * UNIT * np.arange(1, n + 1), counts, totals, np.ones(m))


def test_what_walks_is_forgotten_the_sooner_the_quicker_it_walks():
    slow, quick = (walked(20, sd, 400, 1).half_life(1e-4) for sd in (0.01, 0.1))
    assert 8.0 <= quick < slow < 4096.0


@pytest.mark.parametrize("seed", range(20))
def test_what_stands_still_is_not_forgotten(seed):
    assert walked(20, 0.0, 400, seed).half_life(1e-4) == NEVER


def test_a_few_arms_that_walk_are_no_reason_to_forget_the_others():
    some = walked(20, 0.1, 400, 1, few=3)
    assert some.gains.sum(axis=1).max() > 20.0
    assert some.half_life(1e-4) == NEVER
    assert walked(20, 0.1, 400, 1, few=15).half_life(1e-4) < NEVER


def test_a_change_that_was_noticed_explains_what_forgetting_gained():
    rates = walked(3, 0.1, 400, 1)
    rates.restart(1, 7.0, 3.0)
    assert (rates.gains[:, 1] == 0.0).all()
    assert (rates.gains[:, [0, 2]] != 0.0).all()
    assert (rates.sums[:, 1] == (7.0, 3.0)).all()


def test_rates_go_with_the_arms():
    rates = walked(3, 0.1, 50, 1)
    sums, gains = rates.sums.copy(), rates.gains.copy()
    rates.rearrange(np.array([2, -1, 0, 3]))
    blank = np.zeros_like(sums[:, :1])
    assert (rates.sums == np.concatenate([sums[:, [2]], blank, sums[:, [0]], blank], axis=1)).all()
    assert (rates.gains[:, [0, 2]] == gains[:, [2, 0]]).all()
    assert (rates.gains[:, [1, 3]] == 0.0).all()
    assert rates.new.shape == (4, 2)


def test_of_many_arms_the_first_are_followed(monkeypatch):
    monkeypatch.setattr("evenhand.learners.rates.MOST", 3)
    rates = Rates(5)
    rates.note(np.ones((5, 3)))
    rates.see(np.ones(3), 10, UNIT)
    rates.restart(1, 7.0, 3.0)
    rates.restart(4, 7.0, 3.0)  # nobody follows it
    assert rates.sums[0].tolist() == [[1.0, 1.0], [7.0, 3.0], [1.0, 1.0]]
    rates.rearrange(np.array([4, 1, 0, 2]))
    assert rates.sums[0].tolist() == [[0.0, 0.0], [7.0, 3.0], [1.0, 1.0]]


# ---- what fading leaves ----


def some_evidence(seed):
    rng = np.random.default_rng(seed)
    learner = EvenHand(8, 3, watch=False, seed=seed)
    return play(learner, NoisyOr(rng.uniform(0.2, 0.9, 8)), 1200).evidence


def test_faded_sums_are_those_of_rewards_that_count_less():
    known, share = some_evidence(1), 0.7
    before = {name: getattr(known, name).copy() for name in ("singles", "weighted", "together")}
    weight, age = known.weight.copy(), known.age
    known.fade(share)
    assert known.singles == pytest.approx(share * before["singles"])
    assert known.together == pytest.approx(share * before["together"])
    # a sum of weights w has the effective size (sum w)^2 / sum w^2, which fading all alike leaves
    assert known.weighted[..., :2] == pytest.approx(share * before["weighted"][..., :2])
    assert known.weighted[..., 2:] == pytest.approx(share**2 * before["weighted"][..., 2:])
    assert known.weight == pytest.approx(weight * [share, share**2])
    assert known.age == pytest.approx(share * age, abs=1.0)


def test_merits_stay_when_all_rewards_fade_alike_and_errors_grow():
    evidence = some_evidence(2)
    before = evidence.estimate()
    evidence.fade(0.5)
    after = evidence.estimate()
    assert after.free == pytest.approx(before.free, abs=1e-9)
    assert (after.variance > before.variance).all()


@pytest.mark.parametrize(("sd", "forgets"), [(0.8, True), (1e-9, False)])
def test_a_learner_forgets_where_arms_walk_and_says_so(sd, forgets):
    m, k, rng = 10, 3, np.random.default_rng(4)
    world = Walk(NoisyOr, rng.uniform(0.2, 0.9, m), sd=sd, seed=1)
    learner = EvenHand(m, k, seed=5)
    while learner.queries < 20_000:
        batch = learner.ask(500)
        game = world.at(learner.queries)
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    said = learner.estimate()
    assert (said.diagnostics.half_life < NEVER) is forgets
    assert (learner.evidence.age < 10_000) is forgets
    wide = said.intervals[:, 1] - said.intervals[:, 0]
    assert bool(wide.min() == 2.0) is forgets  # intervals then say nothing
    told = figures.diagnostics(learner.account())
    assert any("change little by little" in one for one in told["said"]) is forgets
    again = EvenHand.restore(learner.snapshot())
    assert again.estimate().diagnostics.half_life == said.diagnostics.half_life


def test_many_rewards_told_at_once_are_not_forgotten_with_what_was_before():
    learner, game = EvenHand(6, 2, seed=1), NoisyOr(np.linspace(0.2, 0.8, 6))
    play(learner, game, 3000)
    watch, evidence = learner._watch, learner.evidence
    watch.rates.gains[0] = 1e6  # the shortest half-life, by far
    _, _, rows = learner.publish(20_000)
    evidence.absorb(rows, game.pull(rows.orders, rows.sizes, np.random.default_rng(1)))
    seen = watch.look(evidence)
    assert watch.half_life(evidence) == 40 * 6
    assert seen.share == 0.5


@pytest.mark.parametrize("add", [5, 0])
def test_a_log_that_is_forgotten_does_not_turn_back_the_clock(add):
    learner, rng = EvenHand(20, 4, seed=1), np.random.default_rng(1)
    sets = [[a] for a in rng.integers(0, 20, 2000).tolist()]
    learner.learn(sets, rng.random(2000) < 0.3, np.full(2000, 1 / 20))
    if add:
        learner.add(add)
    else:
        learner.evidence.fade(0.1)
    batch = learner.ask()
    assert learner.plan.mixing == pytest.approx(0.5)
    learner.tell(batch, np.zeros(batch.sizes.shape))

"""Changes noticed: sums and deviances against plain versions of them, and what learners tell."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad

import evenhand
from evenhand.exchange import Rows
from evenhand.games import NoisyOr, SetFunction
from evenhand.games.noise import Bernoulli
from evenhand.lab.games import build_game
from evenhand.learners import EvenHand, moves
from evenhand.learners.columns import moments
from evenhand.learners.evidence import Evidence
from evenhand.learners.moves import FEW, LIKELY, Moved, alone_moved, held, moved_lately, variance_at
from evenhand.learners.stretches import STRETCHES
from evenhand.learners.watch import NOTHING, SELDOM, SHOWN, Limits, Watch, _first
from tests.unit.test_roster import evidence_of, play

SIZES = np.array([0.6, 0.2, 0.2])


def sums_of(rewards):
    """(l, m, 3) sums of lists of rewards by stretch and arm."""
    return np.array([[[len(y), np.sum(y), np.sum(np.square(y))] for y in s] for s in rewards])


def noisy(alpha, beta, own=1.0, low=0.0):
    """Evidence of one arm whose rewards scatter so."""
    evidence = Evidence(1, 1, low)
    evidence.noise, evidence.own = np.array([alpha, beta]), np.array([own])
    return evidence


# ---- how far means have moved ----


@pytest.mark.parametrize("low", [0.0, -0.4])
@pytest.mark.parametrize("noise", [(0.02, 0.0), (0.0, 1.0), (0.01, 0.6)])
def test_means_are_compared_by_the_deviance(noise, low):
    """The integral in the docstring, by quadrature; Simpson's rule is near to it."""
    evidence = noisy(*noise, own=1.5, low=low)
    rng = np.random.default_rng(1)
    for shift in (0.0, 0.05, 0.3):
        before, after = (rng.random(n) * 0.4 + low + 0.1 + s for n, s in ((40, 0), (25, shift)))
        sums = sums_of([[before], [after]])
        found = alone_moved(evidence, sums).squares
        common = np.append(before, after).mean()
        naive = 0.0
        for y in (before, after):
            mean = y.mean()
            area, _ = quad(lambda t, mean=mean: (mean - t) / variance_at(evidence, t), common, mean)
            naive += 2 * len(y) * area / 1.5
        assert found == pytest.approx(np.array([[naive]]), rel=0.01, abs=1e-3)
        assert found <= 1.001 * alone_moved(evidence, sums, exact=False).squares


def test_rewards_that_spread_more_than_forecast_count_for_less():
    """Ten times the variance: a tenth as far; a spread as forecast changes nothing."""
    sides = [[np.tile([0.2, 0.4], 20)], [np.tile([0.3, 0.5], 20)]]  # of variance 0.01
    far = alone_moved(noisy(0.01, 0.0), sums_of(sides)).squares
    assert alone_moved(noisy(0.001, 0.0), sums_of(sides)).squares == pytest.approx(far, rel=1e-4)
    assert alone_moved(noisy(0.02, 0.0), sums_of(sides)).squares == pytest.approx(far / 2)


def test_a_reward_that_is_far_off_is_no_change_where_most_are_the_same():
    """By the noise of all rewards it would be one; that of its own side says that it is not."""
    quiet, limit = noisy(1e-6, 0.0), 2 * np.log(2 * 60 * 20_000)
    before, jump, shift = np.full(300, 0.02), np.repeat([0.04, 0.02], [1, 5]), np.full(6, 0.04)
    once = alone_moved(quiet, sums_of([[before], [jump]]))
    assert once.squares[0, 0] < 6 < limit < once.loosely[0, 0]
    moved = alone_moved(quiet, sums_of([[before], [shift]]))
    assert limit < moved.squares[0, 0] == pytest.approx(moved.loosely[0, 0])


def test_one_arm_alone_does_not_make_all_of_them_move():
    quiet = noisy(1e-6, 0.0)
    sums = sums_of([[np.full(300, 0.02)], [np.full(6, 0.04)]])
    for exact in (True, False):
        found = alone_moved(quiet, sums, most=30.0, exact=exact)
        assert found.loosely[0, 0] > 1000
        assert found.sums.tolist() == [[30.0], [0.0]]


def alarms():
    """How often chance was taken for change where few nodes ever spread, and these seldom."""
    nodes = {"kind": "stand-in-cut", "nodes": 60, "p": 0.02}
    game = build_game(nodes, 5, horizon=1, replication=1, seed=1).game
    return sum(play(EvenHand(60, 5, seed=s), game, 20_000, s)._watch.cuts for s in (2, 6))


def test_chance_is_not_taken_for_change_where_rewards_are_seldom_far_off(monkeypatch):
    assert alarms() == 0
    # negative control: by the noise of both sides together
    excess = moves._excess
    monkeypatch.setattr(
        moves, "_excess", lambda seen, forecast: excess(sum_of_sides(seen), sum_of_sides(forecast))
    )
    assert alarms() > 0


def sum_of_sides(x):
    return x.sum(axis=0) if x.ndim == 3 else x


def entropy(mean):
    return sum(p * np.log(p) for p in (mean, 1 - mean) if p > 0)


@pytest.mark.parametrize("ones", [(30, 50), (2, 12), (10, 11), (40, 20)])
def test_of_rewards_of_0_or_1_it_is_the_likelihood_ratio(ones):
    """For a hundred rewards before and after; a rare reward counts as it should."""
    rewards = [[np.repeat([1.0, 0.0], [n, 100 - n])] for n in ones]
    found = alone_moved(noisy(0.0, 1.0), sums_of(rewards)).squares[0, 0]
    apart = sum(100 * entropy(n / 100) for n in ones) - 200 * entropy(sum(ones) / 200)
    assert found == pytest.approx(2 * apart, rel=0.05)


def test_every_boundary_is_looked_at_unless_one_side_has_few():
    rng = np.random.default_rng(3)
    rewards = [[rng.random(n)] for n in (FEW - 1, 1, 30, 20, FEW - 2)]
    evidence = noisy(0.2, 0.0)
    found = alone_moved(evidence, sums_of(rewards)).squares[:, 0]
    for i in range(1, 5):
        before, after = (
            np.concatenate([y[0] for y in part]) for part in (rewards[:i], rewards[i:])
        )
        common = np.append(before, after).mean()
        naive = sum(len(y) * (y.mean() - common) ** 2 for y in (before, after)) / 0.2
        few = min(len(before), len(after)) < FEW
        assert found[i - 1] == pytest.approx(0.0 if few else naive, abs=1e-12)
    assert (found > 0).tolist() == [False, True, True, False]


def test_a_mean_of_zeros_alone_has_some_variance():
    assert held(noisy(0, 1), 0.0, 9.0) == pytest.approx(0.05)
    assert held(noisy(0, 1, low=-1.0), -9.0, 9.0) == pytest.approx(-0.95)


def test_limits_are_passed_as_rarely_as_they_say():
    """One arm of m beyond its own, and all together beyond theirs; which is raised for skew."""
    rng, chance = np.random.default_rng(1), 0.02
    squares = rng.standard_normal((20_000, 12)) ** 2
    one, every, some = Limits.of(12, chance)
    assert np.mean(squares.max(axis=1) > one) < chance
    assert np.mean(squares.sum(axis=1) > every) < chance
    assert np.mean(squares.sum(axis=1) > every / 1.25) == pytest.approx(chance, abs=0.003)
    assert some < one


def test_arms_that_changed_at_once_are_found_together():
    limits = Limits(30.0, 60.0, 8.0)
    moved = np.array([[3.0, 2.0, 1.0, 0.0, 1.0], [20.0, 15.0, 25.0, 9.0, 2.0], [35.0, 1, 1, 1, 9]])
    moved = Moved(moved, moved, np.zeros(0))
    found = _first(moved, moved.squares.sum(axis=1), limits)
    assert found.tolist() == [3, 2, 2, 2, 0]  # by itself, with the others, and not at all
    strict = Moved(np.minimum(moved.squares, 7.0), moved.loosely, np.zeros(0))
    found = _first(strict, moved.squares.sum(axis=1), limits)
    assert found.tolist() == [2, 2, 2, 2, 0]  # none by itself
    high = limits._replace(all=80.0)
    assert _first(moved, moved.squares.sum(axis=1), high).tolist() == [3, 0, 0, 0, 0]


# ---- stretches ----


class Recorder:
    """Tells rewards to evidence and a watch, and remembers all of them."""

    def __init__(self, m, k, seed):
        self.m, self.k, self.rng = m, k, np.random.default_rng(seed)
        self.evidence, self.watch = evidence_of(m, seed, k), Watch(m, k, SIZES)
        self.evidence.keeping = 0  # before that, nothing is watched in company
        self.watch.mark(self.evidence)
        self.looks = []  # sums of each

    def tell(self, n):
        """Sets of a kind that a plan may draw, with weights of their own."""
        rng, m, k = self.rng, self.m, self.k
        sizes = rng.integers(1, k + 1, n)
        orders = np.array([rng.permutation(m)[:k] for _ in range(n)])
        orders[np.arange(k) >= sizes[:, None]] = -1
        weights = np.where(orders >= 0, rng.uniform(0.5, 2.0, (n, k)), 0.0)
        rewards = rng.random((n, 1))
        self.evidence.absorb(Rows(orders, sizes[:, None], weights), rewards)
        alone, company = np.zeros((m, 3)), np.zeros((m, 7))
        f, met = self.evidence.forecast, self.evidence.met
        left = 1 - f.gamma * f.worth
        mix = SIZES * np.arange(1, k + 1)
        mix[0] = 0
        usual = mix / mix.sum() @ self.evidence.expected
        for order, r, w, (y,) in zip(orders, sizes, weights, rewards, strict=True):
            members = order[:r]
            if r == 1:
                alone[members[0]] += 1, y, y * y
                continue
            missed = np.prod(left[members])
            mean = (1 - missed) / f.gamma
            e = y - mean + met[r - 1] * f.extra[members].sum()
            q = np.clip(
                mean - (f.extra[members] * (1 - missed / left[members])).sum(), 1e-4, 0.9999
            )
            ratio = f.own[members] @ f.worth[members] / f.worth[members].sum()
            variance = f.noise[2] * ratio * (f.noise[0] + f.noise[1] * q * (1 - q))
            for a, u in zip(members, w, strict=False):
                seen = [1, e, e * e, u, u * (e + usual[a]), u * u, u * u * variance]
                company[a] += seen
        self.looks.append((alone, company, self.evidence.told))


def test_stretches_hold_the_sums_of_their_looks_and_lengthen_as_they_age():
    record = Recorder(4, 3, 2)
    for look in range(1, 70):
        record.tell(int(record.rng.integers(1, 12)))
        record.watch.look(record.evidence)
        watch = record.watch
        assert watch.spans.sum() == look
        lengths, counts = np.unique(watch.spans, return_counts=True)
        assert np.all(counts <= STRETCHES)
        assert set(np.log2(lengths)) == set(range(len(lengths)))
        assert np.all(np.diff(watch.spans) <= 0)
    assert len(watch.spans) <= STRETCHES * 7
    start = 0
    for span, end, alone, company in zip(
        watch.spans, watch.ends, watch.alone, watch.company, strict=True
    ):
        part = record.looks[start : start + span]
        np.testing.assert_allclose(alone, sum(x[0] for x in part), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(company, sum(x[1] for x in part), rtol=1e-4, atol=1e-4)
        assert end == part[-1][2]
        start += span


def test_moments_of_the_latest_rewards():
    """The first three are theirs; the others as if they were spread about their mean as before."""
    rng = np.random.default_rng(4)
    every = rng.beta(2, 5, 400)
    recent = every[300:]
    powers = np.array([np.sum(every**p) for p in range(5)])
    found = moments(np.array([np.sum(recent**p) for p in range(3)]), powers)
    exact = [np.sum(recent**p) for p in range(3)]
    np.testing.assert_allclose(found[:3], exact)
    centred = every - every.mean()
    mean, var = recent.mean(), recent.var()
    third, fourth = np.mean(centred**3), np.mean(centred**4)
    naive = 100 * np.array(
        [third + 3 * mean * var + mean**3, fourth + 4 * mean * third + 6 * mean**2 * var + mean**4]
    )
    np.testing.assert_allclose(found[3:], naive)
    np.testing.assert_allclose(moments(powers[:3], powers), powers)  # all of them are the latest
    assert not moments(np.zeros(3), powers).any()


# ---- learners ----

WORTH = np.random.default_rng(1).uniform(0.2, 0.8, 10)


def best(worth):
    """A world of 0/1 rewards."""
    return SetFunction(lambda sets: (sets * worth).max(axis=1), len(worth), noise=Bernoulli())


AFTER = np.where(np.arange(10) == 4, 0.95, WORTH)  # from 0.39
NAMES = [f"seller {a}" for a in range(10)]


@cache
def kept(watch=True):
    """A learner that has seen a still world for 2500 queries."""
    return play(EvenHand(10, 3, names=NAMES, watch=watch, seed=1), best(WORTH), 2500).snapshot()


def test_a_change_of_one_arm_is_noticed_and_named():
    learner = EvenHand.restore(kept())
    assert learner.estimate().changes == ()
    before = learner.merit[4]
    play(learner, best(AFTER), 1500, seed=2)
    (change, *more) = learner.estimate().changes
    assert (change.arm, change.alone) == ("seller 4", True)
    assert 2500 < change.queries <= 4000
    assert {again.arm for again in more} <= {"seller 4"}
    assert 0 < learner.evidence.start[4] <= change.queries
    assert not np.delete(learner.evidence.start, 4).any()
    assert learner.merit[4] > 1.5 * before


def test_all_together_show_a_change_before_any_arm_does(monkeypatch):
    after, limits = best(WORTH + 0.17 * (-1.0) ** np.arange(1, 11)), Limits.of

    def noticed(seed):
        changes = play(EvenHand.restore(kept()), after, 1000, seed=seed).estimate().changes
        return min((change.queries for change in changes), default=4000), changes

    seeds = range(2, 8)
    together = [noticed(seed) for seed in seeds]
    assert all(len({change.arm for change in changes}) >= 2 for _, changes in together)
    monkeypatch.setattr(Limits, "of", lambda *given: limits(*given)._replace(all=np.inf))
    for seed, (first, _) in zip(seeds, together, strict=True):
        assert first + 300 < noticed(seed)[0]


def test_no_arm_counts_for_more_among_all_than_it_takes_to_be_noticed_alone(monkeypatch):
    learner, given = EvenHand.restore(kept()), []

    def recorded(*what, most, **others):
        given.append(most)
        return alone_moved(*what, most=most, **others)

    monkeypatch.setattr("evenhand.learners.watch.alone_moved", recorded)
    chance = learner._watch._chance(learner.evidence)
    learner._watch.look(learner.evidence)
    assert given[0] == Limits.of(10, chance).one


def test_what_arms_move_alike_does_not_count():
    watch = Watch(4, 3, SIZES)
    errors = np.array([[1.0, 2.0, 0.5], [3.0, 3.0, 3.0]]), np.array([[1.5], [3.0]])
    moved = [Moved(e**2, e**2, np.stack([(e**2).sum(axis=1), e.sum(axis=1)])) for e in errors]
    every = np.concatenate(errors, axis=1)
    np.testing.assert_allclose(watch._together(moved), 4 * every.var(axis=1))


def test_who_does_not_watch_notices_nothing():
    learner = play(EvenHand.restore(kept(watch=False)), best(AFTER), 1500, seed=2)
    assert learner.estimate().changes is None
    assert not learner.evidence.start.any()
    assert not len(learner._watch.spans)


def lately(rng, n, m=8, shift=0.0):
    """Evidence of arms alone, n rewards of each; 40 of these before, and lately others."""
    evidence = Evidence(m, 1, 0.0)
    evidence.noise, evidence.own = np.array([0.01, 0.0]), np.linspace(0.5, 2.0, m)
    y = 0.5 + 0.1 * np.sqrt(evidence.own[:, None]) * rng.standard_normal((m, n))
    y[: m // 2, 40:] += shift
    evidence.singles[:, 0], evidence.singles[:, 1] = n, y.sum(axis=1)
    before = np.zeros((m, 3))
    before[:, 0], before[:, 1] = 40, y[:, :40].sum(axis=1)
    return evidence, before


def test_a_glance_is_as_likely_to_be_a_look_as_it_says():
    """Eight arms that have not moved; four of them by two standard errors each; none lately."""
    rng, n = np.random.default_rng(7), 4000
    often = np.mean([moved_lately(*lately(rng, 50)) for _ in range(n)])
    assert abs(often - LIKELY) < 4 * np.sqrt(LIKELY * (1 - LIKELY) / n)
    assert np.mean([moved_lately(*lately(rng, 50, shift=0.1)) for _ in range(100)]) > 0.9
    assert not moved_lately(*lately(rng, 40))
    evidence, before = lately(rng, 50, shift=9.0)
    before[:4, 0] = FEW - 1  # too few to compare with
    evidence.singles[4:] = before[4:, [0, 1, 2, 2, 2]]
    assert not moved_lately(evidence, before)


@pytest.mark.parametrize(("after", "first"), [(WORTH, SELDOM), (WORTH < 0.5, 1)])
def test_a_look_comes_every_few_glances_or_when_arms_seem_to_have_changed(after, first):
    learner = EvenHand.restore(kept())
    watch, looks = learner._watch, []
    watch.look = lambda evidence: looks.append(watch.glances) or NOTHING
    watch.glances = 0
    play(learner, best(after.astype(float)), 500, seed=2)
    assert looks[0] == first
    assert watch.glances >= 9


def test_batches_of_who_watches_are_no_longer_than_the_time_between_glances():
    for watch in (True, False):  # who does not watch asks whole plans
        learner = EvenHand(4, 2, watch=watch, seed=1)
        learner.evidence.told = 10_000
        learner.queries = 10_000
        whole = learner.ask()
        assert len(whole.orders) == (20 if watch else 100)


@pytest.mark.parametrize("make", [NoisyOr, best])
def test_a_still_world_is_still(make):
    learner = play(EvenHand(10, 3, seed=2), make(WORTH), 2000)
    assert learner.estimate().changes == ()
    assert learner._watch.cuts == 0


def test_with_a_lower_limit_a_still_world_would_not_be():
    """The control: differences are there, and it is the limit that they do not pass."""
    learner = EvenHand.restore(kept())
    limit = 2 * np.log(2 * 10 * 2500)
    moved = alone_moved(learner.evidence, learner._watch.alone).squares.max()
    assert 0.1 * limit < moved < limit
    learner._watch.cuts = 10**9  # as if it had noticed so many
    assert learner._watch.look(learner.evidence).cuts


def test_changes_survive_saving(tmp_path):
    learner = play(EvenHand.restore(kept()), best(AFTER), 1500, seed=2)
    found = learner.estimate().changes
    assert found
    evenhand.save(learner, tmp_path / "learner.npz")
    twin = evenhand.load(tmp_path / "learner.npz")
    assert twin.estimate().changes == found
    for one in (learner, twin):
        play(one, best(WORTH), 300, seed=3)
    assert learner.snapshot()["checksum"] == twin.snapshot()["checksum"]
    learner.retire(4)
    assert found[0].arm == learner.estimate().changes[0].arm == "seller 4"  # by its name still
    learner._changes = np.repeat(learner._changes, 200, axis=0)
    learner._watch.cuts, learner._watch.glances = 10**9, SELDOM - 1
    learner._glance()
    assert len(learner.estimate().changes) == SHOWN


def test_a_change_of_arms_loses_no_stretch():
    """What was told since the last look is still compared with what comes after."""
    learner = EvenHand.restore(kept())
    told = learner.evidence.singles[:, 0].copy()
    learner.pause(9)
    np.testing.assert_allclose(learner._watch.alone[..., 0].sum(axis=0), told[:9])
    learner.resume(9)
    assert not learner._watch.alone[:, 9].any()
    play(learner, best(WORTH), 300, seed=2)
    learner._watch.end(learner.evidence)
    seen = learner._watch.alone[..., 0].sum(axis=0)
    np.testing.assert_allclose(seen[:9], learner.evidence.singles[:9, 0])


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("make", "most"), [(NoisyOr, 2), (best, 1)])
def test_a_still_world_is_still_for_long(make, most):
    """Ten worlds of 2e4 queries: with noisy-OR two false alarms were seen, both in company."""
    alarms = 0
    for seed in range(10):
        worth = np.random.default_rng(seed).uniform(0.2, 0.8, 10)
        alarms += play(EvenHand(10, 3, seed=seed), make(worth), 20_000, seed)._watch.cuts
    assert alarms <= most


def test_an_arm_that_begins_anew_makes_its_sets_less_certain_until_it_is_known():
    learner = play(EvenHand(6, 2, watch=False, seed=1), NoisyOr(np.linspace(0.2, 0.8, 6)), 6000)
    evidence = learner.evidence
    assert not evidence.keeping
    settled = evidence.estimate().forecast.edge
    evidence.carry()
    evidence.forget(2, evidence.told - 30, np.array([5.0, 2.5, 1.3]))
    edge = evidence.estimate().forecast.edge
    assert edge[2] == pytest.approx(0.5 / (1 + 30 / 6))
    assert np.delete(edge, 2) == pytest.approx(np.delete(settled, 2))
    assert settled == pytest.approx(0.5 / (1 + evidence.told / 6))

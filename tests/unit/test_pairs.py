"""Changes of what two arms bring together: sums against plain ones, and what learners notice."""

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import chi2

from evenhand.exchange import Rows, SetPlan
from evenhand.games import Carrier
from evenhand.games.noise import Bernoulli
from evenhand.learners import EvenHand
from evenhand.learners.pairs import MOST, ROOM, Limits, Pairs, _changed
from tests.unit.test_roster import play

M, K = 5, 3
ANY = Limits(0.0, 0.0)
WORTH, GAMMA = np.array([0.5, 0.2, 0.1, 0.3, 0.4], np.float32), 0.7
PLAN = SetPlan(
    0, np.arange(M), K, np.array([0.5, 0.6, 0.6, 0.7, 0.6]), np.array([0.2, 0.3, 0.5]),
    np.array([0.3, 0.3, 0.1]), WORTH, GAMMA,
)  # fmt: skip


def told(watch, n, rng, shift=0.0):
    """Tell rewards of a plan's sets; return the larger ones: members, surprise, weight, reward."""
    rows = PLAN.draw(n, rng)
    both = (rows.orders == 0).any(axis=1) & (rows.orders == 1).any(axis=1)
    rewards = (rng.random(n) < 0.3 + shift * both).astype(float)[:, None]
    rewards[rng.random(n) < 0.05] = np.nan
    watch.room = n
    watch.absorb(PLAN, rows, rewards)
    found = []
    for order, (r,), (y,) in zip(rows.orders, rows.sizes, rewards, strict=True):
        members = order[:r]
        if r > 1 and not np.isnan(y):
            mean = (1 - np.prod(1 - GAMMA * WORTH[members])) / GAMMA
            law = PLAN.law(int(r))
            uniform = 1 / len([*combinations(range(M), int(r))])
            weight = uniform / np.exp(law.log_prob(members[None])[0])
            found.append((set(members.tolist()), y - mean, weight, y))
    return found


def contrast(sets, a, b):
    """By how much both bring more, unweighted and weighted, with 1/n of each kind."""
    kinds = [[one for one in sets if (a in one[0], b in one[0]) == kind] for kind in
             ((True, True), (True, False), (False, True), (False, False))]  # fmt: skip
    sign = np.array([1, -1, -1, 1])
    surprise = [np.mean([e for _, e, _, _ in kind]) for kind in kinds]
    w = [np.array([w for _, _, w, _ in kind]) for kind in kinds]
    y = [np.average([y for *_, y in kind], weights=x) for kind, x in zip(kinds, w, strict=True)]
    return (
        (sign @ surprise, np.array([1 / len(kind) for kind in kinds])),
        (sign @ y, np.array([(x**2).sum() / x.sum() ** 2 for x in w])),
        kinds,
    )


def variance(sets):
    y, w = np.array([y for *_, y in sets]), np.array([w for _, _, w, _ in sets])
    return np.average(y**2, weights=w) - np.average(y, weights=w) ** 2


def test_what_two_bring_together_is_compared_as_a_plain_loop_does():
    rng, watch, stretches = np.random.default_rng(1), Pairs(M), []
    for n, shift in ((500, 0.0), (500, 0.0), (500, 0.6), (500, 0.6)):
        stretches.append(told(watch, n, rng, shift))
        watch.look(100, 0)
    stretches[:2] = [stretches[0] + stretches[1]]  # as three of a length are too many
    found, every, alike = watch.moved(ANY), [*chain(*stretches)], 0
    assert found.shape == (2, 10)
    for place, (a, b) in enumerate(combinations(range(M), 2)):
        least = max(variance([one for one in every if arm in one[0]]) for arm in (a, b))
        noise = np.array([max(variance(kind), least) for kind in contrast(every, a, b)[2]])
        for boundary in (1, 2):
            sides = stretches[:boundary], stretches[boundary:]
            (x, xw, _), (y, yw, _) = (contrast([*chain(*side)], a, b) for side in sides)
            gap, shares = x[0] - y[0], np.append(x[1], y[1])
            error = noise @ (x[1] + y[1]) + shares.max() * abs(gap) / 3
            also = xw[0] - yw[0]
            moved_along = also * gap > 0 and also**2 > chi2.isf(0.05, 1) * (noise @ (xw[1] + yw[1]))
            naive = gap**2 / min(error, 0.25 * shares.sum()) if moved_along else 0.0
            assert found[boundary - 1, place] == pytest.approx(naive, rel=1e-3)
            alike += moved_along
    assert 1 <= alike < 20
    most = found.max()
    assert (watch.moved(Limits(0.99 * most, 2.1 * most)) == found).all()  # the one is far enough
    assert (watch.moved(Limits(1.1 * most, 1.9 * most)) == found).all()  # or may be, with another
    assert not watch.moved(Limits(10 * most, 20 * most)).any()


def test_pairs_that_met_on_one_side_only_are_not_compared():
    rng, watch = np.random.default_rng(2), Pairs(M)
    told(watch, 100, rng)
    watch.look(100, 0)
    order = np.array([[0, 1, -1]])
    watch.absorb(PLAN, Rows(order, np.array([[2]]), np.ones((1, K))), np.ones((1, 1)))
    watch.look(101, 0)
    assert not watch.moved(ANY).any()


def test_no_more_than_there_is_room_for_is_taken_in():
    rows, rewards = PLAN.draw(2 * ROOM, np.random.default_rng(4)), np.ones((2 * ROOM, 1))
    whole, pieces = Pairs(M), Pairs(M)
    whole.absorb(PLAN, rows, rewards)
    for start in range(0, 2 * ROOM, 100):
        part = slice(start, start + 100)
        pieces.absorb(PLAN, rows.pick(part), rewards[part])
    np.testing.assert_allclose(whole.now, pieces.now)
    assert whole.now[10, 0] == (rows.sizes[:ROOM] > 1).sum()


def test_one_pair_is_found_or_two_of_which_neither_would_be():
    moved = np.zeros((3, 45))
    one, two = chi2.isf(0.01 / 45, 1), chi2.isf(0.01 / (45 * 22), 2)
    assert one < two < 2 * one
    limits = Limits.of(45, 0.01)
    assert limits == pytest.approx((one, two))
    moved[1, [4, 7]] = 0.49 * two
    assert _changed(moved, limits) == []
    moved[1, [4, 7]] = 0.51 * two
    assert sorted(_changed(moved, limits)) == [(1, 4), (1, 7)]
    moved[2, 9] = 1.01 * one
    assert _changed(moved, limits) == [(2, 9)]


def test_arms_that_go_take_their_pairs_with_them():
    rng, watch = np.random.default_rng(3), Pairs(M)
    told(watch, 200, rng)
    watch.look(200, 0)
    met = zip(combinations(range(M), 2), watch.sums[0, :10, 0], strict=True)
    count = {frozenset(pair): n for pair, n in met}
    arms, larger = watch.sums[0, 11:, 0].copy(), watch.sums[0, 10, 0]
    assert larger == max(arms.sum() / 3, larger) <= arms.sum() / 2
    watch.rearrange(np.array([4, 2, -1, 0]))  # 1 and 3 leave, one is new
    now = [4, 2, None, 0]
    for place, (a, b) in enumerate(combinations(range(4), 2)):
        assert watch.sums[0, place, 0] == count.get(frozenset((now[a], now[b])), 0.0)
    assert watch.sums[0, 6, 0] == larger
    assert watch.sums[0, 7:, 0].tolist() == [arms[4], arms[2], 0.0, arms[0]]
    watch.forget(np.array([3]))
    assert watch.sums[0, :6, 0].tolist() == [count[frozenset((4, 2))], 0, 0, 0, 0, 0]
    assert watch.sums[0, 7:, 0].tolist() == [arms[4], arms[2], 0.0, 0.0]


def test_of_many_arms_pairs_are_not_watched():
    learner = EvenHand(MOST + 1, 2, seed=1)
    play(learner, Carrier([[0]], [0.5], MOST + 1, noise=Bernoulli()), 4000)
    assert not learner._watch.pairs.now.size
    assert learner._watch.pairs.looked == 0
    learner.retire(3)
    assert len(learner._watch.pairs.now) == MOST * (MOST - 1) // 2 + 1 + MOST


def pair(a, b):
    """A world where two arms of twelve bring 0.4 more together; alone all bring 0.05."""
    return Carrier([*([x] for x in range(12)), [a, b]], [*[0.05] * 12, 0.4], 12, noise=Bernoulli())


def noticed(seed):
    learner = play(EvenHand(12, 4, seed=seed), pair(0, 1), 8000, seed=seed)
    assert learner.estimate().changes == ()
    return play(learner, pair(2, 3), 8000, seed=9).estimate().changes


def test_a_pair_that_moves_is_noticed_while_its_arms_do_not_show_it(monkeypatch):
    """Arms one by one, the control, may show that the old pair is none, but not both new ones."""

    def named():
        every = [noticed(seed) for seed in range(4)]
        assert not any(change.alone for found in every for change in found)
        return [{change.arm for change in found} for found in every]

    found = named()
    assert all(arms <= {0, 1, 2, 3} for arms in found)
    assert sum({2, 3} <= arms for arms in found) >= 3
    monkeypatch.setattr(Pairs, "due", lambda *_: False)
    assert not any({2, 3} <= arms for arms in named())

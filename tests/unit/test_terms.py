"""Terms: what is refused, and that learners keep to them from the first query, set by set."""

import json
import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import evenhand
from evenhand.estimate import Estimate
from evenhand.exchange import Rows
from evenhand.games import NoisyOr, SetFunction
from evenhand.lab.cells import play as play_cell
from evenhand.lab.games import Setting
from evenhand.lab.learners import build_learner
from evenhand.learners import EvenHand, FullSets
from evenhand.learners.band import Band, totals
from evenhand.learners.proportional import alike, on_terms, room_for_uniform
from evenhand.policy import Group, Terms, fair_policy, project
from evenhand.theory import largest_term
from tests.property.test_terms import instance
from tests.unit.test_band import any_game, weight

M, K = 6, 3
RNG = np.random.default_rng(0)
TERMS = {
    "nothing": Terms(),
    "a cap below K/(2M)": Terms(caps={0: 0.1}, unit="marginals"),
    "two such caps": Terms(caps={0: 0.1, 4: 0.02}, unit="marginals"),
    "a floor above 1 - (1 - K/M)/2": Terms(floors={1: 0.9}, unit="marginals"),
    "both": Terms(floors={1: 0.28}, caps={0: 0.05, "*": 0.3}, unit="shares"),
    "a group held down": Terms(groups={"g": Group([0, 1, 2], cap=0.4)}, unit="marginals"),
    "a group held up": Terms(
        floors=0.01, groups={"g": Group([0, 1], 0.55), "h": Group([4, 5], 0, 0.2)}, unit="shares"
    ),
    "a power": Terms(power=2.0),
    "an arm out": Terms(floors=0.05, caps={2: 0.0}, unit="shares"),
    "a group out": Terms(groups={"g": Group([1, 4], cap=0.0)}, unit="shares"),
}


def law_of(plan, r):
    """All sets of r arms that a plan can draw, by column, their chances and the plan's weights."""
    sets = np.array(list(combinations(range(plan.m), r)))
    law = plan.law(r)
    return sets, np.exp(law.log_prob(sets)), law._weights(sets)


def assert_kept(terms, arms, marginals, k=K):
    """Assert that marginals of some arms, the others having none, are on the terms."""
    bounds, given = terms.bounds(k, np.arange(M)), np.zeros(M)
    given[arms] = marginals
    assert given.sum() == pytest.approx(k, abs=1e-9)
    assert np.all(given >= bounds.low - 1e-9)
    assert np.all(given <= bounds.high + 1e-9)
    for g, (floor, cap) in enumerate(zip(bounds.group_low, bounds.group_high, strict=True)):
        assert floor - 1e-9 <= given[bounds.group == g].sum() <= cap + 1e-9


CHANCES = [0.1, 0.5, 0.3, 0.2, 0.9, 0.05]


def play(learner, queries, seed=1):
    game, rng = NoisyOr(CHANCES), np.random.default_rng(seed)  # batches name arms by id
    while learner.queries < queries:
        batch = learner.ask(queries - learner.queries)
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))


@cache
def made(name, queries):
    """A learner on terms that was told so many rewards and has a plan."""
    learner = EvenHand(M, K, terms=TERMS[name], seed=1)
    play(learner, queries)
    learner.ask(1)
    return learner


@pytest.mark.parametrize("queries", [0, 120])
@pytest.mark.parametrize("name", TERMS)
def test_terms_hold_for_every_set_that_can_be_drawn(name, queries):
    """The law of the sets, listed: its marginals are on the terms, and weights make up for it."""
    plan = made(name, queries).plan
    assert_kept(TERMS[name], plan.arms, plan.marginals)
    assert plan.m == M - {"an arm out": 1, "a group out": 2}.get(name, 0)
    value = np.random.default_rng(5).random(2**M)  # of any set
    for r in range(1, K + 1):
        sets, chances, weights = law_of(plan, r)
        inside = (sets[:, :, None] == np.arange(plan.m)).any(axis=1)
        np.testing.assert_allclose(chances @ inside, r / K * plan.marginals, atol=1e-8)
        f = value[(2 ** plan.arms[sets]).sum(axis=1)]
        for a, q in enumerate(plan.marginals):
            weighted = (chances[:, None] * weights * (sets == a)).sum(axis=1) @ f
            assert weighted == pytest.approx(r / K * q * f[inside[:, a]].mean(), rel=1e-7)


@pytest.mark.parametrize("queries", [0, 120])
@pytest.mark.parametrize("name", TERMS)
def test_full_sets_keep_to_terms(name, queries):
    learner = FullSets(M, K, terms=TERMS[name], seed=1)
    play(learner, queries)
    learner.ask(1)
    plan = learner.plan
    assert_kept(TERMS[name], plan.arms, plan.marginals)
    assert plan.mixing > 0.0
    rows = plan.draw(4000, np.random.default_rng(2))
    found = {}
    for order, (rarity,) in zip(np.sort(rows.orders).tolist(), rows.weights, strict=True):
        found[tuple(order)] = rarity
    chances = {s: 1.0 / (w * math.comb(plan.m, K)) for s, w in found.items()}
    assert sum(chances.values()) == pytest.approx(1.0, abs=0.02)  # but for sets not yet drawn
    given = sum(p * np.isin(np.arange(plan.m), s) for s, p in chances.items())
    np.testing.assert_allclose(given, plan.marginals, atol=0.02)


def test_uniform_sets_as_they_were_would_break_the_terms():
    """A negative control: the marginals that leave room for half of uniform sets are off them."""
    for name in ("a cap below K/(2M)", "a floor above 1 - (1 - K/M)/2"):
        without = EvenHand(M, K, seed=1)
        without.ask(1)
        assert without.plan.mixing == 0.5
        low, high = 0.5 * K / M, 1.0 - 0.5 * (1.0 - K / M)
        bounds = TERMS[name].bounds(K, np.arange(M))
        assert bounds.high.min() < low or bounds.low.max() > high
        with pytest.raises(AssertionError):
            assert_kept(TERMS[name], np.arange(M), without.plan.marginals)


@pytest.mark.parametrize("name", TERMS)
def test_the_band_is_unbiased_on_terms(name):
    """Lemma 1 for the laws that terms make, by listing all sets of the game among arms shown."""
    rng = np.random.default_rng(3)
    learner = made(name, 120)
    plan, m = learner.plan, learner.m
    values, merit = any_game(m, K, 0.0, rng)
    mean, largest = np.zeros(m), 0.0
    for r in range(1, K + 1):
        for s, chance, w in zip(*law_of(plan, r), strict=True):
            order, weights = np.full((1, K), -1), np.zeros((1, K))
            order[0, :r], weights[0, :r] = s, w
            band = Band(m, K, plan.sizes)
            rows = Rows(order, np.array([[r]]), weights)
            band.absorb(plan, rows, np.array([[values[tuple(s.tolist())]]]))
            terms, _ = totals(band.sums)
            mean += plan.sizes[r - 1] * chance * (terms + band.base)
            largest = max(largest, float(np.abs(terms).max()))
    np.testing.assert_allclose(mean, weight(plan) * merit, atol=1e-8)
    assert weight(plan) >= plan.mixing - 1e-12
    assert largest <= largest_term(m, plan.sizes)
    even = alike(learner._bounds, K)
    rate = learner._rate()
    assert plan.mixing >= rate * min(1.0, room_for_uniform(even, K)) - 1e-12


def test_the_policy_on_terms_is_as_near_as_lemma_4_says():
    tightest = 0.0
    for seed in range(300):
        merit, bounds, k, _ = instance(seed)
        rng = np.random.default_rng(seed)
        grouped = bool(len(bounds.group_low))
        due = project(merit, bounds, k)
        pools = [bounds.group == g for g in range(len(bounds.group_low))] + [bounds.group < 0]
        free = (due > bounds.low + 1e-9) & (due < bounds.high - 1e-9)
        if not all(free[pool].any() for pool in pools if pool.any()):
            continue  # where no arm of a pool is between its bounds its scale is not known
        scale = max((due / merit)[free & pool].max() for pool in pools if pool.any())
        scores = np.maximum(merit + rng.normal(size=len(merit)) * rng.choice([0.01, 0.3, 2.0]), 0)
        mixing = rng.choice([0.5, 0.1, 0.01])
        even = alike(bounds, k)
        policy = on_terms(scores, np.ones(len(merit), bool), k, Terms(), bounds, mixing)
        low, high = mixing * even, 1.0 - mixing * (1.0 - even)
        beyond = np.maximum(low - due, 0.0).sum() + np.maximum(due - high, 0.0).sum()
        assert beyond <= 2.0 * mixing * k + 1e-12
        bound = (4 if grouped else 2) * (scale * np.abs(scores - merit).sum() + beyond)
        apart = np.abs(policy - due).sum()
        assert apart <= bound + 1e-9
        tightest = max(tightest, apart / bound)
    assert tightest > 0.4  # not a bound that anything would pass


def test_an_arm_that_is_out_has_no_merit_and_gives_none():
    """The merits found are those of the game among the others, and so is the target."""
    pair = SetFunction(lambda s: 0.1 + 0.6 * (s[:, 0] & s[:, 5]) + 0.05 * s.sum(axis=1), m=M)
    terms = Terms(caps={5: 0.0}, unit="shares")
    learner = EvenHand(M, K, terms=terms, seed=1)
    run = evenhand.simulate(learner, pair, 1500, seed=1)
    alone = SetFunction(lambda s: 0.1 + 0.05 * s.sum(axis=1), m=5)
    expected = evenhand.kshapley(alone, K)
    np.testing.assert_allclose(run.target, np.append(fair_policy(expected, K), 0.0), atol=1e-12)
    assert (learner.m, learner.selections[5]) == (5, 0)
    np.testing.assert_allclose(learner.merit, expected, atol=0.02)
    whole = evenhand.kshapley(pair, K)
    assert abs(whole[0] - expected[0]) > 0.05  # with it, its partner would have more
    low, high = learner.intervals().T
    assert np.all((low <= expected) & (expected <= high))


def test_terms_change_at_once_and_arms_may_go_out_and_come_back():
    learner = EvenHand(M, K, names=list("abcdef"), seed=1)
    play(learner, 1500)
    learner.ask()
    batch = learner.ask(5)
    assert learner._left > 0
    before = learner.queries
    learner.change_terms(Terms(floors={"f": 0.3}, unit="shares"))
    assert learner.marginals[5] == pytest.approx(0.9, abs=1e-9)
    nxt = learner.ask(3)
    assert nxt.exposure.q[5] == pytest.approx(0.9, abs=1e-9)
    learner.tell(batch, np.full((5, 1), 0.5))  # rows that were out
    learner.change_terms(Terms(caps={"e": 0.0}, unit="shares"))
    assert learner.names == ("a", "b", "c", "d", "f")
    learner.tell(nxt, np.full((3, 1), 0.5))
    assert learner.band.count == 0  # of another game
    without = NoisyOr(np.delete(CHANCES, 4)).kshapley(K)
    whole = NoisyOr(CHANCES).kshapley(K)
    assert np.abs(np.delete(whole, 4) - without).max() > 0.05
    np.testing.assert_allclose(learner.merit, without, atol=0.04)
    play(learner, 1700)
    twin = EvenHand.restore(json_round(learner.snapshot()))
    assert (twin.past_terms, twin.terms) == (learner.past_terms, learner.terms)
    assert [queries for queries, _ in learner.past_terms] == [before, before + 3]
    for one in (learner, twin):
        with pytest.raises(ValueError, match="cap above 0 by the terms, got 'e'; change the terms"):
            one.resume("e")
        one.change_terms(None)
        np.testing.assert_allclose(one.merit, whole, atol=0.04)
        assert one.marginals.min() > 0.0


def test_terms_follow_the_roster():
    terms = Terms(
        floors={"*": 0.05, "a": 0.25}, groups={"g": Group(["a", "b"], 0.3)}, unit="shares"
    )
    learner = EvenHand(4, 2, names=list("abcd"), terms=terms, seed=1)
    learner.add(["new"])
    assert learner.marginals[4] >= 0.1
    with pytest.raises(ValueError, match="group 'g' must be within the reach"):
        learner.retire(["a", "b"])
    learner.pause("a")
    assert learner.marginals.sum() == pytest.approx(2.0)
    assert learner.marginals[0] >= 0.6 - 1e-9  # b alone
    learner.change_terms(Terms(caps={"a": 0.0}, unit="shares"))  # paused as it is, and out
    learner.change_terms(None)
    assert learner.names == ("b", "c", "d", "new")  # it was not the terms that paused it
    learner.resume("a")
    assert learner.m == 5


def json_round(snapshot):
    arrays = snapshot.pop("arrays")
    return json.loads(json.dumps(snapshot)) | {"arrays": arrays}


@pytest.mark.parametrize("kind", [EvenHand, FullSets])
def test_a_learner_with_terms_goes_on_after_a_restart(kind):
    learner = kind(M, K, terms=TERMS["a group held up"], seed=3)
    play(learner, 100)
    learner.change_terms(Terms(power=0.5))
    twin = kind.restore(json_round(learner.snapshot()))
    assert twin.terms == learner.terms
    for one in (learner, twin):
        play(one, 200, seed=9)
    np.testing.assert_array_equal(learner.merit, twin.merit)
    assert "terms=Terms(power=0.5)" in repr(twin)


def test_refused_terms_change_nothing():
    learner = FullSets(M, K, terms=TERMS["both"], seed=1)
    play(learner, 50)
    left = learner._left
    for wrong, message in (
        (Terms(floors=0.2, unit="shares"), "add up to at most 1 "),
        (Terms(caps=[0, 0, 0, 0.1], unit="shares"), "at least 1 .* for 3 arms"),
        (Terms(floors={2: 1.0}, unit="marginals"), "arm 2 is always shown"),
        (Terms(floors={"ada": 0.1}, unit="shares"), "got 'ada'; these arms have no names"),
        ([1], r"terms must be Terms\(...\), got \[1\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            learner.change_terms(wrong)
    assert (learner.terms, learner.past_terms, learner._left) == (TERMS["both"], (), left)


def test_an_arm_always_shown_leaves_nothing_to_claim():
    learner = EvenHand(M, K, terms=Terms(floors={2: 1.0}, unit="marginals"), seed=1)
    play(learner, 100)
    batch = learner.ask(50)
    full = batch.orders[batch.sizes[:, 0] == K]
    assert np.all((full == 2).any(axis=1))
    assert learner.plan.mixing == 0.0
    assert np.all(learner.intervals() == [-1.0, 1.0])
    assert np.isfinite(learner.merit).all()


def test_regret_is_measured_against_the_terms():
    game = NoisyOr(CHANCES)
    terms = TERMS["both"]
    run = evenhand.simulate(EvenHand(M, K, terms=terms, seed=1), game, 100, seed=1)
    np.testing.assert_allclose(run.target, fair_policy(game.kshapley(K), K, terms))
    assert np.abs(run.target - fair_policy(game.kshapley(K), K)).max() > 0.1
    learner = build_learner({"kind": "even-hand", "terms": terms.to_json()}, M, K, 100, RNG)
    record = play_cell(
        Setting(game, Estimate(game.kshapley(K), np.zeros(M), 0)), learner, 100, 0, RNG
    )
    assert record["regret"] < 100 * np.abs(run.target - K / M).sum()
    out = build_learner({"kind": "even-hand", "terms": TERMS["an arm out"]}, M, K, 100, RNG)
    with pytest.raises(ValueError, match="leave the arm out of the game"):
        play_cell(Setting(game, Estimate(game.kshapley(K), np.zeros(M), 0)), out, 100, 0, RNG)


def test_a_newcomer_has_the_default_and_paused_arms_are_out():
    terms = Terms(floors={"*": 0.05, "ada": 0.2}, caps=[0.5, 0.4], unit="marginals")
    bounds = terms.bounds(1, np.array([0, 3, 7]), ["ada", "cy", "new"])
    assert bounds.low.tolist() == [0.2, 0.05, 0.05]
    assert bounds.high.tolist() == [0.5, 1.0, 1.0]
    bounds = terms.bounds(1, np.array([0, 3, 7]), ["ada", "cy", "new"], paused=[0])
    assert bounds.low.tolist() == [0.0, 0.05, 0.05]
    assert bounds.high.tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("merit", "terms", "due"),
    [
        ([0, 0, 0, 0], Terms(floors={3: 0.8}, unit="marginals"), [0.4, 0.4, 0.4, 0.8]),
        # a group of no merit and a floor: its arms are alike
        (
            [3, 1, 0, 0],
            Terms(groups={"g": Group([2, 3], 0.5)}, unit="marginals"),
            [1, 0.5, 0.25, 0.25],
        ),
        # what caps leave over goes to those of no merit
        ([3, 1, 0, 0], Terms(caps={0: 0.5, 1: 0.5}, unit="marginals"), [0.5, 0.5, 0.5, 0.5]),
        ([3, 1, 1, 0], Terms(caps={0: 0.0}, unit="shares"), [0, 1, 1, 0]),
    ],
)
def test_scores_of_zero(merit, terms, due):
    np.testing.assert_allclose(fair_policy(merit, 2, terms), due, atol=1e-12)


def one(**given):
    return lambda: fair_policy([1.0, 2.0, 3.0, 4.0], 2, Terms(**given))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (one(floors=0.1), "unit must say what floors and caps are numbers of"),
        (one(floors=0.1, unit="percent"), "got 'percent'"),
        (one(floors=1.2, unit="marginals"), r"floors must lie in \[0, 1\], got 1.2: an arm is in"),
        (one(caps={1: 1.5}, unit="shares"), r"caps must lie in \[0, 1\], got 1.5 for arm 1"),
        (one(floors={0: 0.6}, unit="shares"), "slots 0.5, got 0.6 for arm 0 with k=2"),
        (one(floors=0.3, unit="shares"), r"at most 1 \(share of slots\) for k=2, got 1.2 for 4"),
        (one(floors=0.6, unit="marginals"), r"at most 2 \(marginal\) for k=2, got 2.4 for 4 arms"),
        (one(caps=0.4, unit="marginals"), r"at least 2 \(marginal\) for k=2, got 1.6 for 4 arms"),
        (
            one(caps={0: 0, 1: 0, 2: 0}, unit="shares"),
            "at least 1 .* got 0.5 for 1 arms that may be shown",
        ),
        (
            one(floors={2: 0.5}, caps={2: 0.2}, unit="marginals"),
            r"got floor 0.5 and cap 0.2 \(marginal\) for arm 2; lower the one",
        ),
        (one(floors={2: 0.5}, caps={2: 0.0}, unit="marginals"), "floor 0.5 and cap 0"),
        (
            one(floors=0.3, groups={"g": Group([0, 1], cap=0.5)}, unit="marginals"),
            "the cap of group 'g' must leave its arms their floors, .* 0.6 .* got 0.5",
        ),
        (
            one(caps=0.6, groups={"g": Group([0, 1], 1.4)}, unit="marginals"),
            "the floor of group 'g' must be within the reach of its arms, .* 1.2 .* got 1.4",
        ),
        (
            one(groups={"g": Group([0, 1]), "h": Group([1])}, unit="shares"),
            "groups must not share arms, got 1 in 'g' and 'h'",
        ),
        (one(groups={"g": Group([0], 2.0)}, unit="shares"), "group 'g' must lie in"),
        (lambda: Group([0], floor=0.3, cap=0.2), "cap must be at least the floor"),
        (lambda: Group([]), "arms must hold an arm at least"),
        (one(floors={9: 0.1}, unit="shares"), "floors must be of arms that are there, got 9"),
        (one(power=5.0), r"power must lie in \[0.25, 4\], got power=5.0"),
        (lambda: Terms.of({"floor": 0.1}), "got 'floor'"),
        (lambda: Terms(floors={"ada": -0.1}, unit="shares"), r"floors\['ada'\] must be finite"),
    ],
)
def test_what_cannot_be_is_refused_with_its_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_names_work_where_an_estimate_has_them():
    found = EvenHand(3, 2, names=["ada", "bob", "cy"], prior=([0.3, 0.2, 0.1], 0.01), seed=1)
    due = fair_policy(found.estimate(), 2, Terms(floors={"cy": 0.4}, unit="shares"))
    assert due[2] == pytest.approx(0.8)
    with pytest.raises(ValueError, match="'cy' by id and by name"):
        fair_policy(found.estimate(), 2, Terms(floors={2: 0.4, "cy": 0.4}, unit="shares"))

"""Terms: the projection against its optimality conditions and against scipy."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evenhand import fair_policy
from evenhand.policy import Bounds, Group, Terms, project, waterfill

seeds = st.integers(0, 2**32 - 1)


def instance(seed, zeros=0.0):
    """Scores and feasible bounds around a random point, and the point."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    k = int(rng.integers(1, m + 1))
    point = waterfill(rng.gamma(0.7, size=m) + 1e-3, k)
    tight = rng.random()
    low = np.where(rng.random(m) < 0.5, point * rng.random(m) ** tight, 0.0)
    high = np.where(rng.random(m) < 0.5, point + (1 - point) * rng.random(m), 1.0)
    g = int(rng.integers(0, 4))
    group = rng.integers(-1, g, m) if g else np.full(m, -1)
    totals = np.array([point[group == i].sum() for i in range(g)])
    floors = np.where(rng.random(g) < 0.5, totals * rng.random(g) ** 0.3, 0.0)
    caps = np.where(rng.random(g) < 0.5, totals * (1 + 0.3 * rng.random(g)), np.inf)
    scores = np.exp(rng.normal(0, 1.5, m)) * (rng.random(m) >= zeros)
    return scores, Bounds(low, high, group, floors, caps), k, point


def violation(x, scores, bounds, k):
    """How far marginals are from being optimal: 0 if some multipliers satisfy all conditions.

    log(x/s) is a multiplier of the arm's pool where the arm is between its bounds, at least that at
    its floor, at most that at its cap; a pool's is that of all arms where the group is between its
    bounds, and likewise else.
    """
    eps = 1e-9
    worst = abs(x.sum() - k)
    worst = max(worst, (bounds.low - x).max(), (x - bounds.high).max())
    ratio = np.log(x / scores)
    least, most = -np.inf, np.inf  # of the multiplier of all arms
    pools = [(x[bounds.group == g], bounds.group == g) for g in range(len(bounds.group_low))]
    for g, (members, inside) in enumerate(pools):
        total, floor, cap = members.sum(), bounds.group_low[g], bounds.group_high[g]
        worst = max(worst, floor - total, total - cap)
        low = np.max(ratio[inside & (x > bounds.low + eps)], initial=-np.inf)
        high = np.min(ratio[inside & (x < bounds.high - eps)], initial=np.inf)
        worst = max(worst, low - high)
        if total < cap - eps:  # at its floor a group's multiplier may be larger than that of all
            most = min(most, high)
        if total > floor + eps:  # and at its cap smaller
            least = max(least, low)
    alone = bounds.group < 0
    least = max(least, np.max(ratio[alone & (x > bounds.low + eps)], initial=-np.inf))
    most = min(most, np.min(ratio[alone & (x < bounds.high - eps)], initial=np.inf))
    return max(worst, least - most)


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_the_optimality_conditions_hold(seed):
    scores, bounds, k, _ = instance(seed)
    x = project(scores, bounds, k)
    assert violation(x, scores, bounds, k) < 1e-7


def test_another_feasible_point_violates_the_conditions():
    wrong = 0
    for seed in range(60):
        scores, bounds, k, point = instance(seed)
        wrong += violation(point, scores, bounds, k) > 1e-3
    assert wrong > 40


def divergence(x, scores):
    return float(np.sum(x * np.log(np.maximum(x, 1e-300) / scores)))


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_the_projection_is_what_scipy_finds(seed):
    scores, bounds, k, point = instance(seed)
    x = project(scores, bounds, k)
    rows = [bounds.group == g for g in range(len(bounds.group_low))]
    limits = [
        {"type": "ineq", "fun": lambda p, r=r, f=f: p[r].sum() - f}
        for r, f in zip(rows, bounds.group_low, strict=True)
    ] + [
        {"type": "ineq", "fun": lambda p, r=r, c=c: c - p[r].sum()}
        for r, c in zip(rows, bounds.group_high, strict=True)
        if np.isfinite(c)
    ]
    found = minimize(
        divergence,
        point,
        args=(scores,),
        jac=lambda p, s: np.log(np.maximum(p, 1e-300) / s) + 1.0,
        bounds=list(zip(np.maximum(bounds.low, 1e-12), bounds.high, strict=True)),
        constraints=[{"type": "eq", "fun": lambda p: p.sum() - k}, *limits],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert divergence(x, scores) <= found.fun + 1e-7
    if found.success:
        assert np.abs(x - found.x).max() < 2e-3


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_scores_of_zero_are_the_limit_of_equal_small_ones(seed):
    scores, bounds, k, _ = instance(seed, zeros=0.5)
    x = project(scores, bounds, k)
    tiny = np.where(scores > 0.0, scores, 1e-13)
    np.testing.assert_allclose(x, project(tiny, bounds, k), atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_without_floors_and_caps_it_is_waterfilling(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    k = int(rng.integers(1, m + 1))
    merit = rng.gamma(0.3, size=m) * (rng.random(m) < 0.8)
    np.testing.assert_allclose(fair_policy(merit, k, Terms()), waterfill(merit, k), atol=1e-12)
    power = rng.uniform(0.25, 4.0)
    due = fair_policy(merit, k, Terms(power=power))
    np.testing.assert_allclose(due, waterfill(merit**power, k), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_shares_are_marginals_over_k_and_terms_go_to_json_and_back(seed):
    scores, bounds, k, _ = instance(seed)
    m = len(scores)
    names = [f"arm {a}" for a in range(m)]
    made = []
    for unit, factor in (("shares", k), ("marginals", 1)):
        groups = {
            str(g): Group(
                [names[a] if a % 2 else a for a in np.flatnonzero(bounds.group == g)],
                bounds.group_low[g] / factor,
                None if np.isinf(bounds.group_high[g]) else bounds.group_high[g] / factor,
            )
            for g in range(len(bounds.group_low))
            if (bounds.group == g).any()
        }
        caps = dict(zip(names, bounds.high / factor, strict=True))
        terms = Terms(bounds.low / factor, caps, groups, unit=unit)
        again = Terms.of(json.loads(json.dumps(terms.to_json())))
        assert again == terms
        assert repr(again) == repr(terms)
        made.append(again.policy(scores, k, names=names))
    np.testing.assert_allclose(made[0], made[1], atol=1e-9)
    np.testing.assert_allclose(made[1], project(scores, bounds, k), atol=1e-9)


def test_a_million_arms_sum_to_what_they_should():
    rng = np.random.default_rng(0)
    merit = np.exp(rng.normal(0, 1, 10**6))
    terms = Terms(floors=0.1, caps={"*": 0.9}, unit="marginals")
    x = terms.policy(merit, 300_000)
    assert x.sum() == pytest.approx(300_000, rel=1e-12)
    assert 0.1 <= x.min() <= x.max() <= 0.9

"""Invariants of policies and designs on random input."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.designs import ConditionalPoisson, DependentRounding, Systematic
from evenhand.policy import project_l1, waterfill
from tests import reference

scores = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=8).flatmap(
    lambda s: st.tuples(st.just(s), st.integers(1, len(s)))
)


@given(scores)
def test_waterfill_is_feasible_monotone_and_idempotent(drawn):
    s, k = drawn
    p = waterfill(s, k)
    assert abs(p.sum() - k) <= 1e-9
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    order = np.argsort(s, kind="stable")
    assert np.all(np.diff(p[order]) >= -1e-12)
    np.testing.assert_allclose(waterfill(p, k), p, atol=1e-9)


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=8).flatmap(
        lambda t: st.tuples(st.just(t), st.integers(1, len(t)))
    )
)
def test_projection_is_feasible_and_idempotent(drawn):
    target, k = drawn
    p = project_l1(target, k)
    assert abs(p.sum() - k) <= 1e-9
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    np.testing.assert_allclose(project_l1(p, k), p, atol=1e-9)


@settings(max_examples=60)
@given(scores)
def test_a_fitted_design_gives_what_was_asked(drawn):
    s, k = drawn
    target = waterfill(s, k)
    design = ConditionalPoisson.fit(target)
    assert np.abs(design.marginals - target).max() <= 1.1e-10
    sets = reference.sets_of(len(s), k)
    probabilities = np.exp(design.log_prob(sets))
    assert abs(probabilities.sum() - 1.0) <= 1e-12
    given_marginals = reference.marginals_of(sets, probabilities, len(s))
    np.testing.assert_allclose(given_marginals, design.marginals, atol=1e-12)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-30, 30), min_size=2, max_size=8).flatmap(
        lambda t: st.tuples(st.just(t), st.integers(1, len(t)))
    )
)
def test_a_weighted_design_is_the_listed_law(drawn):
    theta, k = drawn
    design = ConditionalPoisson.from_log_weights(theta, k)
    sets, probabilities = reference.max_entropy(np.array(theta), k)
    np.testing.assert_allclose(np.exp(design.log_prob(sets)), probabilities, atol=1e-12)
    given_marginals = reference.marginals_of(sets, probabilities, len(theta))
    np.testing.assert_allclose(design.marginals, given_marginals, atol=1e-12)
    joint = reference.pairs_of(sets, probabilities, len(theta))
    np.testing.assert_allclose(design.pair_marginals(), joint, atol=1e-12)


@settings(max_examples=60)
@given(scores, st.integers(0, 2**32 - 1))
def test_rounding_always_draws_k_distinct_arms_that_may_be_drawn(drawn, seed):
    s, k = drawn
    target = waterfill(s, k)
    for design in (DependentRounding.fit(target), Systematic.fit(target)):
        rows = design.sample(20, np.random.default_rng(seed))
        assert all(len(set(row)) == k for row in rows.tolist())
        counts = np.bincount(rows.ravel(), minlength=len(s))
        assert np.all(counts[target == 1.0] == 20)
        assert not counts[target == 0.0].any()

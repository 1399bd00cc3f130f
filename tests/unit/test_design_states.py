"""What a design gives as its state, and what is refused as one."""

import numpy as np
import pytest

from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy
from evenhand.policy import waterfill

KINDS = [ConditionalPoisson, EnumeratedMaxEntropy]
CERTAIN = [1.0, 0.8, 0.7, 0.5, 0.0, 0.0]
CROWDED = [0.99, 0.98, 0.9, 0.8, 0.73, 0.6]  # drawn by the tree of coins


def policy(m, k, spread=1.0, seed=0):
    return waterfill(np.exp(np.random.default_rng(seed).normal(0, spread, m)), k)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [policy(8, 3), CERTAIN, CROWDED, [1.0, 1.0]])
def test_a_state_gives_back_a_design_that_draws_the_same(kind, target):
    design = kind.fit(target)
    k, sets = design.k, design.sample(5, np.random.default_rng(0))
    for state in (design.state(), design.warm_state()):
        again = kind.from_state(state, k)
        for name in ("marginals", "log_weights"):
            np.testing.assert_array_equal(getattr(again, name), getattr(design, name))
        np.testing.assert_array_equal(again.log_prob(sets), design.log_prob(sets))
        np.testing.assert_array_equal(again.weights(sets), design.weights(sets))
        for n in (1, 3, 100):
            one, two = (d.sample(n, np.random.default_rng(n)) for d in (again, design))
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("k", [3, 20])
def test_the_law_of_many_arms_is_given_back(k):
    design = ConditionalPoisson.fit(policy(40, k))
    again = ConditionalPoisson.from_state(design.state(), k)
    one, two = (d.sample(50, np.random.default_rng(1)) for d in (again, design))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_state_is_refitted_bit_for_bit_and_a_small_one_nearly(kind):
    design, other = kind.fit(policy(8, 3)), policy(8, 3, seed=1)
    expected = design.refit(other).log_weights
    warm = kind.from_state(design.warm_state(), 3).refit(other).log_weights
    np.testing.assert_array_equal(warm, expected)
    small = kind.from_state(design.state(), 3).refit(other)
    np.testing.assert_allclose(small.marginals, other, atol=1e-6)


def test_a_state_is_the_callers_own():
    design = ConditionalPoisson.fit(CROWDED)
    state, before = design.warm_state(), design.log_weights.copy()
    again = ConditionalPoisson.from_state(state, 5)
    for array in state.values():
        array += 1.0
    np.testing.assert_array_equal(design.log_weights, before)
    np.testing.assert_array_equal(again.log_weights, before)


def changed(state, name, at, value):
    state[name][at] = value
    return state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: changed(s, "log_weights", 0, 5.0), "log_weights must be centred"),
        (lambda s: changed(s, "log_weights", 0, np.nan), "log_weights must not be nan"),
        (lambda s: changed(s, "log_weights", ..., 1e308), "must"),
        (lambda s: changed(s, "log_weights", ..., np.inf), "k must lie between the 8 arms always"),
        (lambda s: changed(s, "log_weights", slice(0, 3), np.inf), "infinite where there is no"),
        (lambda s: changed(s, "log_weights", slice(0, 5), -np.inf), "infinite where there is no"),
        (lambda s: changed(s, "marginals", 0, 0.9), "marginals must follow from log_weights"),
        (lambda s: changed(s, "marginals", 0, np.nan), "marginals must follow"),
        (lambda s: changed(s, "log_normaliser", ..., 40.0), "log_normaliser must follow"),
        (lambda s: changed(s, "log_normaliser", ..., np.inf), "log_normaliser must follow"),
        (lambda s: changed(s, "coins", (1, 2), 0.0), "coins must follow from log_weights"),
        (lambda s: s | {"marginals": s["marginals"][:5]}, r"marginals must have shape \(8,\)"),
        (lambda s: s | {"log_normaliser": np.zeros(2)}, r"log_normaliser must have shape \(\)"),
        (lambda s: s | {"coins": np.zeros((2, 8))}, r"coins must have shape \(3, 8\)"),
        (lambda s: s | {"log_weights": np.zeros((8, 1))}, "log_weights must be a vector"),
        (lambda s: s | {"log_weights": np.zeros(0)}, "log_weights must be a vector"),
        (lambda s: s | {"log_weights": np.array(["0.5"] * 8)}, "array of floats, got dtype <U3"),
        (lambda s: {"marginals": s["marginals"]}, "state must hold log_weights, got marginals"),
        (lambda s: {}, "state must hold log_weights, got nothing"),
    ],
)
def test_a_changed_state_of_a_conditional_poisson_design_is_refused(change, message):
    state = ConditionalPoisson.fit(policy(8, 3)).warm_state()
    ConditionalPoisson.from_state(state, 3)
    with pytest.raises(ValueError, match=message):
        ConditionalPoisson.from_state(change(state), 3)
    with pytest.raises(ValueError, match=r"log_weights must be centred|k must satisfy"):
        ConditionalPoisson.from_state(ConditionalPoisson.fit(policy(8, 3)).state(), 9)


def test_no_random_change_is_believed_or_hangs():
    """A believed state draws; and what is believed differs by rounding only."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        design = ConditionalPoisson.fit(policy(12, 5))
        state = design.warm_state()
        name = rng.choice(sorted(state))
        at = tuple(rng.integers(0, n) for n in state[name].shape)
        state[name][at] += rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-8, 300)
        try:
            again = ConditionalPoisson.from_state(state, 5)
        except ValueError as error:
            assert name in str(error) or name == "log_weights", seed  # noqa: PT017
        else:
            np.testing.assert_allclose(again.marginals, design.marginals, atol=1e-6)
            assert again.sample(20, rng).shape == (20, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: changed(s, "log_weights", 0, np.nan), "log_weights must not be nan"),
        (lambda s: changed(s, "curvature", (0, 1), 7.0), "curvature must be a symmetric"),
        (lambda s: changed(s, "curvature", (0, 0), -1.0), "curvature must be a symmetric"),
        (lambda s: changed(s, "curvature", (0, 0), np.inf), "curvature must be a symmetric"),
        (lambda s: s | {"curvature": np.eye(3)}, r"\(8, 8\) matrix, got .* shape \(3, 3\)"),
        (lambda s: s | {"log_weights": np.zeros(900)}, "listing all sets needs at most"),
        (lambda s: {}, "state must hold log_weights, got nothing"),
    ],
)
def test_a_changed_state_of_an_enumerated_design_is_refused(change, message):
    state = EnumeratedMaxEntropy.fit(policy(8, 3)).warm_state()
    with pytest.raises(ValueError, match=message):
        EnumeratedMaxEntropy.from_state(change(state), 3)

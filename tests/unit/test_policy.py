import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.merit import Estimate
from evenhand.policy import clip_to_sum, fair_policy, project_l1, waterfill
from tests import reference


@pytest.mark.parametrize(("m", "k"), [(2, 1), (5, 3), (20, 5), (20, 15), (7, 7)])
def test_waterfill_is_the_appendix_in_words(m, k):
    for seed in range(20):
        scores = np.exp(np.random.default_rng(seed).normal(0, 2, m))
        found, expected = waterfill(scores, k), reference.waterfill(scores, k)
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=f"{seed=}")


@pytest.mark.parametrize(
    ("scores", "k", "expected"),
    [
        ([0, 0, 0, 0], 2, [0.5, 0.5, 0.5, 0.5]),
        ([5, 0, 0], 2, [1, 0.5, 0.5]),
        ([1, 2, 0], 2, [1, 1, 0]),
        ([1, 1, 0, 0], 3, [1, 1, 0.5, 0.5]),
        ([3, 2, 1], 3, [1, 1, 1]),
        ([1e308, 1e308, 1e308], 1, [1 / 3, 1 / 3, 1 / 3]),
        ([1e-320, 1e-320, 0], 1, [0.5, 0.5, 0]),
        ([1, 1e-300], 1, [1, 1e-300]),
    ],
)
def test_waterfill_at_the_edges(scores, k, expected):
    np.testing.assert_allclose(waterfill(scores, k), expected, rtol=1e-9)


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 20.0])
def test_what_is_clipped_to_bounds_is_proportional_in_between(spread):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 40))
        k, rate = int(rng.integers(1, m)), rng.random()
        low, high = rate * k / m, 1.0 - rate * (1.0 - k / m)
        scores = np.maximum(np.exp(rng.normal(0, spread, m)), 1e-300)
        x = clip_to_sum(scores, low, high, k)
        assert x.sum() == pytest.approx(k, rel=1e-13)
        assert x.min() >= low
        assert x.max() <= high
        between = (x > low) & (x < high)
        if between.any():
            c = (x[between] / scores[between]).mean()
            expected = np.clip(c * scores, low, high)
            np.testing.assert_allclose(x, expected, rtol=1e-12, err_msg=f"{seed=}")


def test_a_million_scores_sum_to_what_they_should():
    scores = np.exp(np.random.default_rng(0).normal(0, 1, 10**6))
    assert waterfill(scores, 300_000).sum() == pytest.approx(300_000, rel=1e-13)
    assert clip_to_sum(scores, 0.1, 0.9, 300_000).sum() == pytest.approx(300_000, rel=1e-12)


def test_fair_policy_is_proportional_where_it_can_be():
    merit = np.array([0.3, 0.2, 0.25, 0.25])
    np.testing.assert_allclose(fair_policy(merit, 2), 2 * merit / merit.sum(), rtol=1e-15)


def test_projection_of_a_policy_moves_twice_the_excess():
    """The paper's projection lemma: the least distance is 2 E, and target <= C projection."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        m, k = 12, int(rng.integers(1, 12))
        target = rng.dirichlet(np.full(m, 0.2)) * k
        projected = project_l1(target, k)
        excess = np.maximum(target - 1, 0).sum()
        assert np.abs(projected - target).sum() == pytest.approx(2 * excess, abs=1e-12)
        c = max(1.0, target.max())
        assert c <= k + 1e-12
        assert np.all(target <= c * projected + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_projection_is_as_near_as_linear_programming_gets(seed):
    rng = np.random.default_rng(seed)
    m, k = 6, int(rng.integers(1, 7))
    target = rng.normal(0.5, 1.0, m)
    # minimise sum t with -t <= p - target <= t, 0 <= p <= 1, sum p = k
    one = np.eye(m)
    best = linprog(
        np.r_[np.zeros(m), np.ones(m)],
        A_ub=np.block([[one, -one], [-one, -one]]),
        b_ub=np.r_[target, -target],
        A_eq=np.r_[np.ones(m), np.zeros(m)][None],
        b_eq=[k],
        bounds=[(0, 1)] * m + [(0, None)] * m,
    )
    assert np.abs(project_l1(target, k) - target).sum() == pytest.approx(best.fun, abs=1e-9)


def test_merit_ratios_up_to_m_minus_1_over_k_minus_1_need_no_cap():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(3, 30))
        k = int(rng.integers(2, m))
        merit = rng.uniform(1.0, (m - 1) / (k - 1), m)
        merit[0], merit[1] = 1.0, (m - 1) / (k - 1)
        assert np.max(k * merit / merit.sum()) <= 1.0 + 1e-12
        extreme = np.ones(m)
        extreme[0] = (m - 1) / (k - 1)
        assert k * extreme[0] / extreme.sum() == pytest.approx(1.0)  # the bound is tight


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fair_policy([0.2, -0.1], 1),
            ValueError,
            r"merit must be finite and >= 0, got merit\[1\]=-0.1",
        ),
        (lambda: fair_policy([0.2, np.nan], 1), ValueError, r"merit\[1\]=nan"),
        (lambda: fair_policy([0.2, np.inf], 1), ValueError, r"merit\[1\]=inf"),
        (
            lambda: fair_policy([0.2, 0.1], 3),
            ValueError,
            "k must satisfy 1 <= k <= m, got k=3 with m=2",
        ),
        (lambda: fair_policy([0.2, 0.1], 0), ValueError, "got k=0 with m=2"),
        (lambda: fair_policy([0.2, 0.1], 1.5), TypeError, "k must be an integer, got 1.5"),
        (
            lambda: fair_policy([], 1),
            ValueError,
            r"merit must be a non-empty vector, got shape \(0,\)",
        ),
        (
            lambda: waterfill([[1.0]], 1),
            ValueError,
            r"scores must be a non-empty vector, got shape \(1, 1\)",
        ),
        (lambda: waterfill(["a"], 1), TypeError, "scores must be a vector of real numbers"),
        (
            lambda: project_l1([np.nan], 1),
            ValueError,
            r"target must be finite, got target\[0\]=nan",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_merits_below_zero_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"merit\[1\]=-0.1; np.maximum\(merit, 0\) counts"):
        fair_policy([0.2, -0.1], 1)


def test_an_estimate_is_taken_as_it_is():
    found = Estimate(np.array([0.2, 0.1, -0.05]), np.zeros(3), 10)
    np.testing.assert_allclose(fair_policy(found, k=1), [2 / 3, 1 / 3, 0.0])
    unseen = Estimate(np.array([0.2, np.nan]), np.zeros(2), 10)
    with pytest.raises(ValueError, match="nan is an arm not yet seen"):
        fair_policy(unseen, k=1)

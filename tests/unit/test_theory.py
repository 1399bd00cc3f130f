from math import comb, isinf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from evenhand import theory
from evenhand.games import hard_pair


def test_eta_is_exactly_one_at_the_smallest_gamma():
    assert theory.smallest_gamma(20, 5, 10**4) == pytest.approx(0.2, rel=1e-12)
    assert theory.eta(20, 5, 10**4, 0.2) == 1.0
    for m, k, horizon in [(20, 5, 31623), (534, 10, 10**4), (7, 3, 12345)]:
        assert theory.eta(m, k, horizon, theory.smallest_gamma(m, k, horizon)) == 1.0
    assert theory.eta(20, 5, 10**4, 0.19) > 1.0
    for m in range(2, 60):  # the same number computed by powers may round below it
        for k in range(1, m):
            gamma = m ** (2 / 3) / (k * 10**5) ** (1 / 3)
            assert theory.eta(m, k, 10**5, gamma) <= 1.0


def test_samples_is_the_floor_without_rounding_error():
    assert theory.samples(10**6, 1) == 10**4
    assert theory.samples(10**6, 8) == 1250
    assert theory.samples(10**4, 8) == 58  # 10^(8/3) / 8 = 58.02
    assert theory.smallest_lambda(20, 10**6) == pytest.approx(0.4)


def test_weight_bound():
    assert theory.max_weight(20, 5, 0.25) == 16.0
    assert isinf(theory.max_weight(20, 5, 0.0))


def test_muras_bound_is_the_formula():
    m, k, horizon, r, gamma, delta = 20, 5, 10**6, 1250, 3.0, 0.1
    expected = 4 * k * m * r + horizon * 4 * k * m / gamma * sqrt(2 / r * log(2 * m / delta))
    assert theory.muras_bound(m, k, horizon, r, gamma, delta) == pytest.approx(expected)


def test_iw_ksvfair_bound_is_the_formula_before_and_after_delta():
    m, k, horizon, eta, floor, c = 20, 5, 10**6, 0.05, 1e-3, 2.0
    w, n = m / (k * eta), horizon // k

    def bracket(delta):
        ell = log(2 * m * (n + 1) / delta)
        first = 4 * c * k / floor * sqrt(2 * w * ell) * (m + 2 * sqrt(m * horizon))
        second = 8 * c * k * w * ell / (3 * floor) * m * (2 + log(n))
        return first + second + 2 * eta * k**2 * n

    before = theory.iw_ksvfair_bound(m, k, horizon, eta, floor, cap=c, delta=0.1)
    assert before == pytest.approx(0.9 * bracket(0.1) + 2 * k * horizon * 0.1, rel=1e-12)
    after = theory.iw_ksvfair_bound(m, k, horizon, eta, floor, cap=c)
    assert after == pytest.approx(bracket(1 / horizon) + 2 * k, rel=1e-12)
    odd = theory.iw_ksvfair_bound(m, k, horizon + 3, eta, floor, cap=c, delta=0.1)
    assert odd - before == pytest.approx(2 * k**2)
    assert theory.iw_ksvfair_bound(m, k, horizon, eta, floor) > after  # C = K where unknown


@pytest.mark.parametrize("horizon", [10**4, 10**6, 10**8])
@pytest.mark.parametrize(("m", "k", "gamma", "lam"), [(20, 5, 0.8, 8), (534, 10, 3, 100)])
def test_both_bounds_are_vacuous_at_the_papers_floor(m, k, gamma, lam, horizon):
    most = 2 * k * horizon
    eta = theory.eta(m, k, horizon, gamma)
    assert theory.iw_ksvfair_bound(m, k, horizon, eta, 1e-4, cap=1) > most
    r = theory.samples(horizon, lam)
    assert theory.muras_bound(m, k, horizon, r, m * 1e-4, 0.5) > most


@pytest.mark.parametrize(("m", "k"), [(4, 2), (6, 3), (20, 5)])
def test_hard_gap_maximises_the_lower_bound(m, k):
    horizon, zeta = 10**9, (k - 1) / (m - 1) / (4 * k)

    def constant(alpha):
        return min(3 * (k - 1) / (32 * (m - 1) * alpha**2), alpha / (2 * comb(m - 1, k - 1)))

    limit = zeta / 2 * horizon ** (1 / 3)
    best = minimize_scalar(lambda a: -constant(a), bounds=(1e-6, limit), method="bounded")
    alpha = theory.hard_gap(m, k, horizon) * horizon ** (1 / 3)
    assert constant(alpha) >= -best.fun * (1 - 1e-9)
    assert theory.lower_bound(m, k, horizon) == pytest.approx(constant(alpha) * horizon ** (2 / 3))


@pytest.mark.parametrize("horizon", [1, 100, 10**4, 10**8])
def test_the_hard_gap_is_always_one_the_hard_pair_takes(horizon):
    for m in range(3, 25):
        for k in range(2, m):
            hard_pair(m, k, theory.hard_gap(m, k, horizon))


def test_hard_gap_stays_feasible_at_small_horizons():
    zeta = (2 - 1) / (4 - 1) / 8
    assert theory.hard_gap(4, 2, 10) == pytest.approx(zeta / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.eta(20, 5, 10**4, 0.0), "gamma must be above 0, got gamma=0"),
        (lambda: theory.eta(20, 5, 0, 0.8), "horizon must be at least 1, got horizon=0"),
        (lambda: theory.max_weight(20, 5, 1.5), r"eta must lie in \[0, 1\], got eta=1.5"),
        (lambda: theory.samples(100, np.nan), "lam must be finite and >= 0, got lam=nan"),
        (lambda: theory.muras_bound(20, 5, 100, 1, 1.0, 0.0), "delta must be above 0"),
        (lambda: theory.muras_bound(20, 5, -100, 1, 1.0, 0.1), "horizon must be at least 1"),
        (lambda: theory.smallest_gamma(20, 5, 0), "horizon must be at least 1"),
        (lambda: theory.smallest_lambda(20, 0), "horizon must be at least 1"),
        (lambda: theory.lower_bound(4, 4, 100), "k must satisfy 1 < k < m"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()

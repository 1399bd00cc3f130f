"""The model and its posterior, against sets listed one by one and dense matrices."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.learners.intake import Means, add_rewards
from evenhand.learners.model import (
    Forecast,
    Sums,
    expectations,
    rates,
    sinking,
    times,
)
from evenhand.learners.posterior import NOTHING, RIDGE, Information, Posterior, refine


def model_value(forecast, members, extra=None):
    """What the model expects of a set, as its page says it: b less losses to saturation."""
    x, gamma = forecast.worth, forecast.gamma
    eta = forecast.extra if extra is None else extra
    value = (1 - np.prod([1 - gamma * x[a] for a in members])) / gamma
    for a in members:
        value -= eta[a] * (1 - np.prod([1 - gamma * x[c] for c in members if c != a]))
    return value


def some_forecast(m, k, rng, eta=0.1):
    worth = rng.uniform(0.05, 0.5, m)
    return Forecast.blank(m, k)._replace(
        worth=worth,
        extra=eta * worth * rng.normal(size=m),
        gamma=rng.uniform(0.3, 1.5),
        noise=np.array([0.01, 0.8, 1.3]),
        own=rng.uniform(0.5, 2.0, m),
        reference=rng.uniform(0.1, 0.4, m),
    )


class Case:
    """Larger sets, the same as sums, as what products need, and as a dense matrix."""

    def __init__(self, m, k, n, rng, same=False):
        self.m, self.k, self.forecast = m, k, some_forecast(m, k, rng)
        self.orders = np.full((n, k), -1)
        for row in self.orders:
            r = int(rng.integers(2, k + 1))
            row[:r] = rng.choice(m, r, replace=False)
        if same:
            self.orders[:] = self.orders[0]
        self.sizes, self.rewards = (self.orders >= 0).sum(axis=1), rng.random(n)
        self.looks = np.empty((n, k + 3))
        self.look()
        self.exact, self.score = self.dense()

    def look(self):
        """Compare the sets with the forecast."""
        self.sums = Sums.blank(self.m, self.k)
        none = Means.none(self.m, self.k)
        rows = self.orders, self.sizes[:, None], np.zeros((0, self.k)), self.rewards[:, None]
        add_rewards(self.sums, none, self.forecast, 0.0, *rows, self.looks, True)

    def gradient(self, members):
        """Slopes of b in x and in the curvature, and of the losses in eta.

        Losses are held fixed where x and the curvature move: they are a correction.
        """
        f, m = self.forecast, self.m
        g = np.zeros(2 * m + 1)
        for a in members:
            others = np.prod([1 - f.gamma * f.worth[c] for c in members if c != a])
            g[a], g[m + a] = others, others - 1
        h, no = 1e-6, np.zeros(m)
        up, down = (f._replace(gamma=f.gamma + s) for s in (h, -h))
        g[-1] = (model_value(up, members, no) - model_value(down, members, no)) / (2 * h)
        return g

    def dense(self):
        f, size = self.forecast, 2 * self.m + 1
        matrix, score = np.zeros((size, size)), np.zeros(size)
        for order, y in zip(self.orders, self.rewards, strict=True):
            members = order[order >= 0]
            mean, g = model_value(f, members), self.gradient(members)
            held = np.clip(mean, 1e-4, 1 - 1e-4)
            ratio = f.own[members] @ f.worth[members] / f.worth[members].sum()
            variance = f.noise[2] * ratio * (f.noise[0] + f.noise[1] * held * (1 - held))
            matrix += np.outer(g, g) / variance
            score += g * (y - mean) / variance
        return matrix, score

    def prior(self, rng, least=0.1):
        return rng.uniform(least, 20.0, 2 * self.m + 1)


def formula(information):
    """The matrix of the page: D - DW (W'DW)^-1 W'D + AW (W'AW)^-1 W'A."""
    w, d = information.directions, np.diag(np.append(np.zeros(2 * information.m), 1.0))
    d *= information.matrix.curve
    x, eta = np.arange(information.m), np.arange(information.m) + information.m
    d[x, x], d[x, eta], d[eta, eta] = information.matrix.blocks
    d[eta, x] = d[x, eta]
    dense = d.copy()
    for sign, side in ((-1, w @ d), (1, information.along)):
        core = side @ w.T
        ridge = RIDGE * np.diag(np.diag(core))
        dense += sign * side.T @ np.linalg.pinv(core + ridge, hermitian=True) @ side
    return dense


@pytest.fixture
def case():
    return Case(7, 4, 300, np.random.default_rng(2))


@pytest.fixture
def information(case):
    return Information(case.sums, case.forecast.reference)


def test_cells_are_blocks_and_products_of_the_full_matrix(case, information):
    m, a, cells = case.m, case.exact, case.sums.cells
    arms = np.arange(m)
    blocks = [a[arms, arms], a[arms, m + arms], a[m + arms, m + arms]]
    np.testing.assert_allclose(cells[:, :3].T, blocks, rtol=1e-7)
    np.testing.assert_allclose(information.along, information.directions @ a, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(information.score, case.score, rtol=1e-6, atol=1e-6)
    assert case.sums.weight.tolist() == [300.0, 300.0]
    members = case.orders >= 0
    assert case.sums.saturation[:, 0].sum() == members.sum()


def test_products_with_kept_sets_are_those_of_the_full_matrix(case):
    vector, result = np.random.default_rng(1).normal(size=(2, 15))
    expected = result + case.exact @ vector
    times.py_func(case.orders, case.looks, vector, result)  # a part: Python cannot call it
    np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-7)


def test_information_is_exact_along_the_directions_and_the_formula_elsewhere(case, information):
    for direction in information.directions:
        product = information.matrix.times(direction)
        np.testing.assert_allclose(product, case.exact @ direction, rtol=1e-5, atol=1e-4)
    found = np.stack([information.matrix.times(row) for row in np.eye(15)])
    np.testing.assert_allclose(found, formula(information), atol=1e-5 * np.abs(found).max())
    # negative control: off the directions it is an approximation
    vector = np.random.default_rng(1).normal(size=15)
    assert np.abs(found @ vector - case.exact @ vector).max() > 1.0


def test_older_sets_that_count_less_are_worth_fewer_rewards(case, information):
    half = Sums(*(0.5 * x for x in case.sums[:-1]), case.sums.weight * [0.5, 0.25])
    faded = Information(half, case.forecast.reference)  # n sets of weight 1/2 are still n sets
    np.testing.assert_allclose(faded.along, information.along, rtol=1e-12)


def test_a_posterior_is_the_inverse_of_the_formula_and_the_prior(case, information):
    rng = np.random.default_rng(3)
    prior = case.prior(rng)
    posterior, inverse = (
        Posterior(information, prior),
        np.linalg.inv(formula(information) + np.diag(prior)),
    )
    right = rng.normal(size=15)
    np.testing.assert_allclose(posterior.matrix.times(right), inverse @ right, rtol=1e-5, atol=1e-8)
    x, eta = np.arange(7), np.arange(7, 14)
    np.testing.assert_allclose(posterior.variances[::2].ravel(), np.diag(inverse)[:-1], rtol=1e-5)
    np.testing.assert_allclose(posterior.variances[1], inverse[x, eta], rtol=1e-5, atol=1e-8)
    worth, extra = case.forecast.worth, case.forecast.extra
    _, merits = expectations(worth, extra, case.forecast.gamma, np.zeros(4), worth)
    jacobian = dense_jacobian(merits)
    covariance = jacobian @ inverse @ jacobian.T
    variance, shared = posterior.of_merits(merits)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-5)
    np.testing.assert_allclose(shared, covariance.sum(axis=1), rtol=1e-5, atol=1e-9)


def test_what_is_left_if_the_curvature_is_known(case, information):
    prior = case.prior(np.random.default_rng(3))
    inverse = np.linalg.inv(formula(information) + np.diag(prior))
    ridge, blocks = Posterior(information, prior).given_curve()
    np.testing.assert_allclose(ridge, inverse[-1] / inverse[-1, -1], rtol=1e-5, atol=1e-8)
    left = inverse - np.outer(inverse[-1], inverse[-1]) / inverse[-1, -1]
    x, eta = np.arange(case.m), np.arange(case.m) + case.m
    expected = left[x, x], left[x, eta], left[eta, eta]
    np.testing.assert_allclose(blocks, expected, rtol=1e-5, atol=1e-8)


def test_sinking_is_the_slope_of_the_blocks_in_the_curvature(case):
    """Of blocks g g' with v fixed; the last is twice the second less the first."""
    f = case.forecast._replace(noise=np.array([0.2, 0.0, 1.0]))
    ends = []
    for step in (1e-5, -1e-5):
        case.forecast = f._replace(gamma=f.gamma + step)
        case.look()
        ends.append(case.sums.cells[:, :3].T)
    case.forecast = f
    case.look()
    slopes = np.zeros((case.m, 2))
    sinking(case.orders, case.looks, rates(f.worth, f.gamma), slopes)
    one, other = slopes.T
    expected = [-2.0 * one, other - 2.0 * one, 2.0 * (other - one)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, expected, rtol=1e-5)


def dense_jacobian(merits):
    """Derivatives (m, 2m + 1) of merits in all parameters, from the few numbers kept of them."""
    _, x, eta, all_x, all_eta, bend = merits
    everybody = np.ones(len(x))
    sides = np.diag(x) + np.outer(all_x, everybody), np.diag(eta) + np.outer(all_eta, everybody)
    return np.hstack([*sides, bend[:, None]])


def test_refined_solutions_are_those_of_the_full_matrix(case, information):
    rng = np.random.default_rng(4)
    prior, right = case.prior(rng), rng.normal(size=15)
    posterior, full = Posterior(information, prior).matrix, case.exact + np.diag(prior)
    wanted = np.linalg.solve(full, right)

    def off(turns):
        found = refine(posterior, NOTHING, prior, case.orders, case.looks, right, turns)
        return np.abs(found - wanted).max()

    errors = [off(turns) for turns in (0, 2, 8, 30)]
    assert errors[0] > 1e-3 * np.abs(wanted).max()  # negative control: there is much to refine
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.02 * errors[0]  # what eight turns are good for
    assert errors[3] < 1e-8 * np.abs(wanted).max()


def test_what_is_not_kept_counts_in_refined_solutions(case, information):
    """Here more is known than the inverse says from which refining starts."""
    rng = np.random.default_rng(5)
    prior, right = case.prior(rng), rng.normal(size=15)
    rest = information.matrix
    full = case.exact + formula(information) + np.diag(prior)
    start = Posterior(information, prior).matrix
    found = refine(start, rest, prior, case.orders, case.looks, right, 30)
    np.testing.assert_allclose(found, np.linalg.solve(full, right), rtol=1e-6, atol=1e-9)
    without = refine(start, NOTHING, prior, case.orders, case.looks, right, 30)
    assert np.abs(found - without).max() > 0.1 * np.abs(found).max()  # negative control


@settings(max_examples=150)
@given(
    m=st.integers(2, 9),
    k=st.integers(2, 9),
    n=st.sampled_from([1, 2, 3, 10, 60]),
    same=st.booleans(),
    flat=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_posterior_is_never_indefinite(m, k, n, same, flat, seed):
    """Few sets, all the same, all arms in them, directions that are parallel: variances stay."""
    rng = np.random.default_rng(seed)
    case = Case(m, min(m, k), n, rng, same)
    reference = np.full(m, 0.3) if flat else case.forecast.reference
    if flat:  # as in the beginning
        case.forecast = case.forecast._replace(worth=reference.copy(), reference=reference)
        case.look()
    information = Information(case.sums, reference)
    scale = np.abs(information.along).max()
    product = np.stack([information.matrix.times(row) for row in np.eye(2 * m + 1)])
    assert np.linalg.eigvalsh((product + product.T) / 2).min() > -1e-6 * scale
    prior = case.prior(rng, least=0.5)
    posterior = Posterior(information, prior)
    inverse = np.stack([posterior.matrix.times(row) for row in np.eye(2 * m + 1)])
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-4 * inverse.max())  # the ridge is small
    assert np.linalg.eigvalsh(inverse).min() > 0.0
    variances = np.diag(inverse)
    assert np.all((variances > 0.0) & (variances < (1 + 1e-4) / prior))  # sets only add
    np.testing.assert_allclose(posterior.variances[::2].ravel(), variances[:-1], rtol=1e-9)
    met = np.zeros(case.k)
    worth, extra, gamma = case.forecast[:3]
    variance, shared = posterior.of_merits(expectations(worth, extra, gamma, met, worth)[1])
    assert variance.min() > 0.0
    assert shared.sum() > 0.0


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_what_is_expected_of_sets_with_an_arm_is_the_mean_over_them(k):
    rng, m = np.random.default_rng(5), 5
    f, met = some_forecast(m, k, rng, eta=0.5), rng.uniform(0, 0.5, k)
    expected, _ = expectations(f.worth, f.extra, f.gamma, met, f.worth)
    for r in range(1, k + 1):
        for a in range(m):
            sets = [s for s in combinations(range(m), r) if a in s]
            values = [
                model_value(f, s, np.zeros(m)) - met[r - 1] * f.extra[list(s)].sum() for s in sets
            ]
            assert expected[r - 1, a] == pytest.approx(np.mean(values), rel=1e-12)


def listed_merits(forecast, k):
    """K-Shapley values of the model: mean gains over random sets of others of every size."""
    m, merits = len(forecast.worth), np.zeros(len(forecast.worth))
    for a in range(m):
        others = [c for c in range(m) if c != a]
        for r in range(k):
            sets = list(combinations(others, r))
            gains = [model_value(forecast, (a, *s)) - model_value(forecast, s) for s in sets]
            merits[a] += np.mean(gains) / k
    return merits


@pytest.mark.parametrize("k", [1, 3, 6])
def test_merits_are_the_models_where_arms_lose_alike_and_near_it_elsewhere(k):
    """Approximated is one thing: what others lose when an arm joins them counts by their mean."""
    rng, m = np.random.default_rng(6), 6
    met, f = np.zeros(k), some_forecast(m, k, rng)
    for eta in (np.zeros(m), np.full(m, 0.05)):
        alike = f._replace(extra=eta)
        _, merits = expectations(f.worth, eta, f.gamma, met, f.worth)
        np.testing.assert_allclose(merits.value, listed_merits(alike, k), rtol=1e-12)
    for scale in (1.0, 0.1):
        eta = scale * f.extra
        _, merits = expectations(f.worth, eta, f.gamma, met, f.worth)
        off = merits.value - listed_merits(f._replace(extra=eta), k)
        # r others lose at most r gamma x_a each time an arm joins, so this at most is at stake
        most = f.gamma * f.worth * (k - 1) / 2 * np.abs(eta - eta.mean()).max()
        assert np.all(np.abs(off) <= most + 1e-15)
        assert np.abs(off).max() < 0.02 * merits.value.min()
    if k > 1:
        assert np.abs(off).max() > 1e-6  # it is an approximation


def test_derivatives_of_merits_are_those_by_finite_differences():
    """Exact in eta and, where eta is 0, in x and the curvature; others' x in the mean of them."""
    rng, m, k, h = np.random.default_rng(7), 6, 4, 1e-6
    f, met = some_forecast(m, k, rng), np.zeros(4)

    def value(x, eta, gamma):
        return expectations(x, eta, gamma, met, x)[1].value

    def slopes(x, eta, gamma, part):
        """Derivatives (m, m) in all x or all eta."""
        columns = []
        for step in h * np.eye(m):
            ends = [(x + s * step, eta) if part == "x" else (x, eta + s * step) for s in (1, -1)]
            columns.append((value(*ends[0], gamma) - value(*ends[1], gamma)) / (2 * h))
        return np.array(columns).T

    x, eta, gamma = f.worth, f.extra, f.gamma
    merits = expectations(x, eta, gamma, met, x)[1]
    by_eta = np.diag(merits.eta) + merits.all_eta[:, None]
    np.testing.assert_allclose(by_eta, slopes(x, eta, gamma, "eta"), atol=1e-8)

    none = np.zeros(m)
    merits = expectations(x, none, gamma, met, x)[1]
    by_x, found = slopes(x, none, gamma, "x"), np.diag(merits.x) + merits.all_x[:, None]
    np.testing.assert_allclose(np.diag(found), np.diag(by_x), rtol=1e-7)
    np.testing.assert_allclose(found.sum(axis=1), by_x.sum(axis=1), rtol=1e-7)
    np.testing.assert_allclose(found, by_x, atol=0.1 * np.abs(by_x).max())
    steeper = (value(x, none, gamma + h) - value(x, none, gamma - h)) / (2 * h)
    np.testing.assert_allclose(merits.gamma, steeper, rtol=2e-3)  # a step of a thousandth, one way
    assert np.all(merits.gamma < 0.0)


# ---- what is forecast of new arms ----


@pytest.mark.parametrize(("edges", "edge"), [((0.0, 0.001), 0.001), ((0.01, 0.1), 0.1)])
@pytest.mark.parametrize("worth", [1.0, 1e-9])
def test_sets_with_a_new_arm_are_not_taken_to_be_certain(worth, edges, edge):
    """A mean forecast at an end of the range has no variance, and its surprise would count most."""
    forecast = Forecast.blank(3, 2)._replace(worth=np.full(3, worth), edge=np.array([*edges, 0.3]))
    sums, looks = Sums.blank(3, 2), np.empty((1, 5))
    rows = np.array([[0, 1]]), np.array([[2]]), np.zeros((0, 2)), np.array([[0.5]])
    add_rewards(sums, Means.none(3, 2), forecast, 0.0, *rows, looks, True)
    assert looks[0, 3] == pytest.approx(1.0 / (edge * (1.0 - edge)), rel=1e-3)

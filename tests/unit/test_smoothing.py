"""Gains smoothed over sizes: against dense matrices, in both limits, and how honest errors are."""

import numpy as np
import pytest

from evenhand.learners import smoothing
from evenhand.learners.smoothing import BENDS


def smooth(gains, noise, share, left):
    return smoothing.smooth(gains, noise, np.arange(gains.shape[1]), share, left)


def contrast(gains, noise, share, steps, bend):
    """What is taken off each arm, relief, how likely and how odd it is, for one kappa^2."""
    arms = np.arange(gains.shape[1])
    return smoothing.contrasts(gains, noise, arms, share, steps, np.array([bend]))[:, :, 0]


def spline(steps):
    """Second differences Q (k, k - 2) and the matrix R of a cubic spline, by their definition."""
    k = len(steps) + 1
    q, r = np.zeros((k, k - 2)), np.zeros((k - 2, k - 2))
    for j in range(k - 2):
        q[j : j + 3, j] = 1 / steps[j], -1 / steps[j] - 1 / steps[j + 1], 1 / steps[j + 1]
        r[j, j] = (steps[j] + steps[j + 1]) / 3
        if j:
            r[j, j - 1] = r[j - 1, j] = steps[j] / 6
    return q, r


def some(k, n, seed):
    rng = np.random.default_rng(seed)
    gains, noise = rng.normal(size=(k, n)), rng.uniform(0.1, 3.0, (k, n))
    return gains, noise, rng.dirichlet(np.ones(k)), rng.uniform(0.2, 1.0, k - 1)


@pytest.mark.parametrize("k", [3, 4, 5, 9])
@pytest.mark.parametrize("bend", [0.0, 0.3, 40.0])
def test_one_arm_after_the_other_is_the_formula(k, bend):
    gains, noise, share, steps = some(k, 6, k)
    taken, relief, chance, far = contrast(gains, noise, share, steps, bend)
    q, r = spline(steps)
    for a in range(6):
        matrix = q.T @ np.diag(noise[:, a]) @ q + bend * r
        u, v = q.T @ gains[:, a], q.T @ (noise[:, a] * share)
        solved = np.linalg.solve(matrix, np.column_stack([u, v]))
        assert taken[a] == pytest.approx(v @ solved[:, 0])
        assert relief[a] == pytest.approx(v @ solved[:, 1])
        likely = -0.5 * (np.linalg.slogdet(matrix)[1] + u @ solved[:, 0])
        assert chance[a] == pytest.approx(likely)
        assert far[a] == pytest.approx(u @ solved[:, 0])


def test_without_bends_gains_lie_on_a_line_and_with_large_ones_nothing_is_taken():
    gains, noise, share, steps = some(5, 4, 1)
    places = np.append(0.0, steps.cumsum())
    taken, relief, _, _ = contrast(gains, noise, share, steps, 0.0)
    for a in range(4):
        line, cov = np.polyfit(places, gains[:, a], 1, w=noise[:, a] ** -0.5, cov="unscaled")
        assert share @ gains[:, a] - taken[a] == pytest.approx(share @ np.polyval(line, places))
        spread = np.array([share @ places, 1.0])  # a mean of points on a line is one of them
        left = share**2 @ noise[:, a] - relief[a]
        assert left == pytest.approx(spread @ cov @ spread)
    assert np.abs(contrast(gains, noise, share, steps, 1e12)[0]).max() < 1e-9


def curves(n, bend, noise, seed, left=0.7, k=6):
    """Gains of n arms that bend by chance, the same seen with noise, and its variances."""
    rng, steps = np.random.default_rng(seed), left ** np.arange(k - 1.0)
    fine = 200
    slope = np.zeros(n)
    gains = [np.zeros(n)]
    for step in steps:  # a line whose slope walks: what a cubic spline believes
        value = gains[-1].copy()
        for _ in range(fine):
            value += slope * step / fine
            slope += rng.normal(0.0, bend * np.sqrt(step / fine), n)
        gains.append(value)
    true = np.array(gains) + rng.normal(size=n)
    variance = noise * rng.uniform(0.5, 2.0, (k, n))
    return true, true + rng.normal(size=(k, n)) * np.sqrt(variance), variance


@pytest.mark.statistical
@pytest.mark.parametrize(("bend", "at_most"), [(0.0, 0.9), (1.0, 1.0), (8.0, 1.02)])
def test_errors_are_as_large_as_they_are_said_to_be_and_not_larger_than_before(bend, at_most):
    share = np.full(6, 1 / 6)
    true, seen, variance = curves(600, bend, 0.5, 2)
    taken, relief = smooth(seen, variance, share, 0.7)
    off = share @ (seen - true) - taken
    z = off / np.sqrt(share**2 @ variance - relief)
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=4 / np.sqrt(2 * 600))
    before = np.mean((share @ (seen - true)) ** 2)
    assert np.mean(off**2) < at_most * before


def test_who_takes_bent_gains_for_lines_is_too_sure():
    """The check above can fail."""
    share = np.full(6, 1 / 6)
    true, seen, variance = curves(600, 8.0, 0.01, 2)
    taken, relief, _, _ = contrast(seen, variance, share, 0.7 ** np.arange(5.0), 0.0)
    z = (share @ (seen - true) - taken) / np.sqrt(share**2 @ variance - relief)
    assert np.sqrt(np.mean(z**2)) > 2.0


def test_bends_are_averaged_over_arm_by_arm(monkeypatch):
    """A block of arms at a time; that a bend is not known counts as noise, as (11) says."""
    share = np.full(6, 1 / 6)
    _, seen, variance = curves(11, 1.0, 0.5, 5)
    steps = 0.7 ** np.arange(5.0)
    bends = smoothing.BENDS * smoothing._unit(variance, steps)
    each = np.array([contrast(seen, variance, share, steps, bend) for bend in bends])
    chance = np.exp(each[:, 2].sum(axis=1) - each[:, 2].sum(axis=1).max())
    chance[chance < smoothing.SLIGHT] = 0.0
    chance /= chance.sum()
    assert (chance > 0.05).sum() > 1
    taken = chance @ each[:, 0]
    unknown = chance @ (each[:, 0] - taken) ** 2
    monkeypatch.setattr(smoothing, "BLOCK", 4)
    monkeypatch.setattr(smoothing, "ODD", 0.0)  # no arm is left as it is
    found, relief = smooth(seen, variance, share, 0.7)
    np.testing.assert_allclose(found, taken, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(relief, chance @ each[:, 1] - unknown, rtol=1e-9, atol=1e-12)
    assert unknown.max() > 1e-6


def test_little_is_taken_where_there_is_little_noise():
    """So that merits are right for every game in the end, however gains change with size."""
    rng, share = np.random.default_rng(3), np.full(5, 0.2)
    wild = rng.normal(size=(5, 30))
    taken = [
        np.abs(smooth(wild, np.full((5, 30), noise), share, 0.8)[0]).max()
        for noise in (1e-2, 1e-4, 1e-6)
    ]
    assert taken[1] < 0.05 * taken[0]
    assert taken[2] < 0.05 * taken[1]


@pytest.mark.parametrize("m", [30, 1000])
def test_one_arm_that_bends_among_lines_is_left_as_it_is(m):
    """Whether or not it is among those that tell how much gains bend."""
    rng, share, steps = np.random.default_rng(6), np.full(5, 0.2), 0.8 ** np.arange(4.0)
    places = np.append(0.0, steps.cumsum())
    true = rng.normal(size=m) + places[:, None] * rng.normal(size=m)
    true[2, 1] += 0.1
    for scale, right in ((1e-3, False), (1e-7, True)):
        noise = scale * np.array([[1.0], [20.0], [20.0], [20.0], [1.0]]) * np.ones((5, m))
        seen = true + rng.normal(size=(5, m)) * np.sqrt(noise)
        taken, relief = smooth(seen, noise, share, 0.8)
        assert bool(taken[1] == 0.0) is right
        z = (share @ (seen - true) - taken) / np.sqrt(share**2 @ noise - relief)
        assert np.abs(z).max() < 5.0
        assert np.mean(taken == 0.0) < 0.1


def test_an_arm_of_much_noise_does_not_decide_how_much_others_bend():
    share = np.full(6, 1 / 6)
    true, seen, variance = curves(300, 2.0, 1e-3, 7)
    variance[:, 0] = 1e6
    taken, relief = smooth(seen, variance, share, 0.7)
    z = (share @ (seen - true) - taken) / np.sqrt(share**2 @ variance - relief)
    assert np.sqrt(np.mean(z[1:] ** 2)) == pytest.approx(1.0, abs=4 / np.sqrt(600))


def test_how_much_gains_bend_is_told_by_few_arms_as_by_many():
    share = np.full(6, 1 / 6)
    _, seen, variance = curves(3000, 2.0, 0.5, 4)
    all_taken, all_relief = smooth(seen, variance, share, 0.7)
    some = np.arange(0, 1000, 4)
    taken, relief = smoothing.smooth(seen, variance, some, share, 0.7)
    error = np.sqrt(share**2 @ variance[:, some] - relief)
    assert np.abs((taken - all_taken[some]) / error).max() < 0.5
    assert relief == pytest.approx(all_relief[some], rel=0.5)


def test_steps_that_vanish_do_no_harm():
    _, seen, variance = curves(20, 1.0, 0.5, 5, k=12)
    for left in (-0.3, 0.0, 1e-6, 1.0, 1.5):
        taken, relief = smooth(seen, variance, np.full(12, 1 / 12), left)
        assert np.isfinite(taken).all()
        assert np.all((relief > 0.0) & (relief < variance.sum(axis=0) / 144))
    assert BENDS[0] == 0.0

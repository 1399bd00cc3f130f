"""How much arms differ at each size: against plain formulas, likelihoods and worlds that say."""

import numpy as np
import pytest
from benchmarks import misfits

from evenhand import simulate
from evenhand.exchange import Rows
from evenhand.lab.readings import Reading, condense
from evenhand.learners import EvenHand, evidence, slopes
from evenhand.learners.evidence import Evidence
from evenhand.learners.model import Forecast


def forecast_of(worth, gamma, expected):
    """A forecast of which nothing but this is read."""
    m, k = len(worth), len(expected)
    blank = Forecast.blank(m, k)
    return blank._replace(worth=np.array(worth), gamma=gamma, expected=np.array(expected))


def some(k, m, seed, unseen=0.1):
    """Means, variances, a forecast and variances of worths."""
    rng = np.random.default_rng(seed)
    worth, gamma = rng.uniform(0.05, 0.4, m), 0.7
    size = np.arange(k)[:, None]
    expected = (1 - (1 - gamma * worth) * (1 - gamma * worth.mean()) ** size) / gamma
    noise = rng.uniform(0.5, 2.0, (k, m)) * 1e-3
    means = expected + rng.normal(0, 0.03, (k, m)) + 0.2 * (k - 1 - size) * (worth - worth.mean())
    gone = rng.random((k, m)) < unseen
    noise[gone], means[gone] = np.inf, expected[gone]
    return means, noise, forecast_of(worth, gamma, expected), rng.uniform(1e-5, 2e-3, m)


def naive(means, noise, forecast, unsure, believed):
    """The same arm by arm and size by size, without blocks."""
    k, m = means.shape
    sure, e = 1 / noise, forecast.expected
    left = (1 - forecast.gamma * e) / (1 - forecast.gamma * forecast.worth)
    known = 1 / (sure * left**2).sum(axis=0)
    v = left**2 * np.minimum(unsure, known)
    centre = (sure * e).sum(axis=1) / sure.sum(axis=1)
    level = (sure * (means - e)).sum(axis=1) / sure.sum(axis=1)
    score, information, moves = np.zeros(k), np.zeros((k, k)), np.zeros((m, k))
    gain = np.array([m / (m - r) / k for r in range(1, k)] + [1 / k])
    for a in range(m):
        c, s = e[:, a] - centre, means[:, a] - e[:, a] - level
        score += (c * s - v[:, a]) * sure[:, a]
        together = np.diag(c**2 * sure[:, a])
        follow = c * np.sqrt(v[:, a]) * sure[:, a]
        information += together - np.outer(follow, follow)
        information += np.outer(v[:, a] * sure[:, a], v[:, a] * sure[:, a])
        moves[a] = gain * (e[:, a] - e.mean(axis=1)) - (gain @ np.sqrt(v[:, a])) * follow
    moves -= moves.mean(axis=0)
    waves = slopes._waves(k).T
    found = []
    for scale in slopes.SCALES * believed:
        prior = scale**2 * waves @ waves.T
        matrix = np.eye(k) + prior @ information
        spread = np.linalg.solve(matrix, prior)
        log = 0.5 * score @ spread @ score - 0.5 * np.linalg.slogdet(matrix)[1]
        found.append((log, spread @ score, spread))
    logs = np.array([one[0] for one in found])
    chance = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = sum(p * b for p, (_, b, _) in zip(chance, found, strict=True))
    spread = sum(
        p * (c + np.outer(b - mean, b - mean)) for p, (_, b, c) in zip(chance, found, strict=True)
    )
    mean = mean / max(1, -mean.min())
    whole = gain @ (e - e.mean(axis=1, keepdims=True))
    along = (gain * mean) @ (e - e.mean(axis=1, keepdims=True))
    times = max(1, 1 + along @ whole / (whole @ whole))
    return moves @ mean, np.einsum("ai,ij,aj->a", moves, spread, moves), times, mean, chance


@pytest.mark.parametrize("k", [2, 3, 5, 12])
@pytest.mark.parametrize("block", [7, 1000])
def test_blocks_and_waves_are_the_plain_formula(k, block, monkeypatch):
    monkeypatch.setattr(slopes, "BLOCK", block)
    given = some(k, 30, k)
    moved, variance, times, _, _ = naive(*given, 0.8)
    found = slopes.slopes(*given, 0.8)
    np.testing.assert_allclose(found.moved, moved, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-7, atol=1e-14)
    assert found.times == pytest.approx(times)
    assert abs(moved).max() > 1e-3  # else nothing was compared
    assert found.moved.sum() == pytest.approx(0.0, abs=1e-9)


def test_sets_of_one_arm_alone_say_nothing_of_shapes():
    given = some(1, 5, 1)
    found = slopes.slopes(*given, 1.0)
    assert not found.moved.any()
    assert not found.variance.any()
    assert found.times == 1.0


def test_waves_are_a_random_walk_from_full_sets(monkeypatch):
    monkeypatch.setattr(slopes, "WAVES", 400)
    slopes._waves.cache_clear()
    waves = slopes._waves(6)  # five waves: as many as there are sizes but one
    time = np.arange(5, -1, -1) / 5
    np.testing.assert_allclose(waves.T @ waves, np.minimum.outer(time, time), atol=0.06)
    slopes._waves.cache_clear()
    monkeypatch.undo()
    waves = slopes._waves(50)
    assert len(waves) == slopes.WAVES
    assert 0.96 < (waves[:, 0] ** 2).sum() < 1.0
    np.testing.assert_array_equal(waves[:, -1], 0.0)


def posterior_of(y, v, spread, centre, b=None):
    """Means and variances of worths x, of y normal about x + b (x - centre) with variance v."""
    factor = np.ones(len(y)) if b is None else 1.0 + b
    sure = (factor[:, None] ** 2 / v).sum(axis=0) + 1 / spread**2
    seen = y + (factor - 1.0)[:, None] * centre
    mean = ((factor[:, None] * seen / v).sum(axis=0) + centre / spread**2) / sure
    return mean, 1 / sure


def worlds(b, n, seed, m=400, k=3, spread=0.1):
    """Posteriors of worths that add up, and what was seen of them: v smallest for full sets."""
    rng, centre = np.random.default_rng(seed), 0.5
    for _ in range(n):
        x = rng.normal(centre, spread, m)
        v = np.array([4.0, 4.0, 0.25])[:, None] * spread**2 * rng.uniform(0.5, 2.0, (k, m))
        y = x + np.asarray(b)[:, None] * (x - centre) + np.sqrt(v) * rng.normal(size=(k, m))
        mean, unsure = posterior_of(y, v, spread, centre)
        yield x, y, v, forecast_of(mean, 1e-9, np.tile(mean, (k, 1))), unsure


@pytest.fixture
def seen(monkeypatch):
    """Information and score of every walk that is found, in waves."""
    found, walk = [], slopes._walk
    monkeypatch.setattr(slopes, "_walk", lambda *given: found.append(given[:2]) or walk(*given))
    return found


def test_the_score_has_mean_0_where_the_model_is_right(seen):
    """And has not if what the model has seen is forgotten."""
    for forget in (False, True):
        for _, y, v, forecast, unsure in worlds(np.zeros(3), 40, 3):
            slopes.slopes(y, v, forecast, unsure * (not forget), 1.0)
    scores = np.array([score for _, score in seen]).reshape(2, 40, -1)
    error = scores.std(axis=1, ddof=1) / np.sqrt(40)
    assert (abs(scores[0].mean(axis=0)) < 3 * error[0]).all()
    assert (scores[1, :, 0].mean() > 10 * error[1, 0]).all()


def test_information_is_that_of_the_exact_likelihood(seen):
    """Worths integrated over: Fisher's, in closed form, of normal worths and rewards."""
    exact = np.zeros((3, 3))
    for _, y, v, forecast, unsure in worlds(np.zeros(3), 40, 3):
        slopes.slopes(y, v, forecast, unsure, 1.0)
        for a in range(v.shape[1]):
            inverse = np.linalg.inv(np.diag(v[:, a]) + 0.1**2)
            steps = [
                0.1**2 * (np.outer(one, np.ones(3)) + np.outer(np.ones(3), one))
                for one in np.eye(3)
            ]
            parts = [inverse @ step for step in steps]
            exact += [[0.5 * np.trace(p @ q) for p in parts] for q in parts]
    waves = slopes._waves(3)
    found = np.sum([information for information, _ in seen], axis=0)
    np.testing.assert_allclose(found, waves @ exact @ waves.T, rtol=0.05)


def test_the_score_is_the_slope_of_the_likelihood(seen):
    """Worths integrated over: by differences of the exact likelihood of one world."""
    _, y, v, forecast, unsure = next(worlds(np.zeros(3), 1, 5))

    def log_likelihood(b):
        factor, total = 1.0 + b, 0.0
        for a in range(y.shape[1]):
            matrix = np.diag(v[:, a]) + 0.1**2 * np.outer(factor, factor)
            off = y[:, a] - 0.5
            total -= 0.5 * (np.linalg.slogdet(matrix)[1] + off @ np.linalg.solve(matrix, off))
        return total

    e = forecast.expected
    score = (((e - 0.5) * (y - e) - unsure) / v).sum(axis=1)
    step = 1e-4
    for r in range(3):
        one = step * (np.arange(3) == r)
        by_hand = (log_likelihood(one) - log_likelihood(-one)) / (2 * step)
        assert score[r] == pytest.approx(by_hand, rel=1e-4)
    slopes.slopes(y, v, forecast, unsure, 1.0)  # which measures differences from their own mean
    np.testing.assert_allclose(seen[0][1], slopes._waves(3) @ score, rtol=0.1)


def test_information_is_never_negative(seen):
    """Not even where the model is said to know less of worths than the means do."""
    for seed in range(30):
        means, noise, forecast, unsure = some(4, 10, seed)
        found = slopes.slopes(means, noise, forecast, 1e3 * unsure, 1.0)
        assert np.isfinite(found.moved).all()
        size = np.linalg.eigvalsh(seen[-1][0])
        assert size[0] > -1e-9 * size[-1]
        e, sure = forecast.expected, 1 / noise
        follow = (e - e.mean()) * np.sqrt(1e3 * unsure) * sure  # as it would be, nothing capped
        whole = np.diag(((e - e.mean()) ** 2 * sure).sum(axis=1)) - follow @ follow.T
        assert np.linalg.eigvalsh(whole)[0] < 0.0


def test_no_size_has_arms_differ_the_other_way():
    waves = slopes._waves(4)
    down, up = np.array([-4.0, 0.0, 0.0]), np.array([4.0, 0.0, 0.0])
    assert (slopes._held(down, waves) @ waves).min() == pytest.approx(-1.0)
    np.testing.assert_array_equal(slopes._held(up, waves), up)
    np.testing.assert_array_equal(slopes._held(down / 8, waves), down / 8)


def test_errors_grow_with_differences_and_do_not_shrink():
    for b, grows in (([-0.5, -0.2, 0.0], False), ([0.8, 0.4, 0.0], True)):
        _, y, v, forecast, unsure = next(worlds(b, 1, 11))
        times = slopes.slopes(y, v, forecast, unsure, 1.0).times
        assert (times > 1.1) if grows else (times == 1.0)


def test_evidence_hands_over_variances_of_worths_and_takes_over_all_of_it(monkeypatch):
    """Single arms alone: then nothing is known of the sum, which would be mixed in."""
    sums, rng, given = Evidence(5, 3), np.random.default_rng(1), []
    orders = np.repeat(np.arange(5), 200)[:, None] * [1, 0, 0] - [0, 1, 1]
    rows = Rows(orders, np.ones((1000, 1), int), np.tile([1.0, 0.0, 0.0], (1000, 1)))
    sums.absorb(rows, (rng.random((1000, 1)) < 0.3).astype(float))
    moved, more = np.linspace(-0.1, 0.1, 5), np.linspace(0.0, 0.2, 5)

    def concluded(shape):
        monkeypatch.setattr(
            evidence, "slopes", lambda *arguments: given.append(arguments[3]) or shape
        )
        sums._found = None
        return sums.estimate()

    plain = concluded(slopes.Slopes(np.zeros(5), np.zeros(5), 1.0))
    found = concluded(slopes.Slopes(moved, more, 3.0))
    np.testing.assert_allclose(found.model, plain.model + moved)
    np.testing.assert_allclose(found.model_variance, 9.0 * plain.model_variance + more)
    np.testing.assert_allclose(given[0], 0.21 / 200, rtol=0.4)


def test_merits_move_to_where_they_would_be_found_with_the_right_shape():
    """Differences of merits are those of a model that is told the shape, and nearer to the true."""
    b = np.array([-0.4, -0.2, 0.0])
    gain = np.array([400 / 399, 400 / 398, 1.0]) / 3
    before, after, told = [], [], []
    for x, y, v, forecast, unsure in worlds(b, 20, 7):
        merit = (gain * (1 + b)).sum() * (x - x.mean())
        found = slopes.slopes(y, v, forecast, unsure, 1.0)
        e = forecast.worth
        best, _ = posterior_of(y, v, 0.1, 0.5, b)
        before.append(gain.sum() * (e - e.mean()) - merit)
        after.append(before[-1] + found.moved)
        told.append((gain * (1 + b)).sum() * (best - best.mean()) - merit)
    before, after, told = (float(np.sqrt(np.mean(np.square(one)))) for one in (before, after, told))
    assert after < 0.5 * (before + told)
    assert after < 1.1 * told


def claims(kind, n=6, seed=4):
    """Readings of worlds, played with mostly full pages."""
    found = []
    for replication in range(n):
        setting = kind(14, 4, np.random.default_rng([seed, replication]))
        learner = EvenHand(14, 4, full=0.95, seed=replication)
        simulate(learner, setting.game, 20_000, seed=replication)
        said = learner.estimate()
        ends = learner.intervals().T
        found.append(
            Reading(4, setting.known.merit, said.merit, said.stderr, learner.marginals, *ends)
        )
    return condense(found)


@pytest.mark.parametrize("kind", [misfits.pairs, misfits.team])
def test_full_pages_of_arms_that_need_each_other(kind, monkeypatch):
    """With slopes shares are right sooner and claims hold; without them neither."""
    with_them = claims(kind)
    monkeypatch.setattr(slopes, "SCALES", np.zeros(1))
    without = claims(kind)
    assert with_them.misplaced < 0.75 * without.misplaced
    assert with_them.rms < 1.4
    assert with_them.rms < 0.8 * without.rms


def test_arms_that_are_all_alike_stay_alike():
    """Where arms hardly differ as far as is known, next to nothing is known of slopes either."""
    errors = []
    for seed in range(3):
        rng, learner = np.random.default_rng(seed), EvenHand(30, 10, seed=seed)
        while learner.queries < 1500:
            batch = learner.ask(1500 - learner.queries)
            learner.tell(batch, (rng.random(batch.sizes.shape) < 0.3).astype(float))
        errors.append(learner.merit - 0.03)
    assert np.sqrt(np.mean(np.square(errors))) < 0.016

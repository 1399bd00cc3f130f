"""EvenHand: its identities by enumeration, its estimators against naive ones, its behaviour."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import sem

import evenhand
from evenhand.designs import ConditionalPoisson, Mixture
from evenhand.exchange import SetPlan
from evenhand.games import Bernoulli, Carrier, NoisyOr, SetFunction, additive
from evenhand.learners import EvenHand, evidence
from evenhand.learners.evidence import Evidence, Forecast
from evenhand.policy import clip_to_sum

M, K = 6, 3
RNG = np.random.default_rng(5)
VALUES = {s: RNG.random() for r in range(1, M + 1) for s in combinations(range(M), r)}  # any game
VALUES[()] = 0.0
GAME = SetFunction.per_set(lambda arms: VALUES[tuple(sorted(arms))], m=M)
MARGINALS = np.array([0.85, 0.75, 0.55, 0.4, 0.3, 0.15])


def mean_with(a, r):
    """Mean value of the r-sets that hold arm a, by listing them."""
    return np.mean([VALUES[s] for s in combinations(range(M), r) if a in s])


def test_merits_follow_from_the_mean_values_of_sets_with_an_arm():
    """The identity behind the weighted merits, against the definition."""
    sums = Evidence(M, K).sums
    sums.weighted[:, :, 0] = 1.0
    for r in range(1, K + 1):
        for a in range(M):
            sums.weighted[r - 1, a, 1] = mean_with(a, r)
    single = evidence.alone(sums.weighted[0])
    found, _ = evidence.weighted_merits(sums, single, np.zeros((K, M)))
    np.testing.assert_allclose(found, evenhand.kshapley(GAME, K), atol=1e-12)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_weighted_means_are_unbiased_whatever_the_forecast(r):
    """All r-sets, each counted by its probability: the sums are those of the expectation."""
    design = compensated(r)
    wild = Forecast(np.linspace(0.1, 0.9, M), 0.7, RNG.random((K, M)), np.zeros(K))
    # the mean of the forecast over r-sets with an arm must be its own: list them
    expected = wild.expected.copy()
    for a in range(M):
        sets = [s for s in combinations(range(M), r) if a in s]
        expected[r - 1, a] = np.mean([forecast_value(wild, s) for s in sets])
    wild = wild._replace(expected=expected)
    top, bottom = np.zeros(M), np.zeros(M)
    for s in combinations(range(M), r):
        order = np.zeros((1, K), np.int64)
        order[0, :r] = s
        chance = float(np.exp(design.log_prob([s])[0]))
        sets_with_an_arm = len(list(combinations(range(M - 1), r - 1)))
        weights = np.zeros((1, K))
        weights[0, :r] = design.marginals[list(s)] / (chance * sets_with_an_arm)
        sums = Evidence(M, K).sums
        evidence.absorb(sums, wild, order, np.array([[r]]), weights, np.array([[VALUES[s]]]))
        top += chance * sums.weighted[r - 1, :, 1]
        bottom += chance * sums.weighted[r - 1, :, 0]
    np.testing.assert_allclose(bottom, MARGINALS * r / K, atol=1e-9)  # a weight is 1 on average
    np.testing.assert_allclose(top / bottom, [mean_with(a, r) for a in range(M)], atol=1e-8)


def compensated(r):
    """The law of sets of r arms: a fifth uniform, the rest making up for it."""
    rest = (MARGINALS * r / K - 0.2 * r / M) / 0.8
    return Mixture(ConditionalPoisson.fit(rest), 0.2)


def forecast_value(forecast, members):
    """The forecast of a set, written out."""
    missed = np.prod([1 - forecast.gamma * forecast.worth[a] for a in members])
    return (1 - missed) / forecast.gamma


def test_drawn_weights_are_those_of_the_definition():
    shares = np.full(K, 1 / K)
    plan = SetPlan(0, np.arange(M), K, MARGINALS.copy(), shares, mixing=0.2)
    rows = plan.draw(150, np.random.default_rng(3))
    for order, (r,), w in zip(*rows, strict=True):
        s, design = order[:r], compensated(int(r))
        others = len(list(combinations(range(M - 1), r - 1)))
        chance = np.exp(design.log_prob([s])[0])
        np.testing.assert_allclose(w[:r], design.marginals[s] / (chance * others), rtol=1e-9)
        assert np.all(order[r:] == -1)
        assert not w[r:].any()


def test_mixing_reaches_every_set_and_moves_no_marginal():
    design = compensated(K)
    sets = np.array(list(combinations(range(M), K)))
    chances = np.exp(design.log_prob(sets))
    assert chances.sum() == pytest.approx(1.0)
    inside = (sets[:, :, None] == np.arange(M)).any(axis=1)
    np.testing.assert_allclose(chances @ inside, MARGINALS, atol=1e-9)  # mixing costs nothing
    assert chances.min() >= 0.2 / len(sets)


def test_clip_to_sum_keeps_bounds_proportions_and_the_sum():
    rng = np.random.default_rng(2)
    for _ in range(200):
        m = int(rng.integers(1, 30))
        scores = np.exp(rng.normal(size=m) * 4)
        low, high = np.sort(rng.random(2))
        total = rng.uniform(m * low, m * high)
        x = clip_to_sum(scores, low, high, total)
        assert x.sum() == pytest.approx(total, rel=1e-12)
        assert np.all((low <= x) & (x <= high))
        free = (low < x) & (x < high)
        np.testing.assert_allclose(x[free] / scores[free], np.median(x[free] / scores[free]))


def test_the_model_is_exact_for_noisy_or_without_noise():
    """Worths, curvature and lines of a noisy-OR observed exactly give its merits."""
    mu = np.linspace(0.1, 0.8, M)
    game = NoisyOr(mu)
    learner = EvenHand(M, K, seed=1)
    while learner.queries < 3000:
        batch = learner.ask()
        sets = np.zeros((len(batch.orders), M), np.bool_)
        for i, r in enumerate(batch.sizes[:, 0]):
            sets[i, batch.orders[i, :r]] = True
        learner.tell(batch, game.value(sets)[:, None])
    found = learner.evidence.estimate()
    assert found.forecast.gamma == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(found.model, game.kshapley(K), rtol=2e-3)


def error(game, k, horizon, seed):
    """Distance of the estimated policy from the fair one at the end of a run."""
    target = evenhand.fair_policy(np.maximum(evenhand.kshapley(game, k), 0.0), k)
    learner = EvenHand(game.m, k, seed=seed)
    run = evenhand.simulate(learner, game, horizon, target=target, seed=seed + 100)
    return np.abs(evenhand.fair_policy(np.maximum(run.merit, 0.0), k) - target).sum()


def check_fallen(early, late, part):
    """Late errors are below a part of the early ones by three standard errors."""
    margin = part * np.mean(early) - np.mean(late)
    assert margin > 3.0 * np.hypot(part * sem(early), sem(late))


def test_a_wrong_model_is_overruled(monkeypatch):
    """No plateau with a model that knows nothing but that all arms are equal."""
    game = Carrier(
        [[0], [1], [2], [3], [0, 1], [2, 3, 4]],
        [0.1, 0.2, 0.05, 0.1, 0.2, 0.3],
        m=5,
        noise=Bernoulli(),
    )
    monkeypatch.setattr(
        evidence, "lines_through", lambda sums, single, saturation: (np.full(5, 0.1), np.zeros(5))
    )
    early = [error(game, 3, 2000, s) for s in range(20)]
    late = [error(game, 3, 300_000, s) for s in range(8)]
    check_fallen(early, late, 0.3)  # a plateau would stay
    monkeypatch.setattr(evidence, "trust_in", lambda model, free, variance: (np.zeros(5), 0.0))
    assert error(game, 3, 20_000, 0) > 3 * np.mean(late)  # without the correction it stays wrong


def test_worthless_arms_are_found_and_cost_little():
    game = additive([0.0, 0.0, 0.0, 0.1, 0.15, 0.2, 0.2], noise=Bernoulli())
    early = [error(game, 3, 3000, s) for s in range(10)]
    late = [error(game, 3, 100_000, s) for s in range(8)]
    check_fallen(early, late, 0.5)
    learner = EvenHand(7, 3, seed=1)
    target = evenhand.fair_policy(game.kshapley(3), 3)
    evenhand.simulate(learner, game, 30_000, target=target, seed=2)
    assert learner.marginals[:3].max() < 0.1
    assert np.abs(learner.merit[:3]).max() < 0.01


def test_standard_errors_and_diagnostics_tell_the_truth():
    game = additive(np.linspace(0.05, 0.3, 5), noise=Bernoulli())
    z, curvature = [], []
    for seed in range(60):
        learner = EvenHand(5, 2, seed=seed)
        evenhand.simulate(learner, game, 4000, target=np.full(5, 0.4), seed=seed + 1)
        found = learner.estimate()
        z.append((learner.merit - game.kshapley(2)) / found.stderr)
        curvature.append(found.diagnostics.curvature)
    squares = np.mean(np.square(z), axis=1)  # 1 where the errors are as stated, a fifth allowed
    assert abs(squares.mean() - 1.0) < 0.2 + 3.0 * sem(squares)
    shown = learner.estimate().diagnostics
    assert shown.effective_sample_size.shape == (2, 5)
    counts = learner.evidence.weighted[0, :, 0]
    np.testing.assert_allclose(shown.effective_sample_size[0], counts, rtol=1e-6)
    assert np.all(shown.effective_sample_size[1] > 100)
    assert 1.0 <= shown.largest_weight < 50.0
    assert shown.size_shares.tolist() == pytest.approx([0.6, 0.4])
    assert np.all((shown.trust >= 0) & (shown.trust <= 1))
    # of an additive game it is 0; one learner in ten is off by 0.5 after so few rewards
    assert np.mean(curvature) + 3.0 * sem(curvature) < 0.3
    assert shown.mixing == pytest.approx((1 + 3960 / 5) ** (-1 / 3), rel=0.01)


@pytest.mark.slow
def test_intervals_hold_at_all_times_together():
    """Coverage of 95 % intervals looked at 20 times, over 200 replications and every arm."""
    game = Carrier([[0], [1], [2], [3], [0, 3]], [0.3, 0.2, 0.1, 0.1, 0.2], 4, noise=Bernoulli())
    merit, held = game.kshapley(2), []
    for seed in range(200):
        learner, rng = EvenHand(4, 2, seed=seed), np.random.default_rng(seed + 1000)
        inside = np.ones(4, np.bool_)
        for until in np.unique(np.geomspace(200, 6000, 20).astype(int)):
            while learner.queries < until:
                batch = learner.ask(int(until) - learner.queries)
                learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
            low, high = learner.intervals().T
            inside &= (low <= merit) & (merit <= high)
        held.append(inside)
    coverage = np.mean(held, axis=0)
    print("coverage", coverage, "mean width", (high - low).mean())
    assert np.all(coverage >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200))


def test_before_anything_is_told_nothing_is_claimed():
    learner = EvenHand(4, 2, seed=1)
    assert np.isnan(learner.merit).all()
    assert np.isnan(learner.estimate().stderr).all()
    np.testing.assert_array_equal(learner.intervals(), [[-1.0, 1.0]] * 4)
    np.testing.assert_allclose(learner.marginals, 0.5)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ([1, 1], ValueError, "sizes must hold k=3 shares, those of queries of 1..3 arms, got 2"),
        ([0, 0, 1], ValueError, r"got 0 for sets of 1: .* merits are not identifiable; give them"),
        ([1, 0, 1], ValueError, r"got 0 for sets of 2"),
        ([1, -1, 1], ValueError, r"sizes must be finite and >= 0, got sizes\[1\]=-1"),
        ("large", TypeError, "sizes must be a vector of real numbers"),
    ],
)
def test_bad_sizes_are_refused(sizes, error, message):
    with pytest.raises(error, match=message):
        EvenHand(5, 3, sizes=sizes, seed=1)


def test_sizes_are_asked_as_often_as_wanted():
    learner = EvenHand(5, 3, sizes=[1, 1, 6], seed=1)
    drawn = []
    while learner.queries < 4000:
        batch = learner.ask()
        drawn += batch.sizes[:, 0].tolist()
        learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    shares = np.bincount(drawn, minlength=4)[1:] / len(drawn)
    np.testing.assert_allclose(shares, [0.125, 0.125, 0.75], atol=0.03)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match="level must lie"):
        EvenHand(5, 3, seed=1).intervals(level)

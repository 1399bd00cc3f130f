"""EvenHand: its identities by enumeration, its estimators against naive ones, its behaviour."""

from itertools import combinations

import numpy as np
import pytest
from benchmarks import misfits
from scipy.stats import sem, t

import evenhand
from evenhand.designs import ConditionalPoisson, Mixture
from evenhand.exchange import Rows, SetPlan
from evenhand.games import Bernoulli, Carrier, NoisyOr, SetFunction, additive, shop
from evenhand.learners import EvenHand, inference, model
from evenhand.learners.evidence import Evidence
from evenhand.learners.free import free_merits
from evenhand.learners.model import Forecast, Kept, expectations
from evenhand.policy import Terms, clip_to_sum

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
    """The identity behind the free merits, against the definition; the sum from full sets alone."""
    sums = Evidence(M, K)
    sums.weighted[:, :, 0] = sums.singles[:, 0] = 1.0
    sums.singles[:, 1] = [mean_with(a, 1) for a in range(M)]
    for r in range(2, K + 1):
        sums.weighted[r - 2, :, 1] = [mean_with(a, r) for a in range(M)]
    blank = Forecast.blank(M, K)
    found = free_merits(*sums._means(blank), blank)
    merit = evenhand.kshapley(GAME, K)
    np.testing.assert_allclose(found.merit, merit, atol=1e-12)
    assert found.level == pytest.approx(merit.sum(), abs=1e-12)


def wild_forecast(rng):
    """A forecast far from everything here, of arms that lose at random, and sets half as full."""
    worth, extra = np.linspace(0.1, 0.9, M), rng.normal(0.0, 0.3, M)
    met = np.array([0.0, 0.6, 0.2])
    expected, _ = expectations(worth, extra, 0.7, met, worth)
    wild = Forecast.blank(M, K)._replace(worth=worth, extra=extra, gamma=0.7)
    return wild._replace(expected=expected, met=met)


@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("forecast", [Forecast.blank(M, K), wild_forecast(RNG)])
def test_weighted_means_are_unbiased_whatever_the_forecast(r, forecast):
    """All r-sets, each counted by its probability: the sums are those of the expectation."""
    design = compensated(r)
    top, bottom = np.zeros(M), np.zeros(M)
    for s in combinations(range(M), r):
        order = np.zeros((1, K), np.int64)
        order[0, :r] = s
        chance = float(np.exp(design.log_prob([s])[0]))
        sets_with_an_arm = len(list(combinations(range(M - 1), r - 1)))
        weights = np.zeros((1, K))
        weights[0, :r] = design.marginals[list(s)] / (chance * sets_with_an_arm)
        one = Evidence(M, K)
        one._use(forecast, inference.Hyper(0.5, 1.0, 0.01))
        one.absorb(Rows(order, np.array([[r]]), weights), np.array([[VALUES[s]]]))
        cells = one.weighted[r - 2] if r > 1 else one.singles
        top, bottom = top + chance * cells[:, 1], bottom + chance * cells[:, 0]
    np.testing.assert_allclose(bottom, MARGINALS * r / K, atol=1e-9)  # a weight is 1 on average
    np.testing.assert_allclose(top / bottom, [mean_with(a, r) for a in range(M)], atol=1e-8)


def compensated(r):
    """The law of sets of r arms: a fifth uniform, the rest making up for it."""
    rest = (MARGINALS * r / K - 0.2 * r / M) / 0.8
    return Mixture(ConditionalPoisson.fit(rest), 0.2)


def test_drawn_weights_are_those_of_the_definition():
    shares = np.full(K, 1 / K)
    plan = SetPlan(0, np.arange(M), K, MARGINALS.copy(), shares, np.full(K, 0.2))
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
    """Worths, losses and curvature of a noisy-OR observed exactly give its merits."""
    game = NoisyOr(np.linspace(0.1, 0.8, M))
    learner = EvenHand(M, K, seed=1)
    while learner.queries < 3000:
        batch = learner.ask()
        learner.tell(batch, values_of(game, batch))
    found = learner.evidence.estimate()
    assert found.forecast.gamma == pytest.approx(1.0, abs=1e-2)
    np.testing.assert_allclose(found.model, game.kshapley(K), rtol=5e-3)


def values_of(game, batch):
    """Rewards (n, 1) without noise."""
    sets = np.zeros((len(batch.orders), game.m), np.bool_)
    for i, r in enumerate(batch.sizes[:, 0]):
        sets[i, batch.orders[i, :r]] = True
    return game.value(sets)[:, None]


def errors(game, k, horizons, seed, **options):
    """Distance of the estimated policy from the fair one at some times of a run; the learner."""
    target = evenhand.fair_policy(np.maximum(evenhand.kshapley(game, k), 0.0), k)
    learner = EvenHand(game.m, k, seed=seed, **options)
    times = {"checkpoints": horizons, "target": target, "seed": seed + 100}
    run = evenhand.simulate(learner, game, horizons[-1], **times)
    merits = np.maximum(run.merit_curve, 0.0)
    return [np.abs(evenhand.fair_policy(merit, k) - target).sum() for merit in merits], learner


def check_fallen(found, part):
    """Late errors are below a part of the early ones of the same runs by three standard errors."""
    margins = [part * early - late for early, late in found]
    assert np.mean(margins) > 3.0 * sem(margins)


def test_a_wrong_model_is_overruled(monkeypatch):
    """No plateau with a model that knows nothing but that all arms are equal."""
    game = Carrier(
        [[0], [1], [2], [3], [0, 1], [2, 3, 4]],
        [0.1, 0.2, 0.05, 0.1, 0.2, 0.3],
        m=5,
        noise=Bernoulli(),
    )

    def blind(*what):
        expected, merits = expectations(*what)
        return expected, merits._replace(value=np.full(5, 0.1))

    monkeypatch.setattr(model, "expectations", blind)
    # not watched: what surprises a model that never learns moves with the policy
    found = [errors(game, 3, [200, 60_000], s, watch=False)[0] for s in range(8)]
    check_fallen(found, 0.5)  # a plateau would stay; by 1000 queries much of it is overruled
    monkeypatch.setattr(inference, "shrink", lambda apart, *_: (0.0 * apart, 0.0 * apart))
    # negative control: without the correction
    stuck, _ = errors(game, 3, [1000, 20_000], 0, watch=False)
    assert stuck[1] > 3.0 * np.mean(found, axis=0)[1]


def test_worthless_arms_are_found_and_cost_little():
    game = additive([0.0, 0.0, 0.0, 0.1, 0.15, 0.2, 0.2], noise=Bernoulli())
    # without watching, which takes chance for change once in some thirty such runs
    runs = (errors(game, 3, [1000, 30_000], s, watch=False) for s in range(6))
    found, learners = zip(*runs, strict=True)
    check_fallen(found, 0.6)
    for learner in learners:
        assert learner.marginals[:3].max() < 0.1
        assert np.abs(learner.merit[:3]).max() < 0.01


@pytest.fixture(scope="module")
def shops():
    """What learners say of small shops of rare sales: z of all arms, and intervals as time goes."""
    z, sides = [], []
    for world in range(12):
        game, rng = shop(12, np.random.default_rng(world)), np.random.default_rng(world + 1000)
        learner, merit = EvenHand(12, 3, seed=world), game.kshapley(3)
        for until in (300, 1000, 3000):
            while learner.queries < until:
                batch = learner.ask(until - learner.queries)
                learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
            low, high = learner.intervals().T
            sides.append(np.stack([merit - low, high - merit]))
        z.append((learner.merit - merit) / learner.estimate().stderr)
    return np.array(z), np.array(sides), learner


def is_honest(z):
    """Whether squares of z (worlds, arms) are 1 on average, within 0.3 and three errors of it."""
    squares = np.mean(np.square(z), axis=1)
    return abs(squares.mean() - 1.0) < 0.3 + 3.0 * sem(squares)


def test_standard_errors_tell_the_truth(shops):
    z = shops[0]
    assert is_honest(z)
    assert np.sum(np.abs(z) > 4.0) <= 1  # of 144; in 120 other worlds, 1440 arms, there was none
    assert not is_honest(2.0 * z)  # negative controls: errors half as large, or twice
    assert not is_honest(0.5 * z)


def test_intervals_hold(shops):
    """At three times together; each arm's may fail in a twentieth of the worlds."""
    sides = shops[1].reshape(-1, 3, 2, 12).min(axis=(1, 2))
    assert np.mean(sides > 0.0) >= 0.95
    width = shops[1].sum(axis=1)
    assert width[2::3].mean() < 0.5 * width[::3].mean()
    shown = width.reshape(-1, 3, 12).min(axis=1)
    assert np.mean(sides > 0.49 * shown) < 0.5  # negative control: a fiftieth as wide


def test_diagnostics_tell_how_merits_are_founded(shops):
    learner = shops[2]
    shown = learner.estimate().diagnostics
    assert shown.effective_sample_size.shape == (3, 12)
    np.testing.assert_array_equal(shown.effective_sample_size[0], learner.evidence.singles[:, 0])
    assert np.all(shown.effective_sample_size[1:] > 10)
    assert 1.0 <= shown.largest_weight < 50.0
    assert shown.size_shares.tolist() == pytest.approx([0.6, 0.2, 0.2])
    assert np.all((shown.trust >= 0) & (shown.trust <= 1))
    assert 0.0 < shown.curvature < 3.0
    assert shown.mixing == pytest.approx((1 + 2970 / 12) ** (-1 / 3), rel=0.02)


def test_the_curvature_is_found_where_most_sets_are_full(monkeypatch):
    """The best worths alone would say that worths add up: see the control."""

    def curvature(seed):
        game = shop(20, np.random.default_rng(seed))
        learner = EvenHand(20, 5, full=0.95, seed=seed)
        evenhand.simulate(learner, game, 3000, seed=seed)
        return learner.estimate().diagnostics.curvature

    found = [curvature(seed) for seed in range(8)]
    assert 0.7 < np.mean(found) < 1.8
    monkeypatch.setattr(inference, "_room", lambda *_: 0.0)
    assert np.mean([curvature(seed) for seed in range(8)]) < 0.6


def test_an_arm_that_brings_nearly_all_bounds_the_curvature(monkeypatch):
    """Beyond it the model contradicts itself: by far more curved, from fit to fit."""

    def played(seed):
        (game, known), learner = (
            misfits.star(14, 4, np.random.default_rng(seed)),
            EvenHand(14, 4, full=0.95, seed=seed),
        )
        evenhand.simulate(learner, game, 1000, seed=seed)
        said = learner.estimate()
        return said.diagnostics.curvature, *((said.merit - known.merit) / said.stderr)

    curvature, *z = np.array([played(seed) for seed in range(8)]).T
    assert 0.7 < curvature.mean() < curvature.max() < 1.8
    assert np.sqrt(np.mean(np.square(z))) < 1.3
    monkeypatch.setattr(inference, "_steepest", lambda worth, variance, centre: 0.95 / centre)
    assert max(played(seed)[0] for seed in range(8)) > 2.5


def test_the_curvature_is_bounded_by_the_mean_worth_and_by_what_the_worthiest_is_surely_worth():
    worth, variance = np.array([0.1, 0.7, 0.5]), np.array([0.0, 0.01, 0.0])
    assert inference._steepest(worth, variance, 0.4) == pytest.approx(0.95 / 0.5)  # 0.7 - 2 * 0.1
    assert inference._steepest(worth, 4.0 * variance, 0.6) == pytest.approx(0.95 / 0.6)


def test_where_most_arms_do_harm_a_few_that_do_not_are_known_as_well(monkeypatch):
    """Most worths are held at 0 then, and the scale is that of distances from there."""
    worth = np.append(0.5, np.full(9, -0.4))

    def off(seed):
        learner, rng = EvenHand(10, 3, rewards=(-3, 3), seed=seed), np.random.default_rng(seed)
        while learner.queries < 400:
            batch = learner.ask()
            held = np.where(batch.orders >= 0, worth[batch.orders], 0.0)
            sums = np.take_along_axis(held.cumsum(axis=1), batch.sizes - 1, axis=1)
            learner.tell(batch, sums + rng.normal(0.0, 0.2, sums.shape))
        return np.sqrt(np.mean((learner.merit - worth) ** 2))

    assert np.mean([off(seed) for seed in range(4)]) < 0.06
    weigh = inference.weigh_tails

    def anywhere(worth, start, square):  # negative control: most may be below 0
        centre, weights = weigh(worth + 10.0, start + 10.0, square)
        return centre - 10.0, weights

    monkeypatch.setattr(inference, "weigh_tails", anywhere)
    assert np.mean([off(seed) for seed in range(4)]) > 0.12


def told_alone(rewards):
    """Evidence of single arms with these rewards (m, n)."""
    m, n = rewards.shape
    found = Evidence(m, 1)
    orders = np.repeat(np.arange(m), n)[:, None]
    ones = np.ones((m * n, 1))
    found.absorb(Rows(orders, ones.astype(np.int64), ones), rewards.reshape(-1, 1))
    return found


def test_worths_of_single_arms_are_conjugate_means():
    """(n0 c + sum of rewards) / (n0 + n): prior rewards and own ones count alike.

    Of arms that are all where most are, a few more than by a normal law, for a narrower middle.
    """
    rewards = (np.random.default_rng(8).random((9, 30)) < 0.1).astype(float)
    told = told_alone(rewards)
    before, hyper = told.forecast, inference.Hyper(0.2, 0.7, 0.01)
    kept = Kept(told.orders.astype(np.int64), np.empty((0, 4)), np.zeros((9, 2)))
    sums = told.told, told.singles, np.zeros(9), told.sums, kept, told.sums
    found, _, after, *_ = inference.fit(*sums, before, hyper, 0.0)
    noise = after.noise[0] + after.noise[1] * 0.25  # that of the blank forecast, at 1/2
    nu = 5.0 * 2.0 ** np.arange(6)
    likely = t.pdf(0.0, nu) ** 9
    n0 = likely @ ((nu + 1) / nu) / likely.sum() * noise / (0.7 * 0.2**2)
    np.testing.assert_array_equal(after.own, 1.0)  # their mean says how they scatter
    expected = (n0 * 0.5 + rewards.sum(axis=1)) / (n0 + 30)  # all arms being at 1/2 before
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_scale_of_worths_is_that_of_equation_8():
    rewards = np.random.default_rng(8).random((9, 30)) < np.linspace(0.05, 0.6, 9)[:, None]
    told = told_alone(rewards.astype(float))
    start = told.forecast._replace(worth=np.linspace(0.1, 0.5, 9))
    before = inference.Hyper(0.3, 0.1, 0.01)
    kept = Kept(told.orders.astype(np.int64), np.empty((0, 4)), np.zeros((9, 2)))
    sums = told.told, told.singles, np.zeros(9), told.sums, kept, told.sums
    found, posterior, _, after, _ = inference.fit(*sums, start, before, 0.0)
    assert after.centre == pytest.approx(found.mean())
    square = before.spread * before.centre**2
    _, weights = inference.weigh_tails(start.worth, before.centre, square)
    free = (1.0 - weights * posterior.variances[0] / square).sum()
    most, weights = inference.weigh_tails(found, after.centre, before.spread * after.centre**2)
    squares = (weights * (found - most) ** 2).sum() / after.centre**2
    assert after.spread == pytest.approx((squares + 2 * 1.0**2) / (free + 2))
    assert np.ptp(weights) > 0.1  # else they would not matter


@pytest.mark.parametrize("beyond", [[], [0.11, 0.13], [0.7, 0.9]])
def test_most_arms_are_where_students_t_is_likeliest(beyond):
    """Of several t, each as likely as worths make it: the slope of its logarithm pulls on arms."""
    scale, nu = 0.03, inference.BELIEFS.tails * 2.0 ** np.arange(6)
    worth = np.append(np.random.default_rng(3).normal(0.05, 0.02, 15), beyond)
    found, weights = inference.weigh_tails(worth, worth.mean(), scale**2)
    log = t.logpdf((worth[:, None] - found) / scale, nu).sum(axis=0)
    chance = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    near = np.linspace(found - 0.02, found + 0.02, 3001)
    likely = t.logpdf((worth[:, None, None] - near[:, None]) / scale, nu).sum(axis=0) @ chance
    assert found == pytest.approx(near[likely.argmax()], abs=2e-4)
    step = 1e-6
    sides = worth + np.array([-step, step])[:, None]
    slope = np.diff(t.logpdf((sides[..., None] - found) / scale, nu) @ chance, axis=0)[0]
    pull = -weights * (worth - found) / scale**2
    np.testing.assert_allclose(pull, slope / (2 * step), rtol=1e-3, atol=1e-3)


def test_how_heavy_tails_are_the_worths_say():
    """An arm at four scales counts for little where tails are heavy, and fully where they are not.

    Both are as likely of few arms.
    """
    rng, far = np.random.default_rng(5), np.array([4.0])

    def last(others):
        return inference.weigh_tails(np.append(others, far), 0.0, 1.0)[1][-1]

    heavy, normal = last(rng.standard_t(5, 4000)), last(rng.normal(size=4000))
    assert heavy == pytest.approx(6 / (5 + 16), rel=0.1)
    assert normal == pytest.approx(1.0, rel=0.15)
    assert heavy < last(rng.normal(size=6)) < normal


def test_weak_arms_do_not_starve_beside_a_few_strong_ones(monkeypatch):
    """Chances like one over the rank: as far as a normal prior goes weak arms are as nothing."""

    def least(seed):
        game, known = misfits.tail(40, 6, np.random.default_rng(seed))
        learner = EvenHand(40, 6, full=0.95, seed=seed)
        evenhand.simulate(learner, game, 20_000, seed=seed)
        return (learner.marginals / evenhand.fair_policy(known.merit, 6)).min()

    shares = [least(seed) for seed in range(6)]
    assert np.mean(shares) > 0.2
    normal = inference.BELIEFS._replace(tails=1e9)
    monkeypatch.setattr(inference, "BELIEFS", normal)
    assert np.mean([least(seed) for seed in range(6)]) < 0.6 * np.mean(shares)


def test_an_arm_without_any_reward_falls_like_one_over_n_and_does_not_starve():
    rng, kept = np.random.default_rng(9), []
    for n in (50, 200, 800):
        rewards = (rng.random((10, n)) < 0.1).astype(float)
        rewards[0] = 0.0
        told = told_alone(rewards)
        for _ in range(10):  # as often as it may be fitted anew
            told.due, told._found = 0, None
            told.renew()
        found = told.estimate()
        kept.append([n * found.merit[0], n * np.sqrt(found.variance[0])])
    assert np.all((np.array(kept) > 0.15) & (np.array(kept) < 10.0))


@pytest.mark.parametrize("k", [1, 3])
def test_nothing_but_zeros_leave_room_for_one_reward(k):
    """After n zeros merits of 1/n per query are neither ruled out nor held to be likely."""
    learner = EvenHand(6, k, seed=1)
    while learner.queries < 1000:
        batch = learner.ask()
        learner.tell(batch, np.zeros(batch.sizes.shape))
    found = learner.estimate()
    assert np.all((found.merit > 0.0) & (found.merit < 5e-3))
    assert np.all((found.stderr > 1e-4) & (found.stderr < 5e-3))


REWARDS = {
    "zeros": lambda batch, rng: np.zeros(batch.sizes.shape),
    "ones": lambda batch, rng: np.ones(batch.sizes.shape),
    "constant": lambda batch, rng: np.full(batch.sizes.shape, 0.3),
    "mostly missing": lambda batch, rng: np.where(
        rng.random(batch.sizes.shape) < 0.9, np.nan, rng.random(batch.sizes.shape)
    ),
    "by size": lambda batch, rng: batch.sizes / 10.0,
}


@pytest.mark.parametrize("rewards", REWARDS.values(), ids=REWARDS.keys())
@pytest.mark.parametrize(
    ("m", "k", "late"),
    [(1, 1, 0), (2, 1, 0), (2, 2, 0), (4, 4, 0), (6, 3, 0), (2, 2, 200), (6, 3, 200)],
)
def test_numbers_stay_numbers(m, k, late, rewards):
    """Rewards without any scatter, few arms, rewards told at once or long after."""
    learner, rng, out = EvenHand(m, k, seed=1), np.random.default_rng(2), []
    while learner.queries < 400:
        out.append(learner.ask())
        while out and out[0].index[0] + late < learner.queries:
            batch = out.pop(0)
            learner.tell(batch, rewards(batch, rng))
    found = learner.estimate()
    assert np.isfinite(found.merit).all()
    assert np.isfinite(found.stderr).all()
    assert np.all(found.merit <= 1.0 + 1e-9 + 3.0 * found.stderr)
    np.testing.assert_allclose(found.marginals.sum(), k)
    assert np.isfinite(found.intervals).all()


@pytest.mark.parametrize("empty", [0.9, 1.0])
def test_arms_that_can_only_harm_are_no_reason_to_fail(empty):
    """Where nothing is worth more than the empty set, merits are negative and all are equal."""
    learner, rng = EvenHand(5, 2, empty=empty, seed=1), np.random.default_rng(1)
    while learner.queries < 300:
        batch = learner.ask()
        learner.tell(batch, rng.random(batch.sizes.shape) < 0.2)
    found = learner.estimate()
    assert np.all(found.merit < 0.0)
    assert np.isfinite(found.stderr).all()
    np.testing.assert_allclose(found.marginals, 0.4, atol=0.05)


def test_rewards_told_all_at_once_in_the_end_count_as_much():
    """All of them against a forecast that knows nothing."""
    game, k = shop(8, np.random.default_rng(1)), 4
    learner, rng = EvenHand(8, k, seed=1), np.random.default_rng(2)
    out = []
    while learner.queries < 6000:
        out.append(learner.ask())
    for batch in out:
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    found, merit = learner.estimate(), game.kshapley(k)
    assert np.abs((found.merit - merit) / found.stderr).max() < 4.0
    free = learner.evidence.estimate().free
    assert free.sum() == pytest.approx(merit.sum(), abs=0.1)


def test_an_arm_never_seen_has_the_worth_of_all_others_and_no_merit_to_show():
    game, learner, rng = shop(6, np.random.default_rng(3)), EvenHand(6, 3, seed=1), RNG
    while learner.queries < 1500:
        batch = learner.ask()
        told = game.pull(batch.orders, batch.sizes, rng)
        learner.tell(batch, np.where((batch.orders == 5).any(axis=1)[:, None], np.nan, told))
    assert np.isnan(learner.merit).tolist() == [False] * 5 + [True]
    found = learner.evidence.estimate()
    assert found.forecast.worth[5] == pytest.approx(found.hyper.centre, rel=0.25)
    assert np.isfinite(found.variance).all()
    assert found.variance[5] > found.variance[:5].max()
    assert learner.marginals[5] > 0.2  # so that it will be seen


@pytest.mark.slow
@pytest.mark.parametrize("full", [None, 0.9])
def test_intervals_hold_at_all_times_together(full):
    """Coverage of 95 % intervals looked at 20 times, over 200 replications and every arm."""
    game = Carrier([[0], [1], [2], [3], [0, 3]], [0.3, 0.2, 0.1, 0.1, 0.2], 4, noise=Bernoulli())
    merit, held = game.kshapley(2), []
    for seed in range(200):
        learner, rng = EvenHand(4, 2, full=full, seed=seed), np.random.default_rng(seed + 1000)
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


def test_full_is_the_share_of_full_sets_and_half_of_the_others_hold_one_arm(tmp_path):
    learner = EvenHand(8, 4, full=0.9, seed=1)
    np.testing.assert_allclose(learner.sizes, [0.05, 0.025, 0.025, 0.9], rtol=1e-12)
    np.testing.assert_allclose(EvenHand(3, 2, full=0.9, seed=1).sizes, [0.1, 0.9], rtol=1e-12)
    np.testing.assert_allclose(EvenHand(3, 1, full=0.9, seed=1).sizes, [1.0])
    evenhand.save(learner, tmp_path / "learner.npz")
    np.testing.assert_array_equal(evenhand.load(tmp_path / "learner.npz").sizes, learner.sizes)
    for wrong in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="full must lie"):
            EvenHand(8, 4, full=wrong, seed=1)
    with pytest.raises(ValueError, match="not both"):
        EvenHand(8, 4, full=0.9, sizes=[1, 1, 1, 1], seed=1)


@pytest.mark.parametrize("watch", ["no", 0, None])
def test_watching_is_on_or_off(watch):
    with pytest.raises(TypeError, match="watch must be True or False"):
        EvenHand(5, 2, watch=watch, seed=1)
    assert EvenHand(5, 2, watch=np.bool_(False), seed=1).watch is False


def test_a_plan_stays_until_merits_are_estimated_anew():
    rng, learner = np.random.default_rng(2), EvenHand(M, K, seed=1)
    numbers, renewed = [], []
    while learner.queries < 3000:
        announced, at = learner.marginals, learner.evidence.due
        batch = learner.ask()
        np.testing.assert_array_equal(announced, learner.plan.marginals)
        numbers.append(learner.plan.number)
        renewed.append(learner.evidence.due > at)
        learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
    np.testing.assert_array_equal(np.diff(numbers) > 0, renewed[1:])
    assert max(np.bincount(numbers)[-30:]) >= 3  # 1 % at a time, until there are 3 % more


@pytest.mark.parametrize(
    "change",
    [
        lambda learner: learner.learn([[0], [1, 2]], [1.0, 0.0], chances=[1 / M, 1 / 15]),
        lambda learner: learner.change_terms(Terms(caps={0: 0.1}, unit="shares")),
        lambda learner: learner.pause([3]),
    ],
)
def test_what_is_new_is_heeded_by_the_next_plan(change):
    rng, learner = np.random.default_rng(2), EvenHand(M, K, seed=1)
    while learner.queries < 2000 or not learner._more():  # in the middle of what the plan serves
        batch = learner.ask()
        learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
    before = learner.plan.number
    change(learner)
    announced = learner.marginals
    learner.ask(1)
    assert learner.plan.number == before + 1
    np.testing.assert_allclose(announced, learner.plan.marginals, rtol=1e-12)


def test_logs_do_not_make_a_plan_stay():
    """Merits that rest on a large log are not estimated anew for long: exploring shrinks still."""
    rng, learner = np.random.default_rng(3), EvenHand(M, K, seed=1)
    arms = rng.integers(0, M, 20_000)
    learner.learn(arms[:, None], [VALUES[(a,)] for a in arms.tolist()], np.full(20_000, 1 / M))
    while learner.queries < 400:
        batch = learner.ask()
        assert learner.plan.mixing == pytest.approx(learner._rate(), rel=0.05)
        learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))

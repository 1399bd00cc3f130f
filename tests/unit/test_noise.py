"""How much rewards scatter, and how far model and free merits are apart: against simulation."""

import numpy as np
import pytest
from benchmarks import company
from scipy.integrate import quad
from scipy.stats import norm, sem

from evenhand.exchange import Rows
from evenhand.exchange.snapshot import sealed
from evenhand.learners import EvenHand, discrepancy, evidence, inference
from evenhand.learners.discrepancy import shrink
from evenhand.learners.evidence import Evidence
from evenhand.learners.free import renoise
from evenhand.learners.intake import linearised
from evenhand.learners.noise import all_at_the_ends, both_ends, curve_of, louder, own_ratios


def scatter_of(q, e2, weight):
    """The sums that the curve is fitted to."""
    return np.array([(weight * x).sum() for x in (np.ones_like(q), q, q * q, e2, q * e2)])


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.02, 0.7), (0.05, 0.0), (0.0, 1.0), (1e-3, 0.1), (0.01, 1.3)]
)
def test_the_curve_is_recovered_from_scatter(alpha, beta):
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        q = rng.uniform(0.01, 0.25, 4000)
        variance = alpha + beta * q
        found.append(curve_of(scatter_of(q, variance * rng.chisquare(1, len(q)), 1 / variance)))
    # neither is let below 0, which lifts estimates of a 0 by less than their spread
    lift = 2.0 * np.std(found, axis=0) * (np.array([alpha, beta]) == 0.0)
    other = lift[::-1] * [0.25, 10.0]  # what lifts one lowers the other
    # four pseudo-rewards pull beta towards 1, by their share of the sum of q^2 / v
    pull = abs(1 - beta) / (q * q / variance).sum() * 4
    off = np.abs(np.mean(found, axis=0) - [alpha, beta])
    assert np.all(off < 4.0 * sem(found) + lift + other + [0.25 * pull, pull])


def weak_arms(rng, least):
    """Scatter of 0/1 rewards of weak arms, each held to be as good as it looked, but for a floor.

    Arms whose rewards were all 0 are held to be at the floor, and did not scatter about it.
    """
    mean, n = rng.beta(1.2, 25.0, 300), 40
    hits = rng.binomial(n, mean)
    x = np.maximum(hits / n, least)
    q = x * (1 - x)
    return n * q, n * q * q, hits * (1 - x) ** 2 + (n - hits) * x**2, n + 0 * q, q


def test_arms_whose_rewards_were_all_0_do_not_fool_the_curve():
    """Weights 1/v make beta a ratio of sums; 1/v^2, as for normal rewards, a mean of ratios."""
    rng, found, naive = np.random.default_rng(2), [], []
    for _ in range(20):
        nq, nqq, e2, n, q = weak_arms(rng, 1e-3)
        for into, power in ((found, 1), (naive, 2)):
            sums = [(x / q**power).sum() for x in (n, nq, nqq, e2, q * e2)]
            into.append(curve_of(np.array(sums))[1])
    assert np.mean(found) == pytest.approx(1.0, abs=0.05)
    assert np.mean(naive) < 0.9  # negative control: many arms say that nothing scatters


def test_without_scatter_the_curve_is_that_of_0_and_1():
    np.testing.assert_allclose(curve_of(np.zeros(5)), [1e-9, 1.0])


def ratios(rewards, mean, variance, noise):
    """Own ratios of arms (m, n) about known means."""
    e = rewards - mean[:, None]
    n = np.full(len(mean), float(rewards.shape[1]))
    return own_ratios(n, (e**2).sum(axis=1), (e**4).sum(axis=1), variance, noise)


@pytest.mark.parametrize("n", [20, 400])
def test_rare_rewards_of_0_and_1_keep_the_ratio_of_the_curve(n):
    """What is not shrunk away is chance: with these few rewards raw ratios are 0.5 to 2 off."""
    rng, kept = np.random.default_rng(3), []
    for _ in range(40):
        mean = rng.uniform(0.005, 0.03, 40)
        rewards = (rng.random((40, n)) < mean[:, None]).astype(float)
        variance = mean * (1 - mean)
        raw = ((rewards - mean[:, None]) ** 2).mean(axis=1) / variance
        own = ratios(rewards, mean, variance, np.array([1e-9, 1.0]))
        kept.append(np.std(own - 1) / np.std(raw - 1))
    assert np.std(raw) > 0.2
    assert np.mean(kept) < 0.15


def test_nothing_but_zeros_say_nothing_about_ratios():
    """All surprises are tiny then, and would say that ratios are known."""
    mean = np.full(10, 0.01)
    own = ratios(np.zeros((10, 50)), mean, mean * (1 - mean), np.array([1e-9, 1.0]))
    np.testing.assert_allclose(own, 1.0, atol=0.3)
    # negative control: a curve that says rewards are steady is believed
    own = ratios(np.zeros((10, 50)), mean, mean * (1 - mean), np.array([1e-9, 0.0]))
    assert own.max() < 0.1


def test_steady_ratios_are_found():
    rng, m, n = np.random.default_rng(4), 30, 200
    truth = np.exp(rng.normal(0.0, 0.7, m))
    rewards = 0.4 + np.sqrt(0.01 * truth)[:, None] * rng.normal(size=(m, n))
    own = ratios(rewards, np.full(m, 0.4), np.full(m, 0.01), np.array([0.01, 0.0]))
    off = np.log(own / truth)
    assert np.sqrt(np.mean(off**2)) < 1.3 * np.sqrt(2 / n)  # as good as a variance of n can be
    few = ratios(rewards[:, :3], np.full(m, 0.4), np.full(m, 0.01), np.array([0.01, 0.0]))
    raw = np.square(rewards[:, :3] - 0.4).mean(axis=1) / 0.01
    assert np.all(np.abs(few - 1) <= np.abs(raw - 1))  # with few rewards they are shrunk


def fitted_mixture(apart, variance):
    """Scales and shares by plain expectation maximisation, one difference at a time."""
    low = 0.1 * np.sqrt(variance.min())
    high = 2.0 * np.sqrt(max((apart**2 - variance).max(), 64 * low**2))
    scales = [0.0, low]
    while scales[-1] < high:
        scales.append(scales[-1] * discrepancy.STEP)
    share = np.full(len(scales), 1 / len(scales))
    for _ in range(discrepancy.TURNS):
        counts = np.zeros(len(scales))
        for d, v in zip(apart, variance, strict=True):
            chance = share * norm.pdf(d, 0.0, np.sqrt(np.square(scales) + v))
            counts += chance / chance.sum()
        share = counts / counts.sum()
    return np.array(scales), share


def integrated(d, v, scales, share):
    """Mean and variance of what lies behind d, by integrating its posterior density."""
    atom = share[0] * norm.pdf(d, 0.0, np.sqrt(v))

    def density(t, power):
        prior = (share[1:] * norm.pdf(t, 0.0, scales[1:])).sum()
        return t**power * prior * norm.pdf(d, t, np.sqrt(v))

    wide = abs(d) + 10 * np.sqrt(v)
    moments = [
        sum(quad(density, a, b, args=(p,), limit=200)[0] for a, b in ((-wide, 0), (0, wide)))
        for p in range(3)
    ]
    mean = moments[1] / (moments[0] + atom)
    return mean, moments[2] / (moments[0] + atom) - mean**2


def test_shrinking_is_the_posterior_under_the_fitted_mixture():
    rng = np.random.default_rng(5)
    variance = rng.uniform(0.5, 2.0, 12)
    apart = np.where(np.arange(12) < 4, 5.0, 0.0) * rng.normal(size=12)
    apart += np.sqrt(variance) * rng.normal(size=12)
    scales, share = fitted_mixture(apart, variance)
    expected = [integrated(d, v, scales, share) for d, v in zip(apart, variance, strict=True)]
    np.testing.assert_allclose(np.transpose(shrink(apart, variance)), expected, rtol=1e-5)


def test_where_nothing_is_apart_little_moves():
    rng = np.random.default_rng(6)
    variance = rng.uniform(0.5, 2.0, 40)
    moved, more = shrink(np.sqrt(variance) * rng.normal(size=40), variance)
    assert np.abs(moved).max() < 0.2
    assert more.max() < 0.15
    moved, _ = shrink(np.zeros(3), np.ones(3))
    assert not moved.any()


def test_one_arm_far_off_moves_alone():
    rng = np.random.default_rng(7)
    apart = 0.5 * rng.normal(size=40)
    apart[3] = 12.0
    moved, more = shrink(apart, np.ones(40))
    assert moved[3] == pytest.approx(12.0, rel=0.05)
    assert more[3] == pytest.approx(1.0, rel=0.2)  # all of the noise of the free one
    assert np.abs(np.delete(moved, 3)).max() < 0.1
    all_off, _ = shrink(np.full(40, 4.0), np.ones(40))  # where all are, all move
    assert all_off.min() > 3.0


@pytest.mark.parametrize("wrong", [0.0, 0.7, 3.0])
def test_what_is_claimed_of_differences_is_true_on_average(wrong):
    """Where a fifth of the arms is off, at scales from none to large; one too sure is found out."""
    rng, z = np.random.default_rng(8), []
    for _ in range(200):
        off = wrong * rng.normal(size=30) * (rng.random(30) < 0.2)
        moved, more = shrink(off + rng.normal(size=30), np.ones(30))
        z.append((moved - off) / np.sqrt(more + 0.05))  # 0.05 for what the model is unsure of
    rms = np.sqrt(np.mean(np.square(z)))
    assert rms < 1.2
    assert 2 * rms > 1.2 or wrong == 0.0  # half the errors claimed would not pass


def test_answers_hardly_depend_on_the_step_between_scales(monkeypatch):
    apart = np.array([0.1, -0.5, 3.0, 1.0, -6.0, 0.2])
    once = shrink(apart, np.ones(6))[0]
    monkeypatch.setattr(discrepancy, "STEP", np.sqrt(2.0))
    np.testing.assert_allclose(shrink(apart, np.ones(6))[0], once, atol=0.25)


def scattered():
    """Variances of weighted means as they are kept, over those that the forecast gives all sets."""
    m, k, n, rng = 8, 3, 6000, np.random.default_rng(11)
    worth = rng.uniform(0.1, 0.3, m)
    sizes = rng.integers(1, k + 1, (n, 1))
    orders = np.where(np.arange(k) < sizes, rng.permuted([np.arange(m)] * n, axis=1)[:, :k], -1)
    rewards = (worth[orders] * (orders >= 0)).sum(axis=1) + 0.01 * rng.normal(size=n)
    found = Evidence(m, k)
    for part in np.array_split(np.arange(n), 300):
        rows = Rows(orders[part], sizes[part], (orders[part] >= 0).astype(float))
        found.absorb(rows, rewards[part, None])
        found.renew()
    large = sizes[:, 0] > 1
    _, kept = linearised(
        orders[large], rewards[large].astype(np.float32), found.forecast, found.low
    )
    naive = np.zeros((k - 1, m))
    for order, look in zip(orders[large], kept.looks, strict=True):
        members = order[order >= 0]
        naive[len(members) - 2, members] += 1.0 / look[k + 1]
    return found.weighted[:, :, 3] / naive


def test_variances_of_weighted_means_go_with_what_noise_is_known_to_be(monkeypatch):
    np.testing.assert_allclose(scattered(), 1.0, atol=0.25)
    # negative control: as they were when sets were told, the first few sets would be all there is
    monkeypatch.setattr(evidence, "renoise", lambda *given: None)
    assert np.median(scattered()) > 3.0


def shares_of_nothing(full, low, seed=2):
    """What twelve arms are given, relative to an even share, where no reward but 0 ever comes."""
    learner = EvenHand(12, 3, full=full, rewards=(low, 1), seed=seed)
    while learner.queries < 6000:
        batch = learner.ask()
        learner.tell(batch, np.zeros(batch.sizes.shape))
    return learner.marginals / (3 / 12)


@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("full", [None, 0.95])
def test_where_nothing_ever_comes_all_arms_are_alike(monkeypatch, full, low):
    np.testing.assert_allclose(shares_of_nothing(full, low), 1.0, atol=0.05)
    # negative control: as if it were known how little such rewards scatter; where most pages are
    # full it takes some runs until rounding does harm
    monkeypatch.setattr(inference, "all_at_the_ends", lambda singles, low: False)
    shares = np.array([shares_of_nothing(full, low, seed) for seed in range(2, 7)])
    assert np.abs(shares - 1.0).max() > 0.5


@pytest.mark.parametrize("low", [0.0, -0.3])
def test_rewards_are_binary_until_one_is_not(low):
    y = np.array([0.0, 1.0, 1.0, 0.0, 0.0]) + low
    sums = np.array([[np.sum(part**p) for p in range(5)] for part in (y[:2], y[2:])])
    assert all_at_the_ends(sums, low)
    assert both_ends(sums, low)
    for end in (low, low + 1.0):
        same = np.zeros((2, 5))
        for _ in range(1000):  # as they come: sums of many are rounded
            same += end ** np.arange(5.0)
        assert all_at_the_ends(same, low)
        assert not both_ends(same, low)
    assert not all_at_the_ends(np.zeros((2, 5)), low)  # nothing is known
    nothing = np.array([[3.0, 0.0, 0.0, 0.0, 0.0]] * 2)  # which may lie between the ends
    assert not both_ends(nothing, low)
    assert not both_ends(nothing, low - 0.4)
    sums[1] += (0.9 + low) ** np.arange(5)
    assert not all_at_the_ends(sums, low)
    assert not both_ends(sums, low)


def test_binary_rewards_scatter_at_least_as_their_means_say():
    """All of them together; a curve that says more is left as it is."""
    q, v = np.array([0.05, 0.1, 0.2]), 0.1
    for squares in (np.zeros(3), 0.5 * q, 2.0 * q, np.full(3, 0.3)):
        scatter = scatter_of(q, squares, 1 / v)
        alpha, beta = plain = curve_of(scatter)
        found = curve_of(scatter, binary=True)
        fitted = 3 * alpha + beta * q.sum()
        np.testing.assert_allclose(found, max(1.0, q.sum() / fitted) * plain, atol=1e-8)


def claims(worlds):
    """Errors over claimed errors, of arms that are quiet alone."""
    found = []
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        (game, known), learner = company.quiet(12, rng), EvenHand(12, 4, seed=seed)
        while learner.queries < 3000:
            batch = learner.ask()
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        said = learner.estimate()
        found.append((said.merit - known.merit) / said.stderr)
    return np.sqrt(np.mean(np.square(found)))


def test_arms_that_are_quiet_alone_do_not_make_sure_of_larger_sets(monkeypatch):
    assert claims(12) < 1.0
    # negative control: noise of sets as that of their arms alone
    monkeypatch.setattr(inference, "louder", lambda *given: 1.0)
    assert claims(8) > 3.0


def test_larger_sets_scatter_as_they_do_and_never_less_than_their_arms():
    own, held, noise = np.array([0.01, 0.03, 0.2]), np.array([3.0, 1.0, 1.0]), np.array([0.1, 2.0])
    q, before = np.array([0.01, 0.1, 0.2]), np.array([1.0, 0.2, 30.0])  # curves of other times
    member = (held @ own) / 5.0  # the mean member's ratio, by what sets expect of each
    for factor in (7.0, 0.5):
        squares = factor * member * (noise[0] + noise[1] * q)
        found = louder(own, held, noise, scatter_of(q, squares, 1 / before))
        assert found == pytest.approx(max(1.0, factor))
    assert louder(own, np.zeros(3), noise, np.zeros(5)) == 1.0  # no larger sets yet


def test_the_factor_is_that_of_larger_sets_alone():
    rng, m = np.random.default_rng(6), 6
    told = Evidence(m, 3)
    sizes = np.repeat([1, 2, 3], 200)[:, None]
    orders = np.array([rng.permutation(m)[:3] for _ in sizes])
    orders[np.arange(3) >= sizes] = -1
    rewards = np.where(sizes > 1, rng.uniform(0.0, 0.6, sizes.shape), 0.1)
    told.absorb(Rows(orders, sizes, (orders >= 0).astype(float)), rewards)
    found = told.estimate()
    alpha, beta, factor = found.forecast.noise
    assert factor > 10.0
    assert found.forecast.own.max() < 0.3  # arms are as quiet as they are
    sums = np.ones((2, m, 4))  # variances of weighted means follow it
    renoise(sums, found.forecast, found.forecast._replace(noise=np.array([alpha, beta, 1.0])), 0.0)
    np.testing.assert_allclose(sums[:, :, 3], factor)


def test_what_sets_expect_of_their_arms_is_what_the_factor_is_compared_with(monkeypatch):
    seen = []
    keep = inference.louder
    monkeypatch.setattr(inference, "louder", lambda *given: seen.append(given) or keep(*given))
    told = Evidence(3, 2)
    orders = np.array([[0, -1], [1, -1], [2, -1], [0, 1], [0, 2], [0, 1]])
    sizes = np.array([[1], [1], [1], [2], [2], [2]])
    told.absorb(Rows(orders, sizes, np.ones((6, 2))), np.array([[0.2], [0.1], [0.1]] + [[0.3]] * 3))
    worth = told.forecast.worth
    told.estimate()
    np.testing.assert_allclose(seen[0][1], worth * [3, 2, 1])


def noise_of_0_and_1(seed):
    """Ratios of arms, and the factor of larger sets, where every reward is 0 or 1."""
    rng = np.random.default_rng(seed)
    told, worth = Evidence(10, 3), rng.beta(1.2, 12.0, 10)
    sizes = rng.integers(1, 4, (300, 1))
    orders = rng.permuted([np.arange(10)] * 300, axis=1)[:, :3]
    orders[np.arange(3) >= sizes] = -1
    means = 1.0 - np.where(orders >= 0, 1.0 - worth[orders], 1.0).prod(axis=1, keepdims=True)
    rewards = (rng.random((300, 1)) < means).astype(float)
    told.absorb(Rows(orders, sizes, (orders >= 0).astype(float)), rewards)
    found = told.estimate().forecast
    return np.append(found.own, found.noise[2])


def test_of_rewards_of_0_and_1_the_mean_says_how_they_scatter(monkeypatch):
    assert all((noise_of_0_and_1(seed) == 1.0).all() for seed in range(5))
    monkeypatch.setattr(inference, "both_ends", lambda *given: False)  # negative control
    assert any((noise_of_0_and_1(seed) != 1.0).any() for seed in range(5))


def spread_of_shares(full):
    """Largest over smallest share of arms all alike: alone nothing, any two or more 0.2."""
    found = []
    for seed in range(3):
        learner, rng = EvenHand(20, 5, full=full, seed=seed), np.random.default_rng(seed + 50)
        game = company.together(20, 5).game
        while learner.queries < 20_000:
            batch = learner.ask()
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        found.append(learner.marginals.max() / learner.marginals.min())
    return np.median(found)


@pytest.mark.parametrize("full", [None, 0.95])
def test_arms_that_bring_something_in_company_alone_are_not_told_apart(monkeypatch, full):
    assert spread_of_shares(full) < 2.5
    # negative control: as if zeros of single arms said how larger sets scatter
    monkeypatch.setattr(inference, "louder", lambda *given: 1.0)
    assert spread_of_shares(full) > 4.0


def test_files_from_before_larger_sets_had_a_factor_are_read():
    learner = EvenHand(6, 3, seed=1)
    for _ in range(20):
        batch = learner.ask(20)
        learner.tell(batch, 0.1 * batch.sizes)
    content = learner.snapshot()
    content.pop("checksum")
    noise = content["arrays"]["evidence.noise"]
    content["arrays"]["evidence.noise"] = noise[:2]
    early = EvenHand.restore(sealed(content))
    np.testing.assert_array_equal(early.evidence.noise, [*noise[:2], 1.0])
    content["arrays"]["evidence.noise"] = noise[:1]
    with pytest.raises(ValueError, match="must hold two numbers and a factor"):
        EvenHand.restore(sealed(content))

"""The band: its lemmas by listing all sets, its sums against naive ones, what it holds back."""

import math
from itertools import combinations, product

import numpy as np
import pytest

import evenhand
from evenhand.exchange import Plan, Rows, SetPlan
from evenhand.games import SetFunction, additive, synthetic
from evenhand.learners import EvenHand
from evenhand.learners.band import BAND, Band, deviation, scaled_forecast, totals
from evenhand.learners.proportional import uniform_shares
from evenhand.policy import clip_to_sum
from evenhand.randomness.streams import stream
from evenhand.theory import band_weight, even_hand_bound, exploring, largest_term, size_price

CASES = [(6, 3, 0.0), (5, 4, 0.0), (4, 1, 0.0), (7, 2, -0.4), (5, 5, -1.0), (6, 5, -0.2)]


def any_game(m, k, low, rng):
    """A game without any structure, its values by set, and its merits."""
    values = {s: low + rng.random() for r in range(1, k + 1) for s in combinations(range(m), r)}
    values[()] = 0.0
    game = SetFunction.per_set(lambda arms: values.get(tuple(sorted(arms)), 0.0), m=m)
    return values, evenhand.kshapley(game, k)


def any_plan(m, k, rng, number=0, sizes=None):
    mixing = float(rng.uniform(0.1, 0.5))
    low, high = mixing * k / m, 1.0 - mixing * (1.0 - k / m)
    marginals = clip_to_sum(np.exp(rng.normal(size=m)), low, high, k)
    worth = rng.uniform(0.0, 1.5, m).astype(np.float32)
    sizes = np.arange(1.0, k + 1.0) / (k * (k + 1) / 2) if sizes is None else sizes
    # as without terms, and as on terms
    uniform = uniform_shares(sizes, mixing) if rng.random() < 0.5 else np.full(k, mixing)
    law = (number, np.arange(m), k, marginals, sizes, uniform)
    return SetPlan(*law, worth, rng.uniform(0.0, 2.0))


def weight(plan):
    """What a row of a plan counts, from the formulas of Sigma and R."""
    m, k, sizes = plan.m, plan.k, plan.sizes
    usual = np.minimum(sizes, np.arange(1, k + 1) @ sizes / (k * np.arange(1, k + 1)))

    def sigma_and_reach(part):
        parts = [m / ((m - r) * r * part[r - 1]) for r in range(1, k)] + [1 / (k * part[-1])]
        reach = [1 / (min(r, m - r) * part[r - 1]) for r in range(1, k)] + [1 / (k * part[-1])]
        return sum(parts), m / k * max(reach)

    (sigma, reach), (own, highest) = map(sigma_and_reach, (usual, sizes * plan.uniform))
    return min(sigma / own, reach / highest)


def every_row(plan):
    """All rows that a plan can draw, with their chances."""
    for r in range(1, plan.k + 1):
        sets, law = np.array(list(combinations(range(plan.m), r))), plan.law(r)
        for s, log, w in zip(sets, law.log_prob(sets), law._weights(sets), strict=True):
            order, weights = np.full((1, plan.k), -1), np.zeros((1, plan.k))
            order[0, :r], weights[0, :r] = s, w
            chance = plan.sizes[r - 1] * math.exp(log)
            yield tuple(s.tolist()), chance, Rows(order, np.array([[r]]), weights)


def mean_and_squares(plan, values, told_with, low):
    """Expected sum of one row's terms (with the forecast's part), of its squares, largest term."""
    mean, squares, largest = np.zeros(plan.m), np.zeros(plan.m), 0.0
    for s, chance, rows in every_row(plan):
        band = Band(plan.m, plan.k, plan.sizes, low)
        band.absorb(told_with, rows, np.array([[values[s]]]))
        terms, second = totals(band.sums)
        np.testing.assert_allclose(second, terms**2, rtol=1e-9, atol=1e-12)
        mean += chance * (terms + band.base)
        squares += chance * second
        largest = max(largest, float(np.abs(terms).max()))
    return mean, squares, largest


@pytest.mark.parametrize(("m", "k", "low"), CASES)
def test_terms_are_unbiased_and_bounded_for_any_game(m, k, low):
    """Lemma 1, by listing all sets."""
    rng = np.random.default_rng(10 * m + k)
    values, merit = any_game(m, k, low, rng)
    plan, later = any_plan(m, k, rng), any_plan(m, k, rng)
    mean, squares, largest = mean_and_squares(plan, values, plan, low)
    g = weight(plan)
    assert g >= plan.mixing - 1e-12
    np.testing.assert_allclose(mean, g * merit, atol=1e-9)
    assert largest <= largest_term(m, plan.sizes)
    if k < m:
        assert np.all(squares <= g * m / k**2 * size_price(m, plan.sizes))
        # with another plan's weight, marginals and forecast the mean is wrong: the check can fail
        wrong, _, _ = mean_and_squares(plan, values, later, low)
        assert np.abs(wrong / weight(later) - merit).max() > 0.01


@pytest.mark.parametrize("low", [0.0, -0.3, -1.0])
@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0, 6.0])
def test_forecasts_are_brought_into_the_range_of_rewards(low, gamma):
    m, k = 6, 4
    worth = np.random.default_rng(3).uniform(-0.5, 1.5, m)
    held, curvature, scale, merit = scaled_forecast(worth, gamma, k, low)

    def forecast(arms):
        value = 0.0
        for a in arms:
            value += held[a] * (1.0 - curvature * value)
        return scale[len(arms) - 1] * value if 0 < len(arms) <= k else 0.0

    reach = [forecast(s) for r in range(1, k + 1) for s in combinations(range(m), r)]
    assert low - 1e-9 <= min(reach)
    assert max(reach) <= low + 1.0 + 1e-9
    if low == -0.3:
        assert scale.min() < 1.0  # otherwise the factors were not tested
    expected = evenhand.kshapley(SetFunction.per_set(forecast, m=m), k)
    np.testing.assert_allclose(merit, expected, atol=1e-8)


def naive(band, told):
    """Centre and sums of squares, from the definition of the terms."""
    m, k = band.m, band.k
    mass, total, squares = 0.0, np.zeros(m), np.zeros(m)
    for plan, s, reward in told:
        r = len(s)
        held, gamma, scale, merit = scaled_forecast(plan.worth.astype(float), plan.gamma, k, 0.0)
        b = scale[r - 1] * (1.0 - np.prod([1.0 - gamma * held[a] for a in s])) / gamma
        chance = math.exp(plan.law(r).log_prob([s])[0])
        h = 1.0 / (plan.sizes[r - 1] * math.comb(m, r) * chance)
        inside = np.isin(np.arange(m), s)
        xi = m**2 / (r * (m - r)) * (inside - r / m) if r < k else m / k * inside
        g = weight(plan)
        term = g * h * (reward - b) * xi / k
        mass, total, squares = mass + g, total + g * merit + term, squares + term**2
    return total / mass, squares


def test_sums_are_those_of_the_definition_and_can_be_taken_in_apart():
    rng, m, k = np.random.default_rng(4), 6, 3
    plans = [any_plan(m, k, rng, number) for number in range(3)]
    band, told = Band(m, k, plans[0].sizes), []
    branch = band.branch()
    for plan in plans:
        rows, rewards = plan.draw(30, rng), rng.random((30, 1))
        rewards[::7] = np.nan
        for order, (r,), (reward,) in zip(rows.orders, rows.sizes, rewards, strict=True):
            if not math.isnan(reward):
                told.append((plan, order[:r].tolist(), reward))
        for one, part in ((band, slice(0, 12)), (branch, slice(12, None))):
            one.absorb(plan, rows.pick(part), rewards[part])
    band.merge(branch)
    centre, squares = naive(band, told)
    assert band.count == len(told)
    np.testing.assert_allclose(band.interval()[0], centre, rtol=1e-9)
    np.testing.assert_allclose(totals(band.sums)[1], squares, rtol=1e-9)
    log = math.log(2 * m * (1 + band.count) / 0.05)
    scales = [2.0**-i for i in range(1, 60)]
    for a in range(m):
        width = min(
            (-math.log1p(-x) - x) / x * squares[a] / band.reach
            + band.reach / x * (log + math.log(i * (i + 1)))
            for i, x in enumerate(scales[:20], 1)
        )
        assert band.interval()[1][a] == pytest.approx(width / band.mass, rel=1e-9)


def test_the_inequality_behind_the_width():
    """exp(x z - psi(x) z^2) <= 1 + x z for z >= -1; with half of psi it fails."""
    z = np.linspace(-1.0, 40.0, 4001)
    for x in (0.02, 0.25, 0.5, 0.9):
        psi = -math.log1p(-x) - x
        assert np.all(np.exp(x * z - psi * z**2) <= 1.0 + x * z + 1e-15)
        assert np.any(np.exp(x * z - 0.5 * psi * z**2) > 1.0 + x * z)


def test_the_width_is_at_most_that_of_lemma_3():
    m, t, reach, alpha = 20, 10**6, 7.0, 0.05
    squares = reach**2 * np.geomspace(1e-6, t, 200)
    log = math.log(2 * m * (1 + t) / alpha)
    largest = math.ceil(0.5 * math.log2(t))
    price = log + math.log(largest * (largest + 1))
    bound = np.maximum(3.0 * np.sqrt(squares * price), 3.55 * reach * price)
    found = deviation(squares, reach, log)
    assert np.all(found <= bound)
    assert np.all(found > 0.4 * bound)  # not a bound that anything would pass


def test_the_policy_is_as_near_as_lemma_4_says():
    rng = np.random.default_rng(6)
    tightest = 0.0
    for _ in range(1000):
        m = int(rng.integers(2, 12))
        k = int(rng.integers(1, m))
        merit = rng.gamma(rng.choice([0.3, 3.0]), size=m)
        due = k * merit / merit.sum()
        if due.max() > 1.0:
            continue
        scores = np.maximum(merit + rng.normal(size=m) * rng.choice([0.01, 0.3, 2.0]), 1e-9)
        mixing = rng.choice([0.5, 0.1, 0.01])
        low, high = mixing * k / m, 1.0 - mixing * (1.0 - k / m)
        policy = clip_to_sum(scores, low, high, k)
        beyond = np.maximum(low - due, 0.0).sum() + np.maximum(due - high, 0.0).sum()
        assert beyond <= 2.0 * mixing * k * (1.0 - k / m) + 1e-12
        bound = 2.0 * k / merit.sum() * np.abs(scores - merit).sum() + 2.0 * beyond
        apart = np.abs(policy - due).sum()
        assert apart <= bound + 1e-9
        tightest = max(tightest, apart / bound)
    assert tightest > 0.7  # not a bound that anything would pass


@pytest.mark.statistical
@pytest.mark.parametrize(("sizes", "n"), [(None, 60), (np.array([0.05, 0.95]), 300)])
def test_the_band_holds_the_merits_at_all_times(sizes, n):
    """Looked at after each of eight plans, over 150 replications; a tenth of its width fails."""
    rng, m, k = np.random.default_rng(8), 5, 2
    values, merit = any_game(m, k, 0.0, rng)
    table = np.zeros((m, m))  # single arms on the diagonal
    for s, value in values.items():
        if s:
            table[s[0], s[-1]] = table[s[-1], s[0]] = value
    plans = [any_plan(m, k, rng, number, sizes) for number in range(8)]
    assert sizes is None or {plan.uniform[0] for plan in plans} > {1.0}  # as on full pages
    held = np.ones((150, 3, m), np.bool_)
    for run in held:
        band = Band(m, k, plans[0].sizes)
        for plan in plans:
            rows = plan.draw(n, rng)
            last = rows.orders[np.arange(n), rows.sizes[:, 0] - 1]
            chance = table[rows.orders[:, 0], last]
            band.absorb(plan, rows, (rng.random(n) < chance)[:, None].astype(float))
            for place, (centre, width) in enumerate((band.interval(), band.radius(math.log(40.0)))):
                run[place] &= np.abs(centre - merit) <= width
            run[2] &= np.abs(centre - merit) <= width / 10.0
    assert held[:, 0].all(axis=1).mean() >= 0.95  # all arms together
    assert held[:, 1].mean(axis=0).min() >= 0.95  # each arm
    assert held[:, 2].mean(axis=0).max() < 0.7


def test_late_rewards_are_taken_in_as_they_were_asked():
    game, rng = additive([0.1, 0.2, 0.3, 0.3], noise=None), np.random.default_rng(2)
    learner, out = EvenHand(4, 2, seed=1), []
    own = Band(4, 2, learner.sizes)
    for step in range(60):
        batch = learner.ask()
        out.append((batch, learner.plan))
        if step % 5 == 4:
            for late, plan in out[::-1]:
                rewards = game.pull(late.orders, late.sizes, rng)
                own.absorb(plan, learner._shelf.rows(late.index), rewards)
                learner.tell(late, rewards)
            out = []
    assert len(learner.plan.worth) == 4
    np.testing.assert_allclose(learner.band.sums, own.sums, rtol=1e-12)
    np.testing.assert_allclose(learner.band.base, own.base, rtol=1e-12)
    assert (learner.band.mass, learner.band.count) == pytest.approx((own.mass, own.count))
    twin = EvenHand.restore(learner.snapshot())
    np.testing.assert_array_equal(twin.intervals(), learner.intervals())


def test_rows_of_several_plans_come_back_plan_by_plan():
    learner = EvenHand(4, 2, seed=1)
    numbers = np.concatenate([learner.ask().index for _ in range(4)])[::-1]
    parts = learner._shelf.parts(numbers)
    assert [part.plan.number for part in parts] == [0, 1, 2, 3]
    whole = learner._shelf.rows(numbers)
    for part in parts:
        np.testing.assert_array_equal(part.rows.orders, whole.orders[part.places])
        np.testing.assert_array_equal(part.rows.weights, whole.weights[part.places])


def test_plans_keep_their_forecast_as_bytes():
    plan = any_plan(5, 2, np.random.default_rng(1))
    twin = Plan.from_bytes(plan.to_bytes())
    np.testing.assert_array_equal(twin.worth, plan.worth)
    assert twin.gamma == plan.gamma
    bare = SetPlan(0, np.arange(4), 2, np.full(4, 0.5), np.array([0.5, 0.5]), np.full(2, 0.2))
    assert len(Plan.from_bytes(bare.to_bytes()).worth) == 0
    for worth, gamma in (([np.nan] * 4, 1.0), ([0.5] * 4, np.nan), ([0.5] * 4, np.inf)):
        law = (0, np.arange(4), 2, np.full(4, 0.5), np.array([0.5, 0.5]), np.full(2, 0.2))
        wrong = SetPlan(*law, np.array(worth, np.float32), gamma)
        with pytest.raises(ValueError, match="but its forecast is wrong"):
            Plan.from_bytes(wrong.to_bytes())
    short = SetPlan(*law, np.array([0.5], np.float32), 1.0)
    with pytest.raises(ValueError, match="but its length is wrong"):
        Plan.from_bytes(short.to_bytes())


def test_merits_are_held_within_a_quarter_of_the_width():
    plan, rng = any_plan(5, 2, np.random.default_rng(5)), np.random.default_rng(6)
    band = Band(5, 2, plan.sizes)
    wild = np.array([-9.0, 9.0, 0.1, 0.2, 9.0])
    np.testing.assert_array_equal(band.hold(wild), wild)  # nothing is known
    rows = plan.draw(20_000, rng)
    band.absorb(plan, rows, np.full(rows.sizes.shape, 0.5))
    centre, width = band.interval()
    assert width.max() < 2.0
    held = band.hold(wild)
    np.testing.assert_allclose(
        held[[0, 1, 4]], (centre + BAND * width * [-1, 1, 0, 0, 1])[[0, 1, 4]]
    )
    near = centre + 0.2 * width
    np.testing.assert_array_equal(band.hold(near), near)


def test_where_no_merit_can_be_above_zero_all_arms_are_alike():
    learner = EvenHand(4, 2, seed=1)
    learner.band.hold = lambda merit: np.array([-0.1, 0.0, -0.3, -0.2])
    np.testing.assert_allclose(learner.marginals, 0.5)


def blind(held, horizon, seed):
    """Slope over the last decade, of merits that no reward changes; at which policies it held."""
    game, ramp = synthetic(20, stream(11, seed, "instance")), np.linspace(0.02, 0.2, 20)
    truth, inside = evenhand.kshapley(game, 5), []
    learner = EvenHand(20, 5, seed=seed)
    hold = learner.band.hold

    def own(merit):
        centre, width = learner.band.interval()
        inside.append(bool((np.abs(centre - truth) <= width).all()))
        return hold(ramp) if held else ramp

    learner.band.hold = own
    due, marks = evenhand.fair_policy(truth, 5), [horizon // 10, horizon]
    run = evenhand.simulate(learner, game, horizon, target=due, seed=seed, checkpoints=marks)
    return np.log10(run.regret[1] / run.regret[0]), inside


@pytest.mark.slow
def test_the_band_holds_back_merits_that_ignore_rewards():
    for seed, held in product((1, 2, 3), (True, False)):
        slope, inside = blind(held, 10**7, seed)
        print("held" if held else "free", "slope", slope, "policies", len(inside))
        assert slope < 0.85 if held else slope > 0.99
        assert all(inside)


def formula(m, horizon, value, sizes, part):
    k, log = len(sizes), math.log(2 * m * 10 * 11 * (1 + horizon) / 0.05)  # 2^10 > sqrt(T) > 2^9
    places = np.arange(1, k + 1) @ sizes
    return (
        17 * 1.25 * k / value * math.sqrt(size_price(m, sizes) * log / part) * m ** (1 / 3) * 1e4
        + 7 * k * (1 - k / m) * m ** (1 / 3) * 1e4
        + 71 * 1.25 * k**2 * largest_term(m, sizes) / (part * value * m ** (1 / 3)) * log * 1e2
        + 2.2 * k * m
        + 3 * k * (m / places * (1 + math.log(m)) + 1)
        + 3 * k * 0.05 * math.log(horizon)
    )


def test_the_bound_is_the_formula():
    m, horizon, value, sizes = 20, 10**6, 0.8, np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    thin = [0.4, 0.1, 0.1, 0.1, 0.08]  # 0.6 + 0.2 + ... + 0.5 = 2 places a query, over 5 and r
    price = sum(m / ((m - r) * r * thin[r - 1]) for r in range(1, 5)) + 1 / (5 * 0.08)
    assert size_price(m, sizes) == pytest.approx(price)
    assert largest_term(m, sizes) == pytest.approx(m / 5 / (0.1 * 2))
    assert largest_term(4, [0.5, 0.4, 0.1]) == pytest.approx(4 / 3 / (3 * 0.1))  # full sets
    expected = formula(m, horizon, value, sizes, 1.0)
    assert even_hand_bound(m, horizon, sizes, value) == pytest.approx(expected)
    mostly_full = np.array([0.1, 0.1, 0.1, 0.1, 0.6])
    expected = formula(m, horizon, value, mostly_full, 3 / 4)  # 1 of 4 places is in smaller sets
    assert even_hand_bound(m, horizon, mostly_full, value) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("full", "middle", "late"),
    [(0.4, 1.0, 1.0), (0.6, 3 / 4, 3 / 4), (0.95, (50 / 126) ** (2 / 3), 1 / 3)],
)
def test_the_bound_counts_on_what_is_explored(full, middle, late):
    """Of the schedule in the proof a learner explores at least the part that the bound is told."""
    learner, parts = EvenHand(8, 3, full=full, seed=1), []
    for queries in (10, 300, 1000, 10_000, 1_000_000):
        learner.queries = queries
        usual = min(0.5, (1 + queries / 8) ** (-1 / 3))
        parts.append(learner._rate() / usual)
    np.testing.assert_allclose(parts, [1.0, 1.0, middle, late, late])
    assert exploring(learner.sizes) == pytest.approx(min(parts))


def test_what_cannot_be_shares_is_refused():
    for sizes, message in (([1, 0], "above 0"), ("large", "vector of real numbers"), ([], "empty")):
        with pytest.raises((TypeError, ValueError), match=message):
            exploring(sizes)
    with pytest.raises(ValueError, match=r"per_arm must be .*got per_arm=-1"):
        exploring([0.1, 0.9], -1.0)
    with pytest.raises(ValueError, match=r"uniform must hold a share .* each of 2 sizes.*got 3"):
        band_weight(5, [0.1, 0.9], [1, 1, 1])
    with pytest.raises(ValueError, match=r"uniform must .* got uniform\[1\]=1.5"):
        band_weight(5, [0.1, 0.9], [1, 1.5])
    assert band_weight(5, [0.1, 0.9], [1, 0]) == 0.0  # not every set can be drawn


def test_the_bound_grows_and_shrinks_as_it_should():
    sizes = np.ones(5)
    bounds = [even_hand_bound(20, t, sizes, 0.5) for t in (1, 10, 1000, 10**6, 10**9)]
    assert np.all(np.diff(bounds) > 0)
    assert even_hand_bound(20, 1000, sizes, 0.6) < bounds[2]
    assert even_hand_bound(20, 1000, 3.0 * sizes, 0.5) == pytest.approx(bounds[2])
    assert even_hand_bound(20, 1000, sizes, 0.5, band=0.0) < bounds[2]
    assert even_hand_bound(20, 1000, sizes, 0.5, alpha=0.01) > bounds[2]
    assert even_hand_bound(20, 1000, [1, 1, 1, 1, 96], 0.5) > 3.0 * bounds[2]  # mostly full
    for m in (10, 20, 100):  # equal shares
        harmonic = sum(1 / r for r in range(1, 6))
        assert size_price(m, sizes) <= m / (m - 4) * 5 * (harmonic + 1)
    with pytest.raises(ValueError, match="sizes must hold fewer than m=5 shares"):
        even_hand_bound(5, 1000, sizes, 0.5)
    with pytest.raises(ValueError, match="sizes must be above 0"):
        size_price(5, [0.0, 1.0])


def test_measured_regret_is_below_the_bound():
    game = synthetic(8, stream(5, 1, "instance"))
    merit = evenhand.kshapley(game, 3)
    learner = EvenHand(8, 3, seed=1)
    due = evenhand.fair_policy(merit, 3)
    run = evenhand.simulate(learner, game, 2000, target=due, seed=2)
    value = 3 / 8 * merit.sum()
    assert run.regret[-1] < even_hand_bound(8, 2000, learner.sizes, value)

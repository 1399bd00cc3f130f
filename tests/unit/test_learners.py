"""What each algorithm promises beyond the exchange."""

from itertools import permutations
from math import comb, factorial

import numpy as np
import pytest

import evenhand
from evenhand import designs, games, theory
from evenhand.exchange.batch import Determined, Marginals, Target
from evenhand.games import NoisyOr
from evenhand.learners import ETCG, URS, FairCMAB, GapE, IWKSVFair, MURaS
from evenhand.learners.etcg import plays_per_set
from evenhand.learners.fair_cmab import largest_quota
from evenhand.learners.means import add_prefix_gains
from evenhand.metrics import FairnessLoss, known_arm_losses
from evenhand.testing.statistics import check_frequencies, check_mean
from tests import reference

M, K = 5, 3
GAME = NoisyOr([0.15, 0.3, 0.5, 0.7, 0.9])
TARGET = evenhand.fair_policy(GAME.kshapley(K), K)
POLICY = np.array([0.2, 0.4, 0.6, 0.85, 0.95])

MADE = {
    "conditional_poisson": lambda: designs.ConditionalPoisson.fit(POLICY),
    "enumerated": lambda: designs.EnumeratedMaxEntropy.fit(POLICY),
    "mis_fitted": lambda: designs.ConditionalPoisson.from_log_weights([2, -1, 0.5, 1, -0.3], K),
    "certain_arms": lambda: designs.ConditionalPoisson.fit([0.0, 0.3, 0.7, 1.0, 1.0]),
}


def target_arms(batch):
    """The arm that each row's longest prefix ends in."""
    return batch.orders[np.arange(len(batch.orders)), batch.sizes.max(axis=1) - 1]


def all_rounds(design, eta, weighted=True):
    """Every (set, order) a round can draw, its probability, and the learner's own weights."""
    mixture = designs.Mixture(design, eta)
    orders = np.array([o for s in reference.sets_of(M, K) for o in permutations(s)])
    chances = np.exp(mixture.log_prob(orders)) / factorial(K)
    drawn = chances > 0
    weights = mixture.weights(orders[drawn]) if weighted else np.ones(orders[drawn].shape)
    return orders[drawn], chances[drawn], weights, mixture.marginals


def expected_credit(design, eta, weighted=True):
    """E[Z(a) | a drawn], E[w | a drawn], Var(Z(a) | a drawn) and max |Z|, by enumeration."""
    orders, chances, weights, q = all_rounds(design, eta, weighted)
    mean, weight, second, largest = np.zeros(M), np.zeros(M), np.zeros(M), 0.0
    for order, chance, w in zip(orders, chances, weights, strict=True):
        rewards = np.array([[reference.value_of(GAME, order[: r + 1]) for r in range(K)]])
        credit, seen = np.zeros(M), np.zeros(M, np.int64)
        add_prefix_gains(
            credit, seen, order[None, :], w[None, :], rewards
        )  # the learner's own update
        np.testing.assert_array_equal(seen, np.isin(np.arange(M), order))
        mean += chance * credit / q
        second += chance * credit**2 / q
        weight[order] += chance * w / q[order]
        largest = max(largest, np.abs(credit).max())
    return mean, weight, second - mean**2, largest


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_credit_of_a_drawn_arm_is_unbiased_with_bounded_variance(make, eta):
    """Lemmas 1 and 2 by enumeration of all sets and orders, for any design."""
    mean, weight, variance, largest = expected_credit(make(), eta)
    bound = theory.max_weight(M, K, eta)
    np.testing.assert_allclose(mean, GAME.kshapley(K), atol=1e-12)
    np.testing.assert_allclose(weight, 1.0, atol=1e-12)
    assert np.all(variance <= bound)
    assert largest <= bound * (1 + 1e-12)


def test_without_mixing_the_credit_is_unbiased_but_not_bounded():
    mean, weight, _, _ = expected_credit(MADE["conditional_poisson"](), 0.0)
    np.testing.assert_allclose(mean, GAME.kshapley(K), atol=1e-10)
    np.testing.assert_allclose(weight, 1.0, atol=1e-10)
    unlikely = designs.ConditionalPoisson.from_log_weights([-9, -9, 0, 0, 0], K)
    assert np.max(all_rounds(unlikely, 0.0)[2]) > 10 * theory.max_weight(M, K, 0.05)


@pytest.mark.parametrize("eta", [0.05, 0.5])
def test_without_weights_the_credit_is_biased(eta):
    """Negative control: the enumeration sees the bias of NoIW."""
    mean, *_ = expected_credit(MADE["conditional_poisson"](), eta, weighted=False)
    assert np.abs(mean - GAME.kshapley(K)).max() > 0.01


def test_prefixes_have_marginals_r_over_k_times_q():
    """Lemma 3, by enumeration, and the loss that follows from it."""
    orders, chances, _, q = all_rounds(MADE["conditional_poisson"](), 0.3)
    batch = IWKSVFair(M, K, 1000, eta=0.3, seed=0).ask()
    batch = batch.__class__(
        **{**{f: getattr(batch, f) for f in batch.__slots__}, "exposure": Marginals(q)}
    )
    for r in range(1, K + 1):
        p = np.zeros(M)
        for order, chance in zip(orders, chances, strict=True):
            p[order[:r]] += chance
        np.testing.assert_allclose(p, r / K * q, atol=1e-12)
        naive = K / r * np.abs(p - r / K * TARGET).sum()
        assert FairnessLoss(TARGET, K)(batch) == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("target", [TARGET, np.array([1.4, 0.1, 0.5, 0.5, 0.5])])
def test_losses_of_known_sets_and_known_targets_are_the_definition(target):
    etcg = ETCG(M, K, 10**4, seed=0)
    for arms in ([4], [1, 3], [0, 2, 4]):
        r = len(arms)
        orders = np.array([arms + [a for a in range(M) if a not in arms][: K - r]])
        batch = etcg.ask(1)
        batch = batch.__class__(
            **{
                **{f: getattr(batch, f) for f in batch.__slots__},
                "orders": orders,
                "sizes": np.array([[r]]),
            }
        )
        p = np.isin(np.arange(M), arms).astype(float)
        naive = K / r * np.abs(p - r / K * target).sum()
        assert FairnessLoss(target, K)(batch)[0, 0] == pytest.approx(naive)
        if target.max() <= 1:
            assert naive == pytest.approx(2 * (K - target[arms].sum()))
    table = known_arm_losses(target, K)
    for arm in range(M):
        others = [a for a in range(M) if a != arm]
        for r in range(1, K + 1):
            p = np.zeros(M)
            for before in reference.sets_of(M - 1, r - 1):
                members = [arm, *(others[b] for b in before)]
                p[members] += 1 / comb(M - 1, r - 1)
            naive = K / r * np.abs(p - r / K * target).sum()
            assert table[arm, r] == pytest.approx(naive)
            if r > 1:  # the predecessors alone
                p[arm] = 0.0
                naive = K / (r - 1) * np.abs(p - (r - 1) / K * target).sum()
                assert table[arm, 0] == pytest.approx(naive)


def test_target_exposure_tells_the_two_queries_of_a_pair_apart():
    learner = GapE(M, K, 1000, seed=0)
    batch = learner.ask(40)
    assert isinstance(batch.exposure, Target)
    loss, table = FairnessLoss(TARGET, K)(batch), known_arm_losses(TARGET, K)
    for row, arm in enumerate(batch.exposure.arms):
        before, withit = batch.sizes[row]
        assert withit == before + 1
        assert batch.orders[row, before] == arm
        assert loss[row].tolist() == [table[arm, 0], table[arm, withit]]


def test_the_policy_is_clipped_proportional_and_capped():
    learner = IWKSVFair(4, 2, 1000, eta=0.0, seed=0, growth=0)
    learner.evidence.totals[:] = [9.0, 0.3, -0.5, 0.0]
    learner.evidence.counts[:] = [3, 1, 1, 0]
    np.testing.assert_allclose(
        learner.marginals, reference.waterfill([1.0, 0.3, 1e-4, 1e-4], 2), rtol=1e-12
    )
    np.testing.assert_allclose(learner.merit, [3.0, 0.3, -0.5, np.nan])


@pytest.mark.parametrize(("growth", "expected"), [(0.0, [1] * 12), (0.5, [1, 1, 1, 1, 2, 3, 4, 6])])
def test_a_policy_serves_as_many_rounds_as_the_schedule_says(growth, expected):
    learner = IWKSVFair(M, K, 3000, eta=0.5, growth=growth, seed=0)
    served = [len(learner.ask().orders) for _ in expected]
    assert served == expected
    many_arms = IWKSVFair(1000, 2, 3000, eta=0.5, growth=0, seed=0)
    assert len(many_arms.ask().orders) == 1000 // (50 * 2)


def test_trailing_queries_are_full_sets_of_the_last_mixture():
    learner = IWKSVFair(M, K, 3 * 40 + 2, eta=0.5, seed=0)
    while learner.queries < 120:
        batch = learner.ask()
        learner.tell(batch, GAME.pull(batch.orders, batch.sizes, np.random.default_rng(0)))
    last = learner.ask()
    assert not last.learns
    assert last.sizes.tolist() == [[K], [K]]
    np.testing.assert_array_equal(last.exposure.q, batch.exposure.q)


def test_a_limit_below_a_round_warns_once():
    learner = IWKSVFair(M, K, 1000, eta=0.5, seed=0)
    with pytest.warns(UserWarning, match="limit=2 is below the 3 queries of a round"):
        batch = learner.ask(2)
    assert not batch.learns
    learner.ask(2)  # a second warning would be an error here


def test_eta_comes_from_gamma_or_is_given():
    assert IWKSVFair(20, 5, 10**6, gamma=0.8, seed=0).eta == theory.eta(20, 5, 10**6, 0.8)
    assert IWKSVFair(20, 5, 10**4, gamma=0.2, seed=0).eta == 1.0  # the paper's smallest, exactly
    assert IWKSVFair(20, 5, 10**4, eta=0.25, seed=0).eta == 0.25
    assert IWKSVFair.no_mix(20, 5, 10**4, seed=0).eta == 0.0
    assert IWKSVFair.no_iw(20, 5, 10**4, gamma=0.8, seed=0).weights == "none"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: IWKSVFair(20, 5, 10**4, seed=0),
            TypeError,
            "exactly one of gamma and eta must be",
        ),
        (
            lambda: IWKSVFair(20, 5, 10**4, gamma=1, eta=0.1, seed=0),
            TypeError,
            "exactly one of gamma and eta must be given, got gamma=1 and eta=0.1",
        ),
        (
            lambda: IWKSVFair(20, 5, 10**4, gamma=0.1, seed=0),
            ValueError,
            r"gamma must be at least .* = 0.2\d* so that eta <= 1, got gamma=0.1",
        ),
        (lambda: IWKSVFair(20, 5, 10**4, eta=1.5, seed=0), ValueError, r"eta must lie in \[0, 1\]"),
        (lambda: IWKSVFair(20, 5, 10**4, eta=0.1, floor=2, seed=0), ValueError, "floor must lie"),
        (lambda: IWKSVFair(20, 5, 10**4, eta=0.1, growth=-1, seed=0), ValueError, "growth must"),
        (
            lambda: IWKSVFair(20, 5, 10**4, eta=0.1, design=designs.Systematic, seed=0),
            TypeError,
            "design must be ConditionalPoisson or EnumeratedMaxEntropy",
        ),
        (
            lambda: IWKSVFair(20, 5, 10**4, eta=0.1, weights="some", seed=0),
            ValueError,
            "weights must be 'importance' or 'none', got 'some'",
        ),
        (
            lambda: MURaS(20, 5, 10**6, lam=0.3, seed=0),
            ValueError,
            r"lam must lie between 2 M / T\^\(1/3\) = 0.4 and T\^\(2/3\) = 10000 .* got lam=0.3",
        ),
        (lambda: MURaS(20, 5, 10**6, lam=10**5, seed=0), ValueError, "lam must lie between"),
        (
            lambda: MURaS(20, 5, 39, lam=1, seed=0),
            ValueError,
            "horizon must be at least 2 m = 40 for one sample per arm, got horizon=39",
        ),
        (
            lambda: MURaS(20, 5, 10**6, lam=8, rounding=designs.Uniform, seed=0),
            TypeError,
            "rounding must be one of .*DependentRounding",
        ),
        (
            lambda: MURaS(20, 5, 10**6, lam=8, rounding=len, seed=0),
            TypeError,
            r"rounding must be one of .* got <built-in function len>",
        ),
        (lambda: GapE(20, 5, 10**4, c=0, seed=0), ValueError, "c must be above 0, got c=0"),
        (
            lambda: FairCMAB(4, 2, 100, [0.1, 0.2], seed=0),
            ValueError,
            r"quotas must have shape \(4,\), got \(2,\)",
        ),
        (
            lambda: FairCMAB(4, 2, 100, [0.9, 0.9, 0.9, 0.9], seed=0),
            ValueError,
            "quotas must fit into the horizon: the largest of each group add up to 180 queries",
        ),
    ],
)
def test_bad_configurations_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shuffled", [True, False])
def test_muras_spends_2mr_queries_exploring_r_on_each_arm(shuffled):
    horizon = 20_000
    learner = MURaS(M, K, horizon, lam=5.0, shuffled=shuffled, seed=1)
    spent, targets = 0, []
    rng = np.random.default_rng(0)
    while learner.queries < horizon:
        batch = learner.ask()
        if batch.learns:
            spent += batch.queries
            targets += target_arms(batch).tolist()
            assert isinstance(batch.exposure, Marginals if shuffled else Target)
            learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
    assert spent == 2 * M * learner.samples
    assert np.bincount(targets).tolist() == [learner.samples] * M
    if not shuffled:
        assert targets == sorted(targets)
    expected = evenhand.fair_policy(np.maximum(learner.merit, 0), K)
    np.testing.assert_allclose(learner.marginals, expected, atol=1e-12)


@pytest.mark.statistical
def test_muras_explores_pairs_in_uniformly_random_order():
    """All orders of the multiset of targets are equally likely: M=3 arms, R=2 each."""
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        learner = MURaS(3, 1, 64, lam=8.0, seed=seed)
        assert learner.samples == 2
        arms = tuple(target_arms(learner.ask(12)).tolist())
        counts[arms] = counts.get(arms, 0) + 1
    possible = factorial(6) // 2**3
    assert len(counts) == possible
    check_frequencies(list(counts.values()), np.full(possible, 1 / possible))


@pytest.mark.statistical
@pytest.mark.parametrize(
    "make", [lambda: MURaS(M, K, 10**6, lam=0.5, seed=3), lambda: GapE(M, K, 10**6, seed=3)]
)
def test_sampled_gains_are_unbiased_for_merit(make):
    learner = make()
    rng, gains, arms = np.random.default_rng(0), [], []
    while len(gains) < 60_000:
        batch = learner.ask()
        rewards = GAME.pull(batch.orders, batch.sizes, rng)
        learner.tell(batch, rewards)
        gains += (rewards[:, 1] - rewards[:, 0]).tolist()
        arms += target_arms(batch).tolist()
    merit = GAME.kshapley(K)
    for arm in range(M):
        mine = np.array(gains)[np.array(arms) == arm]
        if len(mine) > 1000:
            check_mean(mine, merit[arm], resolution=0.1)


def test_predecessors_are_a_uniform_size_and_then_a_uniform_set():
    from evenhand.subsets.predecessors import draw_predecessors

    n = 120_000
    orders, sizes = draw_predecessors(np.full(n, 2), M, K, np.random.default_rng(0))
    counts: dict[tuple[int, ...], int] = {}
    for order, (before, withit) in zip(orders.tolist(), sizes.tolist(), strict=True):
        assert order[before] == 2
        assert withit == before + 1
        counts[tuple(order[:before])] = counts.get(tuple(order[:before]), 0) + 1
    outcomes = [()] + [(a,) for a in (0, 1, 3, 4)]
    outcomes += [(a, b) for a in (0, 1, 3, 4) for b in (0, 1, 3, 4) if a != b]
    law = [1 / 3] + [1 / 12] * 4 + [1 / 36] * 12
    check_frequencies([counts[o] for o in outcomes], law)


@pytest.mark.parametrize(("m", "k", "horizon"), [(20, 5, 10**5), (5, 3, 10**4), (6, 6, 10**4)])
def test_etcg_explores_as_long_as_the_formula_says(m, k, horizon):
    learner = ETCG(m, k, horizon, seed=0)
    game = NoisyOr(np.linspace(0.1, 0.9, m))
    learnt, rng = 0, np.random.default_rng(0)
    while learner.queries < horizon:
        batch = learner.ask()
        assert isinstance(batch.exposure, Determined)
        if batch.learns:
            learnt += batch.queries
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    assert learnt == plays_per_set(m, k, horizon) * (k * m - k * (k - 1) // 2)
    best = set(range(m - k, m))
    assert set(np.flatnonzero(learner.marginals)) == best  # it finds the arms of largest value


@pytest.mark.parametrize(
    ("m", "k", "horizon", "plays"),
    [(20, 5, 10**4, 14), (20, 5, 10**6, 289), (20, 5, 10**8, 6232), (534, 10, 10**8, 442)],
)
def test_etcg_plays_are_those_of_the_paper_it_comes_from(m, k, horizon, plays):
    assert plays_per_set(m, k, horizon) == plays


def test_etcg_plays_each_candidate_in_turn_beside_the_chosen():
    learner = ETCG(4, 2, 5000, seed=0)
    plays = plays_per_set(4, 2, 5000)
    first = learner.ask()
    assert first.orders[:, 0].tolist() == np.repeat(np.arange(4), plays).tolist()
    assert np.all(first.sizes == 1)
    rewards = np.where(first.orders[:, :1] == 2, 0.9, 0.1)
    learner.tell(first, rewards)
    second = learner.ask()
    assert np.all(second.orders[:, 0] == 2)
    assert second.orders[:, 1].tolist() == np.repeat([0, 1, 3], plays).tolist()
    assert np.all(second.sizes == 2)


def test_etcg_without_data_decides_at_random_and_with_some_for_what_it_saw():
    picks = set()
    for seed in range(20):
        learner = ETCG(4, 1, 5000, seed=seed)
        learner.ask()
        learner.ask()
        picks.add(int(learner._greedy.chosen[0]))
    assert len(picks) > 1
    learner = ETCG(4, 1, 5000, seed=0)
    batch = learner.ask()
    rewards = np.where(batch.orders[:, :1] == 3, 0.0, np.nan)  # only arm 3 has data, and it is 0
    learner.tell(batch, rewards)
    learner.ask()
    assert learner._greedy.chosen.tolist() == [3]


@pytest.mark.parametrize(("m", "k"), [(20, 5), (7, 3), (6, 6), (5, 1), (534, 10)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_quotas_are_met_on_every_arm(m, k, seed):
    horizon = 30_000
    learner = FairCMAB(m, k, horizon, seed=seed)
    game = games.additive(np.full(m, 0.5 / k))
    run = evenhand.simulate(learner, game, horizon, target=np.full(m, k / m), seed=0)
    assert np.all(run.selections >= learner.quotas * horizon - 1e-9)
    assert learner.quotas.max() <= largest_quota(m, k)


def test_quotas_can_be_given():
    quotas = [0.3, 0.2, 0.0, 0.25, 0.1]
    learner = FairCMAB(5, 2, 10_000, quotas, seed=0)
    run = evenhand.simulate(
        learner, NoisyOr(np.full(5, 0.5)), 10_000, target=np.full(5, 0.4), seed=0
    )
    assert np.all(run.selections >= np.array(quotas) * 10_000)


def test_gap_e_pulls_each_arm_once_and_then_near_the_border():
    merits = np.array([0.3, 0.25, 0.2, 0.02, 0.01])  # the border of K=2 lies between 0.25 and 0.2
    game = games.additive(merits, noise=games.Bernoulli())
    learner = GapE(5, 2, 20_001, seed=0)
    first = learner.ask()
    assert sorted(target_arms(first).tolist()) == [0, 1, 2, 3, 4]
    learner.tell(first, game.pull(first.orders, first.sizes, np.random.default_rng(0)))
    evenhand.simulate(learner, game, 20_001, target=np.full(5, 0.4), seed=0)
    pulled = learner._pulled
    assert pulled.sum() == 10_000
    assert min(pulled[1], pulled[2]) > max(pulled[0], pulled[3], pulled[4])


def test_gap_e_index_is_the_formula():
    learner = GapE(4, 2, 1000, seed=0)
    counts = learner._gains.counts
    learner._pulled[:] = counts[:] = [10, 20, 30, 40]
    merit = np.array([0.5, 0.1, 0.3, 0.25])
    learner._gains.totals[:] = merit * counts
    border = np.array([0.25, 0.3, 0.25, 0.3])  # third largest for the top two, else the second
    gap = np.abs(merit - border)
    h = np.sum(1 / np.maximum(gap, 1 / np.sqrt(counts)) ** 2)
    index = -gap + np.sqrt(500 / h / counts)
    arm = int(np.argmax(index))
    assert np.argmax(learner.marginals) == arm
    expected = []
    counts = counts.astype(float)
    for _ in range(25):
        a = int(np.argmax(-gap + np.sqrt(500 / h / counts)))
        counts[a] += 1
        expected.append(a)
    assert learner._choose(25, learner._pulled.copy(), np.arange(4)).tolist() == expected


def test_at_k_equal_m_gap_e_takes_turns():
    learner = GapE(4, 4, 800, growth=0.5, seed=0)
    evenhand.simulate(learner, NoisyOr([0.1, 0.3, 0.5, 0.7]), 800, target=np.ones(4), seed=0)
    assert learner._pulled.tolist() == [100] * 4


def test_urs_is_uniform_and_needs_no_horizon():
    learner = URS(M, K, seed=0)
    assert learner.horizon is None
    np.testing.assert_array_equal(learner.marginals, np.full(M, K / M))
    assert np.isnan(learner.merit).all()


def test_a_missing_reward_skips_the_two_gains_that_need_it():
    totals, counts = np.zeros(4), np.zeros(4, np.int64)
    orders, weights = np.array([[2, 0, 3, 1]]), np.full((1, 4), 2.0)
    add_prefix_gains(totals, counts, orders, weights, np.array([[0.2, np.nan, 0.7, 0.9]]))
    np.testing.assert_allclose(totals, [0.0, 0.4, 0.4, 0.0])
    assert counts.tolist() == [0, 1, 1, 0]


def test_late_rewards_count_in_the_phase_they_were_asked_in():
    learner = ETCG(3, 2, 5000, seed=0)
    first = learner.ask()
    later = first.rows(np.flatnonzero(first.orders[:, 0] == 0))
    n = len(later.orders)
    learner.tell(first.rows(np.flatnonzero(first.orders[:, 0] == 1)), np.full((n, 1), 0.5))
    learner.ask(10)  # the second phase has begun with arm 1
    learner.tell(later, np.ones((n, 1)))
    assert learner._greedy.means.totals[0, 0] == n
    assert not learner._greedy.means.totals[1].any()


def test_the_odd_query_of_gap_e_is_the_top_of_its_estimates():
    learner = GapE(5, 2, 2001, seed=0)
    game = games.additive([0.02, 0.3, 0.01, 0.25, 0.03], noise=games.Bernoulli())
    rng = np.random.default_rng(0)
    while learner.queries < 2000:
        batch = learner.ask(2000 - learner.queries)
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    np.testing.assert_array_equal(learner.marginals, [0, 1, 0, 1, 0])
    assert sorted(learner.ask().orders[0].tolist()) == [1, 3]


def naive_schedule(learner, horizon):
    """Who is played at each query of Fair-CMAB: a group, or -1 for a free one."""
    played, who = np.zeros(len(learner._owed)), []
    needs = np.ceil(learner._owed * horizon - 1e-9)
    for t in range(1, horizon + 1):
        deficits = np.where(played < needs, learner._owed * t - played, -1)
        g = int(np.argmax(deficits))
        if deficits[g] <= 0:
            g = int(np.argmax(needs - played)) if (needs - played).sum() >= horizon - t + 1 else -1
            g = g if (needs - played).sum() > 0 else -1
        if g >= 0:
            played[g] += 1
        who.append(g)
    return who


@pytest.mark.parametrize(("m", "k", "horizon"), [(20, 5, 5000), (7, 3, 3001), (10, 2, 11)])
def test_fair_cmab_plays_whoever_is_due_in_order(m, k, horizon):
    quotas = [0.1] * 10 if m == 10 else None
    learner = FairCMAB(m, k, horizon, quotas, seed=3)
    game, rng = NoisyOr(np.linspace(0.1, 0.9, m)), np.random.default_rng(0)
    who = []
    groups = [sorted(g) for g in learner._groups.tolist()]
    while learner.queries < horizon:
        batch = learner.ask()
        arms = np.full(len(batch.orders), -2)
        if batch.learns:
            arms = learner.ledger.read("arms", batch.index)
        rows = zip(batch.orders.tolist(), batch.sizes[:, 0], batch.times, arms, strict=True)
        for order, size, times, arm in rows:
            free = arm >= 0 or (arm == -2 and sorted(order) == sorted(learner._greedy.chosen))
            who += [-1 if free else groups.index(sorted(order[:size]))] * int(times)
        if batch.learns:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    chosen = sorted(learner._greedy.chosen)
    same = groups.index(chosen) if chosen in groups else -1  # a set that looks like the free one
    expected = naive_schedule(learner, horizon)
    assert [-1 if g == same else g for g in who] == [-1 if g == same else g for g in expected]
    fair = int(np.ceil(learner._owed * horizon - 1e-9).sum())
    assert sum(g >= 0 for g in expected) == fair
    assert learner._greedy.plays == plays_per_set(m, k, max(1, horizon - fair))


def test_quotas_are_met_where_they_take_nearly_everything():
    learner = FairCMAB(10, 2, 11, [0.1] * 10, seed=0)
    run = evenhand.simulate(learner, NoisyOr(np.full(10, 0.5)), 11, target=np.full(10, 0.2), seed=0)
    assert np.all(run.selections >= 0.1 * 11)


@pytest.mark.parametrize("kind", ["ConditionalPoisson", "EnumeratedMaxEntropy", "Systematic"])
def test_muras_commits_with_any_design_of_given_marginals(kind):
    learner = MURaS(M, K, 4000, lam=5.0, rounding=getattr(designs, kind), seed=1)
    run = evenhand.simulate(learner, GAME, 4000, target=TARGET, seed=0)
    assert run.queries == 4000
    assert not np.array_equal(learner._order, np.arange(M))  # arms are shuffled once


def test_marginals_are_the_callers_own():
    learners = [
        URS(M, K, seed=0),
        IWKSVFair(M, K, 1000, eta=0.5, seed=0),
        MURaS(M, K, 1000, lam=5, seed=0),
    ]
    for learner in learners:
        for _ in range(2):
            before, taken = learner.marginals, learner.marginals
            taken /= 2
            np.testing.assert_array_equal(learner.marginals, before)
            batch = learner.ask(300)
    batch = learners[1].ask()
    with pytest.raises(ValueError, match="read-only"):
        batch.exposure.q[0] = 0.0


@pytest.mark.parametrize(("m", "k", "horizon"), [(20, 5, 10**5), (7, 3, 12345), (534, 10, 10**4)])
def test_the_constants_that_errors_name_are_accepted(m, k, horizon):
    with pytest.raises(ValueError, match="gamma must be at least") as caught:
        IWKSVFair(m, k, horizon, gamma=1e-3, seed=0)
    named = float(str(caught.value).split(" = ")[1].split()[0])
    assert IWKSVFair(m, k, horizon, gamma=named, seed=0).eta == 1.0

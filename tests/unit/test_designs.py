import numpy as np
import pytest

from evenhand.designs import (
    ConditionalPoisson,
    DependentRounding,
    EnumeratedMaxEntropy,
    Mixture,
    Systematic,
    Uniform,
)
from evenhand.designs.design import merge
from evenhand.designs.head_tree import KEPT, LEAF, build_tree, draw_heads
from evenhand.designs.poisson_binomial import by_contour, by_recursion, centre, n_points, sigmoid
from evenhand.policy import waterfill
from evenhand.randomness.alias import build_alias
from tests import reference

MARGINALS_USERS = [
    ConditionalPoisson.fit,
    EnumeratedMaxEntropy.fit,
    DependentRounding.fit,
    Systematic.fit,
]


def random_policy(m, k, spread, seed=0):
    return waterfill(np.exp(np.random.default_rng(seed).normal(0, spread, m)), k)


def conditioned(method, p, q, k):
    pi, rest = np.empty_like(p), np.empty_like(p)
    memory = [np.empty((4, len(p) // 2 + 1))] if method is by_contour else []
    return method(p, q, k, pi, rest, *memory), pi, rest


@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 12.0])
@pytest.mark.parametrize(
    ("m", "k"),
    [
        *[(2, 1), (3, 1), (3, 2), (10, 5), (20, 5), (20, 19), (100, 1), (100, 50), (100, 99)],
        *[(534, 10), (500, 200), (2000, 3), (2000, 300), (2000, 1000), (2000, 1999)],
    ],
)
def test_recursion_and_contour_agree(m, k, spread):
    theta = np.random.default_rng(m + k).normal(0, spread, m)
    p, q = sigmoid(theta + centre(theta, k))
    one, other = conditioned(by_recursion, p, q, k), conditioned(by_contour, p, q, k)
    assert one[0] == pytest.approx(other[0], abs=1e-11)
    np.testing.assert_allclose(one[1], other[1], atol=1e-12)
    np.testing.assert_allclose(one[2], other[2], atol=1e-12)
    np.testing.assert_allclose(one[1] + one[2], 1.0, atol=1e-12)
    assert one[1].sum() == pytest.approx(k, abs=1e-9)


def test_so_many_points_of_the_contour_leave_nothing_to_alias():
    """Bennett's bound on the chance of heads that far from the mean, for all variances."""
    v = 10.0 ** np.linspace(-6, 7, 2000)
    n = np.array([n_points(10**9, variance) for variance in v])
    bound = 2.0 * np.exp(-((v + n) * np.log1p(n / v) - n))
    assert bound.max() < 1e-35


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 6])
def test_certain_coins_are_counted(k):
    """Coins that always or never show a head, an odd number of them, and no choice at all."""
    p = np.array([0.0, 1.0, 0.3, 0.0, 1.0, 0.8, 1.0][: 6 + k % 2])
    always = int((p == 1.0).sum())
    sets, weights = reference.sets_of(len(p), k), []
    for s in sets:
        weights.append(np.where(np.isin(np.arange(len(p)), s), p, 1.0 - p).prod())
    if sum(weights) == 0.0:
        assert not always <= k <= always + 2
        return
    expected = reference.marginals_of(sets, np.array(weights) / sum(weights), len(p))
    for method in (by_recursion, by_contour):
        log_heads, pi, rest = conditioned(method, p, 1.0 - p, k)
        assert log_heads == pytest.approx(np.log(sum(weights)), abs=1e-14)
        np.testing.assert_allclose(pi, expected, atol=1e-14)
        np.testing.assert_allclose(rest, 1.0 - expected, atol=1e-14)


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
@pytest.mark.parametrize(("m", "k"), [(2, 1), (5, 2), (8, 4), (8, 7)])
def test_both_methods_are_the_enumeration(m, k, spread):
    theta = np.random.default_rng(k).normal(0, spread, m)
    sets, probabilities = reference.max_entropy(theta, k)
    expected = reference.marginals_of(sets, probabilities, m)
    p, q = sigmoid(theta + centre(theta, k))
    for method in (by_recursion, by_contour):
        np.testing.assert_allclose(conditioned(method, p, q, k)[1], expected, atol=1e-13)


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(
    ("m", "k"), [(2, 1), (20, 5), (20, 15), (100, 99), (534, 10), (500, 200), (2000, 1000)]
)
def test_fit_reaches_its_tolerance(m, k, spread):
    target = random_policy(m, k, spread)
    design = ConditionalPoisson.fit(target)
    assert np.abs(design.marginals - target).max() <= 1e-10
    nudged = waterfill(target * np.exp(np.random.default_rng(1).normal(0, 0.01, m)), k)
    assert np.abs(design.refit(nudged).marginals - nudged).max() <= 1e-10


@pytest.mark.parametrize("k", [1_000, 100_000])
def test_fit_reaches_its_tolerance_at_a_million_arms(k):
    target = random_policy(10**6, k, 1.0)
    design = ConditionalPoisson.fit(target)
    assert np.abs(design.marginals - target).max() <= 1e-10
    rows = design.sample(2, np.random.default_rng(0))
    assert all(len(np.unique(row)) == k for row in rows)
    assert np.isfinite(design.log_prob(rows)).all()


@pytest.mark.parametrize(
    "target",
    [
        [0.99, 0.01],
        [1 - 1e-6, 1e-6],
        [0.9997] * 5 + [1e-4] * 15,  # the plain fixed point cycles for ever here
        [1 - 1e-6] + [1e-6 / 9] * 9,
        [1 - 1e-12, 1e-12, 0.5, 0.5],
        [0.5] * 10,
        [1.0, 0.5, 0.5, 0.0],
        [1.0, 1.0],
        [1e-9, 1 - 1e-9, 0.3, 0.7],
        [0.25, 0.75 - 1e-39, 1e-39, 1.0, 1e-177],
        [0.25, 0.75, 1e-290],
        [1 - 1e-15] * 30 + [1e-15] * 30,
    ],
)
def test_fit_at_the_ends(target):
    target = np.array(target)
    target *= round(target.sum()) / target.sum()
    design = ConditionalPoisson.fit(target)
    assert np.abs(design.marginals - target).max() <= 1e-10
    assert design.marginals.min() >= 0.0
    np.testing.assert_array_equal(np.isfinite(design.log_weights), (target > 0.0) & (target < 1.0))


def test_arms_at_zero_and_one_are_taken_out():
    design = ConditionalPoisson.fit([1.0, 0.5, 0.5, 0.0])
    np.testing.assert_array_equal(design.log_weights[[0, 3]], [np.inf, -np.inf])
    np.testing.assert_allclose(
        design.log_prob([[0, 1], [1, 2], [0, 3]]), [np.log(0.5), -np.inf, -np.inf]
    )


def test_log_prob_stays_in_log_space():
    extreme = ConditionalPoisson.from_log_weights([1500.0, 0.0], 1)
    np.testing.assert_allclose(extreme.log_prob([[0], [1]]), [0.0, -1500.0], atol=1e-9)
    extreme = ConditionalPoisson.from_log_weights([1e6, 0.0, 0.0, 0.0], 2)
    np.testing.assert_allclose(
        extreme.log_prob([[0, 1], [2, 3]]), [-np.log(3), -1e6 - np.log(3)], rtol=1e-9
    )
    assert np.all(np.any(extreme.sample(50, np.random.default_rng(0)) == 0, axis=1))


def test_a_vanishing_marginal_is_none():
    design = ConditionalPoisson.fit([5e-324, 0.3, 0.7, 0.6, 0.4])
    assert design.marginals[0] == 0.0


def test_rounding_errors_in_marginals_are_mended_and_larger_ones_refused():
    for make in MARGINALS_USERS:
        design = make([0.5, 0.5 + 5e-10, 1.0 + 1e-16, 0.0])
        assert design.marginals.sum() == pytest.approx(2.0, abs=1e-7)
        with pytest.raises(ValueError, match=r"marginals must sum to an integer"):
            make([0.5, 0.5 + 1e-8, 1.0, 0.0])
    assert DependentRounding.fit([0.5, 0.5 + 5e-10]).marginals.sum() == pytest.approx(
        1.0, abs=1e-15
    )


@pytest.mark.parametrize("seed", range(40))
def test_systematic_never_lists_an_arm_twice(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 12))
    k = int(rng.integers(1, m))
    design = Systematic.fit(waterfill(np.exp(rng.normal(0, 2, m)), k))
    sets, lengths = design.listed
    assert all(len(set(row)) == k for row in sets.tolist())
    assert lengths.sum() == pytest.approx(1.0)
    given = np.zeros(m)
    for row, length in zip(sets, lengths, strict=True):
        given[row] += length
    np.testing.assert_allclose(given, design.marginals, atol=1e-12)


def test_a_refit_starts_where_the_design_is():
    """With a tolerance that any weights meet, the start is what comes out."""
    target, other = random_policy(8, 3, 1.0), random_policy(8, 3, 1.0, seed=1)
    for kind in (ConditionalPoisson, EnumeratedMaxEntropy):
        design = kind.fit(target)
        moved = design.refit(other, tol=1.0)
        if kind is ConditionalPoisson:  # a first step is known without evaluating anything
            ratio = other / (1 - other) * (1 - design.marginals) / design.marginals
            variance = (other * (1 - other)).sum()
            power = 1 / (1 + other * (1 - other) / variance)
            step = np.log(((1 + power) * ratio + 1 - power) / ((1 - power) * ratio + 1 + power))
            apart = moved.log_weights - design.log_weights - step
            np.testing.assert_allclose(apart, apart.mean(), atol=1e-8)
            away, left = np.abs(design.marginals - other), np.abs(moved.marginals - other)
            assert 0.0 < left.max() < 0.2 * away.max()
        else:
            np.testing.assert_allclose(moved.log_weights, design.log_weights, atol=1e-8)
        assert np.abs(kind.fit(other, tol=1.0).log_weights - design.log_weights).max() > 0.1
        with pytest.raises(ValueError, match=r"marginals must have shape \(8,\), got \(2,\)"):
            design.refit([0.5, 0.5])


def test_a_refit_starts_at_old_coins_that_are_near_and_at_likely_ones_else():
    """Arm by arm, and up to a factor of all odds; arms without a choice stay what they are."""
    start, target = np.array([0.0, 8.0, -0.3, -9.0, 0.4, -0.2, np.inf, 0.0]), np.full(8, 0.4)
    target[[1, 6, 7]] = 0.6, 1.0, 0.0
    target[:6] *= 2.0 / target[:6].sum()
    old = ConditionalPoisson.from_log_weights(start, 3)
    moved, variance = old.refit(target, tol=1.0), (target * (1.0 - target)).sum()
    expected = np.zeros(6)
    for a, t in enumerate(target[:6]):
        x, power = t / variance, variance / (variance + t * (1.0 - t))
        likely = t / (1.0 - t) * (12.0 - 6.0 * x + x**2) / (12.0 + 6.0 * x + x**2)
        expected[a] = np.log(likely)
        if a not in (1, 3):
            ratio = t / (1.0 - t) * (1.0 - old.marginals[a]) / old.marginals[a]
            step = ((1 + power) * ratio + 1 - power) / ((1 - power) * ratio + 1 + power)
            expected[a] = old.log_weights[a] + np.log(step)
    apart = moved.log_weights[:6] - expected
    np.testing.assert_allclose(apart, apart.mean(), atol=1e-8)
    assert moved.log_weights[6:].tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 100])
def test_the_cells_of_an_alias_table_add_up_to_the_law(n):
    """Exactly, up to rounding; entries without a chance, many alike and one of nearly all."""
    rng = np.random.default_rng(n)
    one = np.eye(n)[0]
    for weights in (
        np.ones(n),
        one,
        one + 1e-9,
        rng.gamma(0.1, size=n),
        rng.integers(0, 2, n) + one,
    ):
        table = build_alias(weights).tolist()
        bits = len(table).bit_length() - 1
        law = np.zeros(len(table))
        for cell, word in enumerate(table):
            other, own = word % len(table), (word >> bits) / 2 ** (64 - bits)
            law[cell] += own
            law[other] += 1.0 - own
        expected = np.append(weights / weights.sum(), np.zeros(len(table) - n))
        np.testing.assert_allclose(law / len(table), expected, atol=1e-14)


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("start", [[0.0, 1.0, -2.0, 0.5], [np.inf, 1.0, -np.inf, 0.5]])
def test_weights_of_a_mixture_are_those_of_its_chances(eta, start):
    mixture = Mixture(ConditionalPoisson.from_log_weights(start, 2), eta)
    sets = mixture.sample(50, np.random.default_rng(1))
    chances = np.exp(mixture.log_prob(sets))[:, None]
    expected = mixture.marginals[sets] / (3 * chances)  # of C(4 - 1, 2 - 1) sets with an arm
    np.testing.assert_allclose(mixture.weights(sets), expected, rtol=1e-12)


@pytest.mark.parametrize(("m", "k"), [(70, 40), (534, 10), ((KEPT + 3) * LEAF, 30)])
def test_rows_of_a_tree_drawn_together_are_those_drawn_one_by_one(m, k):
    """Tables of leaves are kept from row to row; in the last case leaves take turns at a place."""
    p = 0.5 * random_policy(m, k, 2.0)
    tree, arms = build_tree(p, 1.0 - p), np.arange(m)
    together, single = np.empty((60, k), np.int64), np.empty((60, k), np.int64)
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    draw_heads(tree, p, 1.0 - p, arms, together, k, rng)
    for i in range(60):
        draw_heads(tree, p, 1.0 - p, arms, single[i : i + 1], k, other)
    np.testing.assert_array_equal(together, single)
    assert rng.random() == other.random()


def test_a_refit_starts_from_any_design():
    target = random_policy(8, 3, 1.0)
    target[:2], target[2:] = [1.0, 0.0], target[2:] * 2.0 / target[2:].sum()
    far = np.r_[np.zeros(6), 300.0, -700.0]
    for start in (np.full(8, 900.0), np.r_[np.inf, -np.inf, np.zeros(6)], far, -far):
        design = ConditionalPoisson.from_log_weights(start, 3).refit(target)
        assert np.abs(design.marginals - target).max() <= 1e-10


def test_fit_raises_where_it_cannot_converge():
    with pytest.raises(RuntimeError, match=r"the fit did not converge: error .* tol=1e-30; raise"):
        ConditionalPoisson.fit(random_policy(20, 5, 1.0), tol=1e-30)


@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_conditional_poisson_is_the_enumerated_maximum_of_entropy(spread):
    target = random_policy(8, 3, spread, seed=4)
    fast, listed = ConditionalPoisson.fit(target), EnumeratedMaxEntropy.fit(target)
    assert np.abs(listed.marginals - target).max() <= 1e-6
    np.testing.assert_allclose(np.exp(fast.log_prob(listed.sets)), listed.probabilities, atol=1e-7)


def test_entropy_is_largest():
    """Any other law with the same marginals has less entropy."""
    target = np.array([0.9, 0.75, 0.5, 0.35, 0.3, 0.2])
    sets = reference.sets_of(6, 3)

    def entropy(p):
        return -np.sum(p[p > 0] * np.log(p[p > 0]))

    best = np.exp(ConditionalPoisson.fit(target).log_prob(sets))
    membership = np.zeros((len(sets), 6))
    np.put_along_axis(membership, np.array(sets), 1.0, axis=1)
    kernel = np.linalg.svd(membership.T)[2][6:]  # directions that keep all marginals
    for direction in kernel:
        assert entropy(best + 1e-3 * direction) < entropy(best)
        assert entropy(best - 1e-3 * direction) < entropy(best)


def test_pair_marginals_of_many_arms_by_pairs_and_in_full():
    design = ConditionalPoisson.fit(random_policy(300, 40, 1.0))
    full = design.pair_marginals()
    np.testing.assert_allclose(full, full.T, atol=1e-13)
    np.testing.assert_allclose(np.diag(full), design.marginals, atol=1e-14)
    np.testing.assert_allclose(full.sum(axis=1), 40 * design.marginals, atol=1e-9)
    pairs = [[0, 1], [5, 299], [7, 7]]
    np.testing.assert_allclose(
        design.pair_marginals(pairs), [full[0, 1], full[5, 299], full[7, 7]], atol=1e-14
    )
    large = ConditionalPoisson.fit(np.full(6000, 0.5))
    assert large.pair_marginals([[0, 1]])[0] == pytest.approx(0.5 * 2999 / 5999, abs=1e-12)
    with pytest.raises(ValueError, match="the full matrix needs m <= 5000, got m=6000; name pairs"):
        large.pair_marginals()


def test_pair_marginals_with_certain_arms():
    design = ConditionalPoisson.fit([1.0, 0.8, 0.7, 0.5, 0.0])
    sets = reference.sets_of(5, 3)
    joint = reference.pairs_of(sets, np.exp(design.log_prob(sets)), 5)
    np.testing.assert_allclose(design.pair_marginals(), joint, atol=1e-13)


def test_mixture_is_the_weighted_sum():
    design, eta = ConditionalPoisson.fit([0.9, 0.6, 0.4, 0.1]), 0.3
    sets = reference.sets_of(4, 2)
    expected = 0.7 * np.exp(design.log_prob(sets)) + 0.3 / 6
    np.testing.assert_allclose(np.exp(Mixture(design, eta).log_prob(sets)), expected, rtol=1e-12)


def test_systematic_is_the_line_of_marginals():
    marginals = np.array([0.9, 0.75, 0.5, 0.35, 0.3, 0.2])
    design = Systematic.fit(marginals)
    starts = (np.arange(100_000) + 0.5) / 100_000
    counts = {}
    for u in starts[::50]:
        key = tuple(sorted(reference.systematic(marginals, 3, u)))
        counts[key] = counts.get(key, 0) + 1
    for key, n in counts.items():
        assert np.exp(design.log_prob([key]))[0] == pytest.approx(n / 2000, abs=2e-3)
    assert len(counts) <= 6


def test_dependent_rounding_is_negatively_correlated():
    marginals = np.array([0.9, 0.75, 0.5, 0.35, 0.3, 0.2])
    rows = DependentRounding.fit(marginals).sample(100_000, np.random.default_rng(0))
    inside = np.zeros((len(rows), 6))
    np.put_along_axis(inside, rows, 1.0, axis=1)
    joint = inside.T @ inside / len(rows)
    off = ~np.eye(6, dtype=bool)
    assert np.all(joint[off] <= np.outer(marginals, marginals)[off] + 6 * 0.5 / np.sqrt(len(rows)))


def test_how_a_conditional_poisson_design_draws():
    """Few sets and many draws: a table of the sets; else one of the arms, or a tree of them."""
    design, rng = ConditionalPoisson.fit([0.9, 0.8, 0.7, 0.6]), np.random.default_rng(0)
    design.sample(3, rng)  # of four sets
    assert "_listing" not in vars(design)
    design.sample(4, rng)
    assert "_listing" in vars(design)
    assert ConditionalPoisson.fit(np.full(20, 0.5)).listed is None
    sets, chances = ConditionalPoisson.fit([1.0, 0.5, 0.25, 0.25]).listed
    assert sets.tolist() == [[0, 1], [0, 2], [0, 3]]
    np.testing.assert_allclose(chances, [0.5, 0.25, 0.25], atol=1e-9)


def test_tally_of_many_draws_is_a_few_rows():
    rows, times = Uniform(6, 3).tally(10**9, np.random.default_rng(0))
    assert len(rows) == 20
    assert times.sum() == 10**9
    rows, times = Systematic.fit(random_policy(534, 10, 1.0)).tally(10**9, np.random.default_rng(0))
    assert len(rows) <= 534
    assert times.sum() == 10**9


@pytest.mark.parametrize("make", MARGINALS_USERS)
@pytest.mark.parametrize(
    ("marginals", "error", "message"),
    [
        ([0.5, 1.2, 0.3], ValueError, r"marginals must lie in \[0, 1\], got marginals\[1\]=1.2"),
        ([0.5, -0.5, 1.0], ValueError, r"marginals\[1\]=-0.5"),
        ([0.5, np.nan], ValueError, r"marginals must lie in .*, got marginals\[1\]=nan"),
        ([0.5, np.inf], ValueError, r"marginals\[1\]=inf"),
        (
            [0.5, 0.6],
            ValueError,
            "marginals must sum to an integer k >= 1, got 1.1; make them with",
        ),
        ([0.0, 0.0], ValueError, "marginals must sum to an integer k >= 1, got 0"),
        ([], ValueError, r"marginals must be a non-empty vector, got shape \(0,\)"),
        ([[0.5, 0.5]], ValueError, r"got shape \(1, 2\)"),
        ("half", TypeError, "marginals must be a vector of real numbers, got 'half'"),
    ],
)
def test_bad_marginals_are_refused_by_every_design(make, marginals, error, message):
    with pytest.raises(error, match=message):
        make(marginals)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Uniform(5, 6), ValueError, "k must satisfy 1 <= k <= m, got k=6 with m=5"),
        (lambda: Uniform(0, 1), ValueError, "m must be at least 1, got m=0"),
        (lambda: Mixture(Uniform(3, 1), 1.5), ValueError, r"eta must lie in \[0, 1\], got eta=1.5"),
        (
            lambda: Mixture([0.5], 0.5),
            TypeError,
            "design must be a design with log_prob, .* got list",
        ),
        (
            lambda: ConditionalPoisson.from_log_weights([0.0, np.nan], 1),
            ValueError,
            r"theta must not be nan, got theta\[1\]",
        ),
        (
            lambda: ConditionalPoisson.from_log_weights([np.inf, np.inf, 0], 1),
            ValueError,
            "k must lie between the 2 arms always in and the 3 arms ever in, got k=1",
        ),
        (
            lambda: ConditionalPoisson.fit([0.5, 0.5], tol=0),
            ValueError,
            "tol must be above 0, got tol=0",
        ),
        (
            lambda: ConditionalPoisson.fit([0.5, 0.5]).pair_marginals([[0, 2]]),
            ValueError,
            "pairs must hold arms in 0..1, got 2",
        ),
        (
            lambda: ConditionalPoisson.fit([0.5, 0.5]).pair_marginals([[-1, 0]]),
            ValueError,
            "pairs must hold arms in 0..1, got -1",
        ),
        (
            lambda: ConditionalPoisson.fit([0.5, 0.5]).pair_marginals([0, 1]),
            ValueError,
            r"pairs must have shape \(n, 2\), got \(2,\)",
        ),
        (
            lambda: ConditionalPoisson.from_log_weights([[0.0]], 1),
            ValueError,
            r"theta must be a non-empty vector, got shape \(1, 1\)",
        ),
        (
            lambda: Mixture(Uniform(3, 1), np.nextafter(1, 2)),
            ValueError,
            r"got eta=1.0000000000000002",
        ),
        (lambda: Mixture(Uniform(3, 1), "half"), TypeError, "eta must be a number, got 'half'"),
        (lambda: DependentRounding.fit(np.array([0.5j, 1])), TypeError, "of real numbers"),
        (
            lambda: EnumeratedMaxEntropy.fit(np.full(60, 0.5)),
            ValueError,
            r"listing all sets needs at most 1e\+07 of them, got 1.18e\+17; use ConditionalPoisson",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("m", [6, 10**15])
def test_equal_rows_are_merged_in_lexicographic_order(m):
    rows = np.sort(np.random.default_rng(1).integers(0, 6, (500, 3)), axis=1)
    times = np.random.default_rng(2).integers(1, 9, 500)
    found, totals = merge(rows, times, m)
    expected: dict[tuple[int, ...], int] = {}
    for row, n in zip(rows.tolist(), times.tolist(), strict=True):
        expected[tuple(row)] = expected.get(tuple(row), 0) + n
    assert dict(zip(map(tuple, found.tolist()), totals.tolist(), strict=True)) == expected
    assert found.tolist() == sorted(found.tolist())

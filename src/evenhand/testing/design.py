"""What holds for every design."""

from math import comb, factorial, log
from typing import Any

import numpy as np

from evenhand.designs import Design, ExplicitDesign, PairMarginals, estimate_pair_marginals
from evenhand.designs.pairs import listed_pairs
from evenhand.subsets.combinations import all_orders, all_sets
from evenhand.testing.running import Check, made, raises, run_checks
from evenhand.testing.statistics import (
    ALPHA,
    MIN_EXPECTED,
    check_estimate,
    check_frequencies,
    count_sets,
)
from evenhand.typing import Floats, Ints

N = 200_000  # draws whose frequencies are compared with the law
MAX_LISTED = 10_000  # sets of a design whose law is listed
MAX_PAIRED = 200  # arms of a design all of whose pairs are looked at
MAX_ORDERED = 5  # arms in a set all of whose orders are counted


def check_design(make: Any) -> None:
    """Run all checks of :data:`DESIGN_CHECKS` on a design.

    Parameters
    ----------
    make
        A design, or a function without arguments that makes one. It should have few arms: the law
        is checked set by set where there are at most 10 000 sets.

    Raises
    ------
    AssertionError
        It says which checks failed, and what each found.

    Examples
    --------
    >>> from evenhand.designs import Uniform
    >>> check_design(Uniform(5, 2))
    """
    run_checks(DESIGN_CHECKS, make)


def marginals_sum_to_k(make: Any) -> None:
    """``marginals`` holds m numbers in [0, 1] that sum to k."""
    design = _design(make)
    marginals = np.asarray(design.marginals)
    assert marginals.shape == (design.m,), (
        f"marginals must have shape ({design.m},), got {marginals.shape}"
    )
    inside = (marginals >= -1e-9) & (marginals <= 1.0 + 1e-9)
    assert inside.all(), f"marginals must lie in [0, 1], got {marginals[~inside][0]:g}"
    total = marginals.sum()
    assert abs(total - design.k) <= 1e-7, f"marginals must sum to k={design.k}, got {total:.9g}"


def sets_have_k_distinct_arms(make: Any) -> None:
    """``sample(n, rng)`` returns integers (n, k), each row k different arms in 0..m-1."""
    design = _design(make)
    for n in (0, 1, 500):
        rows = design.sample(n, np.random.default_rng(3))
        assert rows.shape == (n, design.k), (
            f"sample({n}) must have shape ({n}, {design.k}), got {rows.shape}"
        )
        assert np.issubdtype(rows.dtype, np.integer), f"arms must be integers, got {rows.dtype}"
        for row in rows.tolist():
            assert len(set(row)) == design.k, f"arms of a set must be different, got {row}"
            assert 0 <= min(row) <= max(row) < design.m, (
                f"arms must lie in 0..{design.m - 1}, got {row}"
            )


def same_generator_same_sets(make: Any) -> None:
    """All randomness comes from the generator."""
    one, other = (_design(make).sample(500, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, other), (
        "the same generator must give the same sets; draw all random numbers from rng"
    )


def probabilities_sum_to_one(make: Any) -> None:
    """``log_prob`` of all sets is a law. Needs ``log_prob``, and few sets."""
    law = _law(_design(make))
    if law is not None:
        total = law[1].sum()
        assert abs(total - 1.0) <= 1e-9, f"probabilities of all sets must sum to 1, got {total:.9g}"


def probabilities_give_the_marginals(make: Any) -> None:
    """The marginals are those of the law by ``log_prob``. Needs ``log_prob``, and few sets."""
    design = _design(make)
    law = _law(design)
    if law is not None:
        sets, probabilities = law
        given = np.bincount(sets.ravel(), np.repeat(probabilities, design.k), design.m)
        gap = np.abs(given - design.marginals)
        assert gap.max() <= 1e-9, (
            f"marginals must be those of log_prob, got {design.marginals[gap.argmax()]:.9g} for "
            f"arm {gap.argmax()} instead of {given[gap.argmax()]:.9g}"
        )


def log_prob_ignores_the_order(make: Any) -> None:
    """A set is as likely in whatever order its arms are given. Needs ``log_prob``, and few sets."""
    design = _design(make)
    law = _law(design)
    if law is not None:
        one, other = (np.exp(design.log_prob(sets)) for sets in (law[0], law[0][:, ::-1]))
        wrong = np.flatnonzero(~np.isclose(one, other, rtol=1e-12, atol=0.0))
        assert not wrong.size, (
            f"log_prob must not depend on the order of arms, "
            f"got other values for {law[0][wrong[0]].tolist()} and its reverse"
        )


def weights_are_those_of_the_law(make: Any) -> None:
    r"""``weights`` are :math:`q_a / (\binom{M-1}{K-1} P(S))`. Needs ``log_prob``, and few sets."""
    design = _design(make)
    law = _law(design)
    if law is None:
        return
    sets, probabilities = law[0][law[1] > 0.0], law[1][law[1] > 0.0]
    sets_of_an_arm = comb(design.m - 1, design.k - 1)
    expected = design.marginals[sets] / (sets_of_an_arm * probabilities[:, None])
    assert np.allclose(design.weights(sets), expected, rtol=1e-9), (
        "weights must be the marginal over C(m-1, k-1) times the probability of the set"
    )


def draws_follow_the_law(make: Any) -> None:
    """Sets are drawn as often as ``log_prob`` says. Needs ``log_prob``, and few sets."""
    design = _design(make)
    law = _law(design)
    if law is not None:
        _compare(design.sample(N, np.random.default_rng(11)), *law)


def tallies_follow_the_law(make: Any) -> None:
    """``tally`` counts as many sets as asked, and in the law of draws. Needs ``log_prob``."""
    design = _design(make)
    law = _law(design)
    for n in (500, N):
        rows, times = design.tally(n, np.random.default_rng(12))
        assert times.sum() == n, f"tally({n}) must count {n} sets, got {times.sum()}"
    if law is not None:
        _compare(np.repeat(rows, times, axis=0), *law)


def draws_have_the_marginals(make: Any) -> None:
    """Each arm is drawn as often as its marginal says."""
    design = _design(make)
    n, q = 40_000, np.clip(design.marginals, 0.0, 1.0)
    rows = design.sample(n, np.random.default_rng(14))
    shares = np.bincount(rows.ravel(), minlength=design.m) / n
    # the second term of Bernstein's bound: counts of rare arms are not normal
    rare = 2 / 3 * log(2 * design.m / ALPHA) / n
    check_estimate(shares, np.sqrt(q * (1.0 - q) / n), q, resolution=0.02, rounding=rare)


def pairs_meet_as_often_as_it_says(make: Any) -> None:
    """``pair_marginals`` are those of the law, or of draws. Needs ``pair_marginals``."""
    design = _design(make)
    known = isinstance(design, PairMarginals)
    if not known or design.m > MAX_PAIRED:
        return
    joint, law = design.pair_marginals(), _law(design)
    if law is not None:
        expected = listed_pairs(*law, design.m) + np.diag(design.marginals)
        gap = np.abs(joint - expected).max()
        assert gap <= 1e-8, f"pair_marginals must be those of log_prob, got some off by {gap:.3g}"
        return
    n = 40_000
    shares = estimate_pair_marginals(design, n, np.random.default_rng(15)).value
    rare = 2 / 3 * log(2 * design.m**2 / ALPHA) / n
    errors = np.sqrt(np.clip(joint * (1.0 - joint), 0.0, None) / n)
    check_estimate(shares.ravel(), errors.ravel(), joint.ravel(), resolution=0.02, rounding=rare)


def entropy_is_that_of_the_law(make: Any) -> None:
    """``entropy`` is that of ``log_prob``. Needs ``log_prob``, and few sets."""
    design = _design(make)
    law = _law(design)
    if law is not None:
        possible = law[1][law[1] > 0.0]
        expected, found = -(possible * np.log(possible)).sum(), design.entropy()
        assert abs(found - expected) <= 1e-8, f"entropy must be {expected:.9g}, got {found:.9g}"


def orders_are_uniformly_random(make: Any) -> None:
    """A drawn set stands in any order with the same chance. Needs sets of at most 5 arms."""
    design = _design(make)
    if design.k > MAX_ORDERED:
        return
    rows = design.sample(60_000, np.random.default_rng(13))
    ranks = np.argsort(np.argsort(rows, axis=1), axis=1)
    index = {tuple(order): i for i, order in enumerate(all_orders(design.k).tolist())}
    counts = np.zeros(len(index), np.int64)
    for rank, times in zip(*np.unique(ranks, axis=0, return_counts=True), strict=True):
        counts[index[tuple(rank.tolist())]] += times
    check_frequencies(counts, np.full(len(index), 1 / factorial(design.k)))


def bad_arguments_are_refused(make: Any) -> None:
    """Wrong numbers, generators and sets raise ValueError or TypeError: ``Design`` does it all."""
    design, rng = _design(make), np.random.default_rng(0)
    for draw, name in ((design.sample, "sample"), (design.tally, "tally")):
        with raises(ValueError, when=f"{name} with n=-1"):
            draw(-1, rng)
        with raises(TypeError, when=f"{name} with rng=None"):
            draw(1, None)
    if _law(design) is None:
        return
    for rows, what in [
        (np.arange(design.k + 1)[None, :], f"sets of {design.k + 1} arms instead of {design.k}"),
        (np.full((1, design.k), design.m), f"arm {design.m} of arms 0..{design.m - 1}"),
        (np.full((1, design.k), 0.5), "an arm that is no integer"),
    ]:
        with raises(ValueError, TypeError, when=f"log_prob with {what}"):
            design.log_prob(rows)


DESIGN_CHECKS: list[Check] = [
    marginals_sum_to_k,
    sets_have_k_distinct_arms,
    same_generator_same_sets,
    probabilities_sum_to_one,
    probabilities_give_the_marginals,
    log_prob_ignores_the_order,
    weights_are_those_of_the_law,
    draws_follow_the_law,
    tallies_follow_the_law,
    draws_have_the_marginals,
    pairs_meet_as_often_as_it_says,
    entropy_is_that_of_the_law,
    orders_are_uniformly_random,
    bad_arguments_are_refused,
]


def _design(make: Any) -> Any:
    design = made(make, "sample")
    assert isinstance(design, Design), (
        f"a design must derive from evenhand.designs.Design, got {type(design).__name__}"
    )
    return design


def _law(design: Any) -> tuple[Ints, Floats] | None:
    """All sets and their probabilities; None where they are too many or not known."""
    if not isinstance(design, ExplicitDesign) or comb(design.m, design.k) > MAX_LISTED:
        return None
    sets = all_sets(design.m, design.k)
    return sets, np.exp(design.log_prob(sets))


def _compare(rows: Ints, sets: Ints, probabilities: Floats) -> None:
    """Check drawn sets against their law; the rarest sets are counted as one."""
    counts, n = count_sets(rows, sets), len(rows)
    order = np.argsort(probabilities)
    possible = order[probabilities[order] > 0.0]
    pooled = int(np.searchsorted(np.cumsum(n * probabilities[possible]), MIN_EXPECTED)) + 1
    rare, rest = possible[:pooled], np.setdiff1d(order, possible[:pooled])
    check_frequencies(
        np.append(counts[rest], counts[rare].sum()),
        np.append(probabilities[rest], probabilities[rare].sum()),
    )

"""Designs for people who sample: pairs, variances, labels; against enumeration and against R."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand import designs
from evenhand.designs import (
    ConditionalPoisson,
    Cube,
    DependentRounding,
    EnumeratedMaxEntropy,
    Mixture,
    Sampford,
    Systematic,
    Uniform,
    estimate_pair_marginals,
    horvitz_thompson,
)
from evenhand.testing.statistics import check_frequencies
from tests import reference

PI = np.array([0.9, 0.75, 0.5, 0.35, 0.3, 0.2])
Y = np.array([31.0, 25, 20, 11, 12, 6])
R = json.loads((Path(__file__).parents[1] / "r" / "designs.json").read_text())
R_PI, R_Y = np.array(R["marginals"]), np.array(R["y"])


def law_of(design):
    sets = np.array(reference.sets_of(design.m, design.k))
    return sets, np.exp(design.log_prob(sets))


@pytest.mark.parametrize(
    ("kind", "name", "tolerance"),
    [
        (ConditionalPoisson, "max_entropy_pairs", 1e-6),  # R stops its fit there
        (Sampford, "sampford_pairs", 1e-12),
        (Systematic, "systematic_pairs", 1e-12),
    ],
)
def test_pair_marginals_are_those_of_r(kind, name, tolerance):
    theirs = np.array(R[name]).reshape(8, 8)
    np.testing.assert_allclose(kind.fit(R_PI).pair_marginals(), theirs, rtol=0, atol=tolerance)
    other = Systematic if kind is not Systematic else Sampford  # they do tell designs apart
    assert np.abs(other.fit(R_PI).pair_marginals() - theirs).max() > 0.05


def test_totals_and_variances_are_those_of_r():
    row = np.array(R["sample"], dtype=int)
    found = horvitz_thompson(R_Y[row], row, ConditionalPoisson.fit(R_PI))
    assert found.total == pytest.approx(R["total"][0], rel=1e-9)
    assert found.total == pytest.approx(R["survey_total"][0], rel=1e-9)
    assert found.mean == pytest.approx(R["mean"][0], rel=1e-9)
    assert found.syg_variance == pytest.approx(R["sen_yates_grundy"][0], rel=1e-5)
    assert found.syg_variance == pytest.approx(R["survey_yates_grundy"][0], rel=1e-5)
    shares = (1 - R_PI[row]) / (1 - R_PI[row]).sum()  # Deville has another factor than k / (k - 1)
    deville = found.hajek_variance * 3 / 4 / (1 - (shares**2).sum())
    assert deville == pytest.approx(R["deville"][0], rel=1e-8)


def test_the_cube_meets_pairs_as_often_as_that_of_r():
    theirs, n = np.array(R["cube_pairs"]).reshape(8, 8), R["cube_draws"]
    design = Cube.fit(R_PI, R_PI * np.array(R["cube_balance"]))
    ours = estimate_pair_marginals(design, 40_000, np.random.default_rng(2))
    first, second = np.triu_indices(8, 1)
    p = ours.value[first, second]
    z = (p - theirs[first, second]) / np.sqrt(2 * p * (1 - p) / n)
    assert np.abs(z).max() < 4.5
    plain = ConditionalPoisson.fit(R_PI).pair_marginals()[first, second]
    assert np.abs((plain - theirs[first, second]) / np.sqrt(p * (1 - p) / n)).max() > 20


def test_the_cube_has_the_law_of_its_definition():
    pi, x = np.array([0.7, 0.5, 0.3, 0.3, 0.2]), np.array([3.0, 1.0, 4.0, 1.5, 5.0])
    law = reference.cube_law(pi, x[:, None])
    assert sum(law.values()) == pytest.approx(1.0)
    sets = np.array(sorted(law))
    given = reference.marginals_of(sets.tolist(), [law[tuple(s)] for s in sets], 5)
    np.testing.assert_allclose(given, pi, atol=1e-9)
    rows = np.sort(Cube.fit(pi, x).sample(40_000, np.random.default_rng(1)), axis=1)
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    assert {tuple(row) for row in kinds.tolist()} <= set(law)
    found = dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True))
    check_frequencies(
        np.array([found.get(tuple(s), 0) for s in sets.tolist()]),
        np.array([law[tuple(s)] for s in sets.tolist()]),
    )
    # balanced by another variable it is another law
    other = np.sort(Cube.fit(pi, x[::-1]).sample(40_000, np.random.default_rng(1)), axis=1)
    counts = np.array([int((other == s).all(axis=1).sum()) for s in sets])
    with pytest.raises(AssertionError):
        check_frequencies(counts, np.array([law[tuple(s)] for s in sets.tolist()]))


def test_the_cube_balances_what_goes_along_with_its_variables():
    rng = np.random.default_rng(1)
    x = rng.random((400, 3)) + 0.5
    pi = np.full(400, 0.1)
    y = x @ [3.0, 2.0, 1.0] + 0.01 * rng.normal(size=400)
    spread = [
        (y[design.sample(300, rng)] / 0.1).sum(axis=1).std()
        for design in (Cube.fit(pi, x), Uniform(400, 40))
    ]
    assert spread[0] < 0.25 * spread[1]


def test_the_cube_takes_no_equations_and_dependent_ones():
    rng = np.random.default_rng(1)
    x = np.arange(6.0)
    for balance in (None, np.stack([x, 2 * x, np.ones(6), np.zeros(6)], axis=1)):
        rows = Cube.fit(PI, balance).sample(20_000, rng)
        shares = np.bincount(rows.ravel(), minlength=6) / 20_000
        assert np.abs(shares - PI).max() < 5 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    "design",
    [
        ConditionalPoisson.fit(PI),
        EnumeratedMaxEntropy.fit(PI),
        Sampford.fit(PI),
        Uniform(6, 3),
        Mixture(Systematic.fit(PI), 0.3),
    ],
    ids=lambda design: type(design).__name__,
)
def test_means_over_all_samples_are_the_truth(design):
    sets, chances = law_of(design)
    found = [horvitz_thompson(Y[row], row, design) for row in sets]
    totals = np.array([one.total for one in found])
    assert chances @ totals == pytest.approx(Y.sum(), rel=1e-9)
    variance = chances @ (totals - Y.sum()) ** 2
    assert chances @ [one.syg_variance for one in found] == pytest.approx(variance, rel=1e-7)
    hajek = chances @ [one.hajek_variance for one in found]
    if not isinstance(design, Mixture):  # of high entropy
        assert hajek == pytest.approx(variance, rel=0.35)
    # the pairs of another design give another mean
    wrong = Systematic.fit(design.marginals).pair_marginals() + 0.01
    means = [horvitz_thompson(Y[r], r, design, pairs=wrong[np.ix_(r, r)]) for r in sets]
    assert chances @ [one.syg_variance for one in means] != pytest.approx(variance, rel=0.01)


def test_a_census_has_no_variance():
    found = horvitz_thompson(Y, np.arange(6), Uniform(6, 6))
    assert (found.total, found.syg_variance, found.hajek_variance) == (Y.sum(), 0.0, 0.0)


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        (Systematic.fit(PI), "units 2 and 3 are never in a sample together under this Systematic"),
        (ConditionalPoisson.fit([0.4, 0.3, 0.2, 0.1]), "units 0 and 1 are never"),
        (Cube.fit(PI), "Cube does not know its pair marginals; give pairs="),
        (Systematic.fit(np.full(6000, 1 / 600)), "units 0 and 1 are never"),
    ],
    ids=["systematic", "one", "cube", "large"],
)
def test_a_variance_that_does_not_exist_is_refused_with_the_reason(design, reason):
    row = design.sample(1, np.random.default_rng(1))[0]
    found = horvitz_thompson(np.ones(design.k), row, design)
    assert found.total == pytest.approx((1 / design.marginals[row]).sum())
    with pytest.raises(ValueError, match=reason):
        found.syg_variance  # noqa: B018
    assert "syg_variance=refused" in repr(found)


def test_pairs_found_by_drawing_stand_in_for_those_not_known():
    rng = np.random.default_rng(3)
    x = np.array([3.0, 1, 4, 1, 5, 9])
    design = Cube.fit(PI, x)
    joint = estimate_pair_marginals(design, 100_000, rng)
    np.testing.assert_allclose(np.diag(joint.value), PI, atol=5 * joint.stderr.max())
    row = design.sample(1, rng)[0]
    found = horvitz_thompson(Y[row], row, design, pairs=joint.value[np.ix_(row, row)])
    assert np.isfinite(found.syg_variance)


def test_units_have_labels():
    names = ["ada", "bob", "cy", "dee", "eve", "flo"]
    design = ConditionalPoisson.fit(PI).named(names)
    row = design.sample(1, np.random.default_rng(1))[0]
    labels = design.label(row)
    assert labels.tolist() == [names[a] for a in row]
    assert "ada" in design._repr_html_()
    one, other = (horvitz_thompson(Y[row], s, design) for s in (row, labels))
    assert one == other
    assert DependentRounding.fit(PI).named(names).names == tuple(names)
    assert design.names is not None
    assert ConditionalPoisson.fit(PI).names is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.named(["a", "b"]), "6 different labels, one per arm, got 2"),
        (lambda d: d.named(list("aabcde")), "got 6 of which 5 are different"),
        (lambda d: d.named("abcdef"), "a list of labels"),
        (lambda d: d.named(list("abcdef")).unlabel(["z"]), "names of the design, got 'z'"),
        (lambda d: horvitz_thompson([1, 2], [0, 1, 2], d), "one number per unit of the sample, 3"),
        (lambda d: horvitz_thompson([1, 2, 3], [0, 1, 1], d), "3 different units"),
        (lambda d: horvitz_thompson([1, 2, 3], [0, 1, 6], d), "arms in 0..5"),
        (lambda d: horvitz_thompson([1, 2, 3], [0, 1, 2], d, pairs=[1]), r"shape \(3, 3\)"),
        (lambda d: horvitz_thompson([1, 2, 3], [0, 1, 2], 5), "one of evenhand.designs"),
        (
            lambda d: horvitz_thompson([1.0], [0], ConditionalPoisson.fit([0.5, 0.5, 0.0])),
            "above 0, got 0 for unit 2",
        ),
        (lambda d: Cube.fit(PI, np.ones(5)), r"balance must have shape \(6,\) or \(6, q\)"),
        (lambda d: Cube.fit(PI, [np.nan] * 6), "balance must be finite"),
        (lambda d: estimate_pair_marginals(d, 1, np.random.default_rng(1)), "n must be at least 2"),
        (lambda d: Mixture(ConditionalPoisson.fit([0.5] * 60), 0.5).entropy(), "lists all sets"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(ConditionalPoisson.fit(PI))


@pytest.mark.parametrize("name", ["log_prob", "pair_marginals", "entropy"])
def test_what_the_cube_cannot_say_is_absent(name):
    design = Cube.fit(PI)
    assert not hasattr(design, name)
    with pytest.raises(AttributeError, match="use estimate_pair_marginals"):
        getattr(design, name)


@pytest.mark.parametrize("kind", [ConditionalPoisson, Sampford, Systematic, DependentRounding])
def test_pairs_of_many_arms_add_up(kind):
    """Row sums of pair marginals are k times the marginal: the size of the sample is fixed."""
    rng = np.random.default_rng(4)
    pi = designs.ConditionalPoisson.from_log_weights(rng.normal(0, 1.5, 400), 60).marginals
    design = kind.fit(pi)
    joint = design.pair_marginals()
    np.testing.assert_allclose(joint.sum(axis=1), 60 * design.marginals, rtol=1e-9)
    pairs = rng.integers(0, 400, (50, 2))
    np.testing.assert_allclose(design.pair_marginals(pairs), joint[tuple(pairs.T)], atol=1e-14)


def test_pairs_of_a_hundred_thousand_arms_by_name():
    pi = np.full(100_000, 0.01)
    for kind in (Sampford, ConditionalPoisson, DependentRounding):
        assert kind.fit(pi).pair_marginals([[0, 5]])[0] >= 0.0
    expected = 0.01 * 999 / 99_999
    assert Sampford.fit(pi).pair_marginals([[0, 5]])[0] == pytest.approx(expected, rel=1e-6)

"""What holds for every design."""

import numpy as np
import pytest

from evenhand.designs import DependentRounding
from evenhand.testing import DESIGN_CHECKS
from evenhand.testing.statistics import check_frequencies, count_sets
from tests import reference
from tests.contracts import DESIGNS

designs = pytest.mark.parametrize("make", DESIGNS.values(), ids=DESIGNS)


@designs
@pytest.mark.parametrize("check", DESIGN_CHECKS)
def test_designs(check, make):
    check(make)


@pytest.mark.statistical
def test_the_law_check_can_fail():
    """Negative control: a law with 3 % of its mass moved between two sets is caught."""
    design = DESIGNS["conditional_poisson"]()
    sets = reference.sets_of(design.m, design.k)
    wrong = np.exp(design.log_prob(sets))
    order = np.argsort(wrong)
    wrong[order[-1]] -= 0.03
    wrong[order[-2]] += 0.03
    counts = count_sets(design.sample(200_000, np.random.default_rng(11)), sets)
    with pytest.raises(AssertionError, match="chi-square"):
        check_frequencies(counts, wrong)


@pytest.mark.statistical
def test_equal_marginals_are_not_the_same_law():
    """Negative control: systematic draws have the marginals but not the maximum-entropy law."""
    design = DESIGNS["conditional_poisson"]()
    sets = reference.sets_of(design.m, design.k)
    other = DESIGNS["systematic"]().sample(200_000, np.random.default_rng(11))
    with pytest.raises(AssertionError, match="chi-square"):
        check_frequencies(count_sets(other, sets), np.exp(design.log_prob(sets)))


def test_dependent_rounding_has_no_log_prob():
    with pytest.raises(NotImplementedError, match="no closed form for the probability of a set"):
        DependentRounding([0.5, 0.5]).log_prob([[0]])


@designs
def test_bad_arguments_are_refused(make):
    design = make()
    with pytest.raises(ValueError, match="n must be at least 0, got n=-1"):
        design.sample(-1, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got NoneType"):
        design.sample(1, None)
    with pytest.raises(ValueError, match="n must be at least 0, got n=-2"):
        design.tally(-2, np.random.default_rng(0))
    with pytest.raises(ValueError, match=rf"sets must have shape \(n, {design.k}\)"):
        design.log_prob([list(range(design.k + 1))])
    with pytest.raises(ValueError, match="sets must hold distinct arms"):
        design.log_prob([[design.m] * design.k])
    with pytest.raises(TypeError, match="sets must hold integers"):
        design.log_prob([[0.5] * design.k])

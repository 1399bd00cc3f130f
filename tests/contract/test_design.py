"""What holds for every design."""

import numpy as np
import pytest

from evenhand.designs import DependentRounding, ExplicitDesign
from evenhand.testing import DESIGN_CHECKS
from evenhand.testing.statistics import check_frequencies, count_sets
from tests import reference
from tests.contracts import DESIGNS

designs = pytest.mark.parametrize("make", DESIGNS.values(), ids=DESIGNS)
UNKNOWN = ("dependent_rounding", "cube", "cube_certain")  # nobody knows how likely a set is
explicit = pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, make in DESIGNS.items() if name not in UNKNOWN]
)


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
    design = DependentRounding.fit([0.5, 0.5])
    assert not isinstance(design, ExplicitDesign)
    for name in ("log_prob", "weights"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; use ConditionalPoisson"):
            getattr(design, name)
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        design.colour  # noqa: B018


@designs
def test_a_design_says_what_it_is(make):
    design = make()
    line = repr(design)
    assert type(design).__name__ in line
    assert f"m={design.m}, k={design.k}, marginals=" in line
    assert len(line) < 100
    assert "\n" not in line
    table = design._repr_html_()
    assert table.count("<tr>") == design.m + 1


@designs
def test_absurd_numbers_of_draws_are_refused_at_once(make):
    design, rng = make(), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"n=1\d* sets of \d arms would take .* GiB of memory"):
        design.sample(10**18, rng)
    with pytest.raises(ValueError, match=r"n must be below 2\^63"):
        design.tally(10**30, rng)


@designs
def test_bad_arguments_are_refused(make):
    design = make()
    with pytest.raises(ValueError, match="n must be at least 0, got n=-1"):
        design.sample(-1, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got NoneType"):
        design.sample(1, None)
    with pytest.raises(ValueError, match="n must be at least 0, got n=-2"):
        design.tally(-2, np.random.default_rng(0))


@explicit
def test_bad_sets_are_refused(make):
    design = make()
    for ask in (design.log_prob, design.weights):
        with pytest.raises(ValueError, match=rf"sets must have shape \(n, {design.k}\)"):
            ask([list(range(design.k + 1))])
        with pytest.raises(ValueError, match="sets must hold distinct arms"):
            ask([[design.m] * design.k])
        with pytest.raises(TypeError, match="sets must hold integers"):
            ask([[0.5] * design.k])

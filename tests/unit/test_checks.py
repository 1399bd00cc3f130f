"""What is refused at the public boundary, and how it is said."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from evenhand import theory
from evenhand.checks import (
    as_reals,
    check_budget,
    check_integer,
    check_memory,
    check_number,
    check_vector,
    machine_memory,
)
from evenhand.designs import Mixture, Uniform
from evenhand.policy import fair_policy


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_truth_values_are_no_numbers(value):
    message = f"must be a.*, got {bool(value)}; write {int(value)} if meant so"
    for call in (
        lambda: check_integer("seed", value, 0),
        lambda: check_budget(value, 1),
        lambda: check_budget(5, value),
        lambda: check_number("eta", value, 0.0, 1.0),
        lambda: Uniform(value, 1),
        lambda: Mixture(Uniform(3, 1), value),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize("value", ["0.5", b"0.5", np.array("0.5"), np.str_("0.5"), "half", None])
def test_text_is_no_number(value):
    with pytest.raises(TypeError, match="eta must be a number, got"):
        check_number("eta", value, 0.0, 1.0)


@pytest.mark.parametrize("value", [[0.5], np.array([0.5]), [[1], [2, 3]], {}])
def test_a_collection_is_no_number(value):
    with pytest.raises(TypeError, match="eta must be a number, got"):
        check_number("eta", value, 0.0, 1.0)


@pytest.mark.parametrize(
    "values",
    [
        ["0.5", "0.5"],
        ["0.5", 0.5],
        np.array(["0.5", 0.5], dtype=object),
        np.array([b"1"]),
        "half",
        [10**400],
    ],
)
def test_text_that_reads_as_numbers_is_no_vector(values):
    with pytest.raises(TypeError, match="merit must be a vector of real numbers, got"):
        fair_policy(values, 1)


@pytest.mark.parametrize("values", [0.5j, np.complex128(1), [0.5j, 1.0], np.array([1 + 0j])])
def test_complex_numbers_are_refused(values):
    with pytest.raises(TypeError, match=r"x must be real, got .*j"):
        as_reals("x", values, "be real")
    with pytest.raises(TypeError, match=r"x must be a number, got .*j"):
        check_number("x", values, 0.0, 1.0)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), Fraction(1, 2), Decimal("0.5")])
def test_numbers_of_all_kinds_are_taken(value):
    assert check_number("eta", value, 0.0, 1.0) == 0.5
    assert check_number("eta", np.array(value), 0.0, 1.0) == 0.5
    np.testing.assert_array_equal(check_vector("x", [value, value], 0.0, 1.0), [0.5, 0.5])
    assert check_integer("n", np.int32(3), 0) == 3


def test_truth_values_are_taken_as_observations():
    np.testing.assert_array_equal(as_reals("rewards", [[True, False]], "be real"), [[1.0, 0.0]])


def test_a_checked_array_is_the_callers_no_more():
    values = np.array([0.5, 0.5])
    check_vector("x", values, 0.0, 1.0)[0] = 0.0
    assert values[0] == 0.5


def test_what_does_not_fit_into_memory_is_refused_before_it_is_taken():
    check_memory("little", 10)
    assert 2**28 < machine_memory()
    message = r"one number per arm of m=1000000000000000 would take 7.45e\+06 GiB of memory, and "
    with pytest.raises(ValueError, match=message + r"this machine has .* GiB"):
        Uniform(10**15, 2)
    with pytest.raises(ValueError, match="GiB of memory"):
        Uniform(10, 2).sample(10**400, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"counting n=\d* sets of 20 arms would take"):
        Uniform(100, 20).tally(10**18, np.random.default_rng(0))
    assert theory.max_weight(10**15, 2, 1.0) == 5e14  # nothing is kept per arm


def test_memory_is_guessed_where_the_system_does_not_say(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    assert machine_memory() == 2**40

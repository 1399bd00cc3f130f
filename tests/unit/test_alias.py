import numpy as np
import pytest

from evenhand.randomness import alias
from evenhand.randomness.alias import build_alias
from tests.parts import way_in

alias_bits, draw_alias = way_in(alias.alias_bits), way_in(alias.draw_alias)


def law_of(table):
    """Chance of every entry, read off the table's bits."""
    n, bits = len(table), int(alias_bits(table))
    chance = (table >> np.uint64(bits)).astype(float) / 2.0 ** (64 - bits)
    law = chance / n
    np.add.at(law, (table & np.uint64(n - 1)).astype(int), (1 - chance) / n)
    return law


@pytest.mark.parametrize("n", [1, 2, 3, 20, 255, 256, 257, 5000])
def test_the_table_holds_the_law(n):
    weights = np.random.default_rng(n).exponential(size=n) ** 8
    law = law_of(build_alias(weights))
    np.testing.assert_allclose(law[:n], weights / weights.sum(), rtol=1e-9, atol=1e-15)
    assert not law[n:].any()


def test_weights_may_differ_by_any_factor():
    assert law_of(build_alias(np.array([1e-300, 1.0, 1e300])))[2] == 1.0


@pytest.mark.parametrize("n", [3, 1000])
def test_entries_without_weight_are_never_drawn(n):
    weights = np.zeros(n)
    weights[n // 2] = 0.3
    assert law_of(build_alias(weights))[n // 2] == 1.0


def test_a_word_chooses_a_cell_by_its_low_bits_and_tosses_the_others():
    table = build_alias(np.array([1.0, 5.0, 5.0]))
    chance, other = int(table[0]) >> 2, int(table[0]) & 3
    bits = alias_bits(table)
    assert (int(bits), other) != (2, 0)
    assert draw_alias(table, bits, np.uint64((chance - 1) << 2)) == 0
    assert draw_alias(table, bits, np.uint64(chance << 2)) == other


def test_rounding_never_fills_an_empty_cell():
    rng = np.random.default_rng(3)
    for _ in range(200):
        weights = rng.random(33) ** rng.integers(1, 40)
        assert not law_of(build_alias(weights))[33:].any()

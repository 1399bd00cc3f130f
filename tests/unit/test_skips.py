import numpy as np
import pytest

from evenhand.games.cascade.skips import LONGEST, draw_skip, skip_table


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.01, 0.1, 0.5, 0.99, 1 - 1e-9, 1.0])
def test_the_table_holds_the_geometric_law(p):
    """Chance of each skip, read off the table's bits."""
    table = skip_table(p)
    chance = (table >> np.uint64(8)).astype(float) / 2.0**56
    law = np.zeros(LONGEST + 1)
    np.add.at(law, np.arange(LONGEST + 1), chance / (LONGEST + 1))
    np.add.at(law, (table & np.uint64(LONGEST)).astype(int), (1 - chance) / (LONGEST + 1))
    skips = np.arange(LONGEST)
    np.testing.assert_allclose(law[:-1], p * (1 - p) ** skips, rtol=1e-6, atol=1e-17)
    np.testing.assert_allclose(law[-1], (1 - p) ** LONGEST, rtol=1e-12, atol=1e-17)


def test_a_word_chooses_a_cell_by_its_low_bits_and_tosses_the_others():
    table = skip_table(0.1)
    chance, other = int(table[200]) >> 8, int(table[200]) & 255
    assert other != 200
    assert draw_skip(table, np.uint64((chance - 1) << 8 | 200)) == 200
    assert draw_skip(table, np.uint64(chance << 8 | 200)) == other


def test_certain_success_never_skips():
    table = skip_table(1.0)
    words = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64)
    words[:2] = 0, 2**64 - 1
    assert {draw_skip(table, word) for word in words} == {0}

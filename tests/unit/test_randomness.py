import numpy as np

from evenhand.randomness.splitmix import draw_row_word, shuffle_row, start_row, uniform
from evenhand.randomness.xoshiro import draw_word, start_words
from evenhand.testing.statistics import check_frequencies

# the first words of the authors' generator started at 1, 2, 3, 4
XOSHIRO = [
    41943041,
    58720359,
    3588806011781223,
    3591011842654386,
    9228616714210784205,
    9973669472204895162,
    14011001112246962877,
    12406186145184390807,
    15849039046786891736,
    10450023813501588000,
]


def test_words_are_those_of_xoshiro256():
    state = tuple(np.uint64(i) for i in (1, 2, 3, 4))
    words = []
    for _ in XOSHIRO:
        word, state = draw_word(state)
        state = tuple(np.uint64(part) for part in state)  # plain integers would become signed
        words.append(int(word))
    assert words == XOSHIRO


def test_uniform_numbers_lie_below_one():
    assert uniform(np.uint64(0)) == 0.0
    assert uniform(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


def test_states_follow_the_seed():
    rng = np.random.default_rng(1)
    first, second = start_words(rng), start_words(rng)
    assert first.tolist() == start_words(np.random.default_rng(1)).tolist()
    assert len({*first.tolist(), *second.tolist()}) == 8


def test_row_words_are_those_of_splitmix64():
    """The first words of the generator started at 1234567, as its users publish them."""
    state, words = np.uint64(1234567), []
    for _ in range(5):
        word, state = draw_row_word(state)
        words.append(int(word))
        state = np.uint64(state)
    assert words == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_every_order_of_a_row_is_equally_likely():
    n, counts = 60_000, {}
    for number in np.random.default_rng(2).random(n):
        row = np.arange(3)
        shuffle_row(row, np.uint64(start_row(number)))
        counts[tuple(row.tolist())] = counts.get(tuple(row.tolist()), 0) + 1
    check_frequencies(np.array(list(counts.values())), np.full(6, 1 / 6))

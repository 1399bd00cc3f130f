import numpy as np

from evenhand.words import draw_word, shuffle_words, start_words, uniform

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


def test_every_order_of_a_row_is_equally_likely():
    n, state = 60_000, tuple(start_words(np.random.default_rng(2)))
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(n):
        row = np.arange(3)
        state = tuple(np.uint64(part) for part in shuffle_words(row, state))
        counts[tuple(row.tolist())] = counts.get(tuple(row.tolist()), 0) + 1
    assert len(counts) == 6
    chi_square = sum((count - n / 6) ** 2 / (n / 6) for count in counts.values())
    assert chi_square < 20.5  # 0.999 quantile with 5 degrees of freedom

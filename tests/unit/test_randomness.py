import numpy as np
import pytest

from evenhand.randomness import splitmix
from evenhand.randomness.splitmix import start_row
from evenhand.randomness.streams import ALONE, STREAMS, as_generator, stream
from evenhand.randomness.xoshiro import draw_word, start_words
from evenhand.testing.statistics import check_frequencies
from tests.parts import way_in

draw_row_word, shuffle_row = way_in(splitmix.draw_row_word), way_in(splitmix.shuffle_row)
uniform = way_in(splitmix.uniform)

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


def draws(rng):
    return rng.random(4).tolist()


def test_one_seed_makes_independent_streams_of_its_names():
    seen = [draws(as_generator(7, name)) for name in STREAMS]
    seen += [draws(stream(7, replication, name)) for replication in range(20) for name in STREAMS]
    seen += [draws(stream(7, ALONE, name)) for name in STREAMS]
    seen += [draws(stream(7, i + 2**32 * ALONE, name)) for i in range(4) for name in STREAMS]
    seen += [draws(np.random.default_rng(7))]
    seen += [draws(np.random.default_rng(s)) for s in np.random.SeedSequence(7).spawn(20)]
    assert len({tuple(numbers) for numbers in seen}) == len(seen)


def test_streams_are_what_they_were():
    """Keyed as (replication, number of the stream): all stored results rest on it."""
    key = np.random.SeedSequence(7, spawn_key=(3, 1))
    assert draws(stream(7, 3, "environment")) == draws(np.random.default_rng(key))


def test_a_seed_sequence_goes_through_the_name_and_a_generator_does_not():
    sequence = np.random.SeedSequence(7)
    assert draws(as_generator(sequence, "learner")) == draws(as_generator(7, "learner"))
    child = sequence.spawn(1)[0]
    assert draws(as_generator(child, "learner")) != draws(as_generator(7, "learner"))
    assert draws(as_generator(child, "learner")) != draws(as_generator(child, "instance"))
    rng = np.random.default_rng(7)
    assert as_generator(rng, "learner") is rng


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, "seed must be at least 0, got seed=-1"),
        (True, TypeError, "seed must be an integer, got True; write 1 if meant so"),
        (0.5, TypeError, "seed must be an integer, got 0.5"),
        (None, TypeError, "seed must be an integer, got None"),
        ("7", TypeError, "seed must be an integer, got '7'"),
    ],
)
def test_bad_seeds_are_refused(seed, error, message):
    with pytest.raises(error, match=message):
        as_generator(seed, "learner")


def test_a_stream_must_have_a_name():
    for call in (lambda: stream(7, 1, "noise"), lambda: as_generator(7, "noise")):
        with pytest.raises(
            ValueError, match=r"name must be one of \['environment', .* got 'noise'"
        ):
            call()

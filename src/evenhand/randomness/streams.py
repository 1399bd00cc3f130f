"""Named random streams: the same numbers alone, first, or on the 64th worker."""

import numpy as np

from evenhand.checks import check_integer

STREAMS = {"learner": 0, "environment": 1, "instance": 2, "reference": 3}
ALONE = 0x616C6F6E  # last in the keys of streams without a replication; no stream has this number

Seed = int | np.random.SeedSequence | np.random.Generator


def stream(seed: int, replication: int, name: str) -> np.random.Generator:
    """Return the generator of one named stream of one replication.

    Streams are keyed, not counted: asking for one never shifts another.

    Examples
    --------
    >>> a, b = stream(7, 3, "learner"), stream(7, 3, "learner")
    >>> bool(a.random() == b.random())
    True
    """
    return _keyed(np.random.SeedSequence(seed), (replication, _number(name)))


def as_generator(seed: Seed, name: str) -> np.random.Generator:
    """Return a generator unchanged, or make the one of a seed's stream of this name.

    A learner and a simulation with the same seed get independent numbers, as the names of their
    streams differ.

    Examples
    --------
    >>> a, b = as_generator(7, "learner"), as_generator(7, "environment")
    >>> bool(a.random() == b.random())
    False
    """
    key = (_number(name), ALONE)
    if isinstance(seed, np.random.Generator):
        return seed
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(check_integer("seed", seed, 0))
    return _keyed(seed, key)


def _number(name: str) -> int:
    """Return the number of a stream; refuse unknown names."""
    if name not in STREAMS:
        raise ValueError(f"name must be one of {sorted(STREAMS)}, got {name!r}")
    return STREAMS[name]


def _keyed(seed: np.random.SeedSequence, key: tuple[int, ...]) -> np.random.Generator:
    """Make the generator of the child of a seed that has this key."""
    child = np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, *key), pool_size=seed.pool_size
    )
    return np.random.default_rng(child)

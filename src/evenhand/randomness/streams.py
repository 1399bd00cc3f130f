"""Named random streams: the same numbers alone, first, or on the 64th worker."""

import numpy as np

from evenhand.checks import check_integer

STREAMS = {"learner": 0, "environment": 1, "instance": 2, "reference": 3}

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
    if name not in STREAMS:
        raise ValueError(f"name must be one of {sorted(STREAMS)}, got {name!r}")
    key = (replication, STREAMS[name])
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def as_generator(seed: Seed, name: str) -> np.random.Generator:
    """Return a generator as it is, or the named stream of a seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(check_integer("seed", seed, 0))
    key = (*seed.spawn_key, 0xE7, STREAMS[name])
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))

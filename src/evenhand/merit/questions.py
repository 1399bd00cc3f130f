"""What is asked of a game by a worker: values of sets, or draws with a random stream per row."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.typing import Bools, Floats, Ints

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Values:
    """Mean values of sets, which are kept as bits; ``batch`` of them are handed over at once."""

    packed: Bytes
    m: int
    batch: int
    width: ClassVar[int] = 1  # answers per row

    @classmethod
    def of(cls, sets: Bools, batch: int) -> "Values":
        """Pack a boolean matrix (n, m)."""
        return cls(np.packbits(sets, axis=1), sets.shape[1], batch)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, rows: Ints) -> "Values":
        return Values(self.packed[rows], self.m, self.batch)

    def keys(self) -> list[bytes]:
        """Return the name of each row in a cache."""
        return [b"v" + row.tobytes() for row in self.packed]

    def answers(self, game: Any) -> Floats:
        """Ask the game (n, 1)."""
        sets = np.unpackbits(self.packed, axis=1, count=self.m).astype(np.bool_)
        found = np.empty((len(sets), 1))
        # a function of one set sees one set, however many are handed over
        batch = len(sets) if getattr(game, "one_by_one", False) else self.batch
        for start in range(0, len(sets), batch):
            part = sets[start : start + batch]
            try:
                found[start : start + batch, 0] = game.value(part)
            except Exception as error:
                if len(part) == 1:
                    error.add_note(f"the set was {np.flatnonzero(part[0]).tolist()}")
                raise
        return found


@dataclass(frozen=True, slots=True)
class Draws:
    """Noisy rewards of prefixes of orders, by ``pull`` or ``pull_coupled``.

    Each row has a random stream of its own, so that it does not matter which rows are asked
    together, nor where.
    """

    method: str
    orders: Ints
    sizes: Ints
    seeds: Ints  # (n, 3): two numbers per question, and the row's

    @property
    def width(self) -> int:
        """Answers per row."""
        return self.sizes.shape[1]

    def __len__(self) -> int:
        return len(self.orders)

    def __getitem__(self, rows: Ints) -> "Draws":
        return Draws(self.method, self.orders[rows], self.sizes[rows], self.seeds[rows])

    def keys(self) -> list[bytes]:
        """Return the name of each row in a cache."""
        rows = zip(self.orders, self.sizes, self.seeds, strict=True)
        texts = (self.method.encode() + b"".join(part.tobytes() for part in row) for row in rows)
        return [b"d" + blake2b(text, digest_size=16).digest() for text in texts]

    def answers(self, game: Any) -> Floats:
        """Ask the game (n, s)."""
        pull, found = getattr(game, self.method), np.empty(self.sizes.shape)
        for i in range(len(self)):
            one = slice(i, i + 1)
            found[i] = pull(self.orders[one], self.sizes[one], np.random.default_rng(self.seeds[i]))
        return found


Question = Values | Draws

"""What every game offers, and the game given by a mean and a noise."""

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import (
    ROUNDING,
    check_budget,
    check_entries,
    check_orders,
    check_range,
    check_rng,
    first_outside,
)
from evenhand.games.noise import Noise
from evenhand.typing import Bools, Floats, Ints, compiled

BLOCK_CELLS = 2**24  # cells of the boolean matrix handed to a set function at once


class Game(Protocol):
    """A set function on m arms that can be observed with noise.

    A game may also have ``kshapley(k)``, its merits in closed form; ``among(arms)``, the same game
    of some arms alone; ``pull_coupled``, observations of all prefixes of a row under common
    randomness; ``noise``, None where rewards are exact; ``empty``, the reward of the empty set,
    which is part of every reward and of no value; ``names`` of the arms; ``trajectory``, the
    version of its random numbers; and ``needs_gpu``, True where it needs one.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game: Game = NoisyOr([0.5, 0.5, 0.2], width=1e-9)  # hardly any noise
    >>> orders, sizes = np.array([[2, 0, 1]]), np.array([[1, 3]])  # arm 2 alone, then all
    >>> game.pull(orders, sizes, np.random.default_rng(1)).round(3)
    array([[0.2, 0.8]])
    """

    @property
    def m(self) -> int:
        """Number of arms."""

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix; V of the empty set is 0.

        Where rewards hold ``empty``, what nothing at all brings, V is what they are beyond it.
        All games of this package also take a single set, a boolean vector (m,), as one row.
        """

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Noisy rewards (n, s): entry (i, j) is that of the set ``orders[i, :sizes[i, j]]``."""


@runtime_checkable
class HasClosedForm(Protocol):
    """A game that knows its K-Shapley values."""

    def kshapley(self, k: int) -> Floats:
        """K-Shapley values (m,) in closed form."""


class NoisyMean(ABC):
    """A game observed as its mean plus independent noise.

    Rewards lie in the range ``rewards`` = (low, high) and are ``empty`` for the empty set; noise is
    given means, and gives rewards, scaled to [0, 1].
    """

    trajectory = 1  # bump when a release changes the random numbers

    def __init__(
        self,
        m: int,
        noise: Noise | None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> None:
        if noise is not None and (isinstance(noise, type) or not hasattr(noise, "observe")):
            raise TypeError(
                f"noise must be None or have observe(means, rng), got {noise!r}; "
                "pass evenhand.games.Bernoulli() or evenhand.games.TruncatedGaussian()"
            )
        self.m = m
        self.noise = noise
        self.rewards, self.empty = check_range(rewards, empty)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.m}, noise={self.noise!r})"

    @abstractmethod
    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix; V of the empty set is 0."""

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Noisy rewards (n, s): entry (i, j) is that of the set ``orders[i, :sizes[i, j]]``."""
        orders, sizes = check_orders(orders, sizes, self.m)
        check_rng(rng)
        rewards = np.empty(sizes.shape)
        for part in chunks(len(orders), self.m * sizes.shape[1], BLOCK_CELLS):
            sets = prefix_sets(orders[part], sizes[part], self.m)
            rewards[part] = self._observe(sets, rng).reshape(sizes[part].shape)
        rewards[sizes == 0] = self.empty
        return rewards

    def _observe(self, sets: Bools, rng: np.random.Generator) -> Floats:
        """One noisy reward for each row of a boolean matrix."""
        (low, high), values = self.rewards, self.value(sets)
        means = (values + (self.empty - low)) / (high - low)
        bad = first_outside(means, -ROUNDING, 1.0 + ROUNDING)
        if bad >= 0:
            raise ValueError(
                f"rewards must lie in [{low:g}, {high:g}], got {float(values[bad] + self.empty)!r} "
                f"for the set {np.flatnonzero(sets[bad]).tolist()}; "
                "rescale the game, or make a SetFunction with rewards=(low, high)"
            )
        means = np.clip(means, 0.0, 1.0)
        if self.noise is None:
            return low + (high - low) * means
        drawn = np.asarray(self.noise.observe(means, rng), dtype=np.float64)
        if drawn.shape != means.shape:
            raise ValueError(f"noise must return shape {means.shape}, got {drawn.shape}")
        check_entries("noise.observe(means, rng)", drawn, 0.0, 1.0)
        return low + (high - low) * drawn


def check_game(game: Any, k: Any, method: str) -> tuple[int, int]:
    """Return ``game.m`` and k with 1 <= k <= m; the game must have the named method."""
    if not (hasattr(game, "m") and callable(getattr(game, method, None))):
        raise TypeError(
            f"game must have m and {method}, got {type(game).__name__}; "
            "wrap a function with evenhand.games.SetFunction"
        )
    return check_budget(game.m, k)


def chunks(rows: int, width: int, cells: int) -> list[slice]:
    """Cut rows of one width into slices of at most so many cells, or of a single row."""
    step = max(1, cells // max(1, width))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def prefix_sets(orders: Ints, sizes: Ints, m: int) -> Bools:
    """Boolean matrix (n * s, m) of the asked prefixes, row after row."""
    sets = np.zeros((sizes.size, m), np.bool_)
    mark_prefixes(sets, orders, sizes)
    return sets


@compiled
def mark_prefixes(sets: Bools, orders: Ints, sizes: Ints) -> None:
    """Set the members of the asked prefixes to True."""
    n, s = sizes.shape
    for i in range(n):
        for j in range(s):
            for r in range(sizes[i, j]):
                sets[i * s + j, orders[i, r]] = True

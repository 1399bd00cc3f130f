"""A game among some of its arms."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_orders, check_sets
from evenhand.games.game import Game
from evenhand.typing import Bools, Floats, Ints


@runtime_checkable
class HasParts(Protocol):
    """A game that knows what is left of it with some arms gone, so that closed forms stay."""

    def among(self, arms: Ints) -> Game:
        """Return the game of these arms alone, in this order."""


class Restricted:
    """A game played by some of its arms, the others being never in a set.

    Parameters
    ----------
    game
        Any game.
    arms
        The arms left, different ones; arm i of the new game is ``arms[i]`` of the old.

    Examples
    --------
    >>> from evenhand.games import SetFunction
    >>> game = Restricted(SetFunction(lambda sets: sets @ [0.1, 0.2, 0.4], m=3), [2, 0])
    >>> game.m, game.value(np.array([[True, False], [True, True]]))
    (2, array([0.4, 0.5]))
    """

    trajectory = 1  # bump when a release changes the random numbers

    def __init__(self, game: Game, arms: ArrayLike) -> None:
        self.game, self.arms = game, _check_arms(arms, game.m)
        self.m = len(self.arms)
        self.empty = getattr(game, "empty", 0.0)
        self.noise = getattr(game, "noise", True)  # None alone says that rewards are exact

    def __repr__(self) -> str:
        return f"Restricted(m={self.m}, game={type(self.game).__name__}(m={self.game.m}))"

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        some = check_sets(sets, self.m)
        wide = np.zeros((len(some), self.game.m), np.bool_)
        wide[:, self.arms] = some
        return self.game.value(wide)

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Noisy rewards (n, s): entry (i, j) is that of the set ``orders[i, :sizes[i, j]]``."""
        orders, sizes = check_orders(orders, sizes, self.m)
        return self.game.pull(np.where(orders < 0, -1, self.arms[orders]), sizes, rng)


def restrict(game: Game, arms: ArrayLike) -> Game:
    """Return the game among some arms, with its closed form where it has one.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> restrict(NoisyOr([0.5, 0.1, 0.2]), [0, 2]).kshapley(2)
    array([0.45, 0.15])
    """
    left = _check_arms(arms, game.m)
    if np.array_equal(left, np.arange(game.m)):
        return game
    return game.among(left) if isinstance(game, HasParts) else Restricted(game, left)


def _check_arms(arms: ArrayLike, m: int) -> Ints:
    """Return one or more different arms of a game."""
    left = as_integers("arms", arms)
    if left.ndim != 1 or not left.size or len(np.unique(left)) < left.size:
        raise ValueError(f"arms must be a list of one or more different arms, got {arms!r}")
    if left.min() < 0 or left.max() >= m:
        raise ValueError(f"arms must lie in 0..{m - 1}, got {arms!r}")
    return left

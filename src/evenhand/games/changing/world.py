"""What every world offers: the game in force, the arms present, and when something changes."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from evenhand.games.game import Game
from evenhand.typing import Ints


class Change(NamedTuple):
    """Something that happens at one time, the number of queries asked before it.

    ``what`` is "game" where contributions change, or what some arms do: "join", "leave", "pause"
    or "resume".

    Examples
    --------
    >>> Change(20_000, "leave", (3,))
    Change(at=20000, what='leave', arms=(3,))
    """

    at: int
    what: str
    arms: tuple[int, ...] = ()


@runtime_checkable
class World(Protocol):
    """A game that changes with time, which is the number of queries asked.

    Examples
    --------
    >>> from evenhand.games import Abrupt, NoisyOr
    >>> world: World = Abrupt([NoisyOr([0.5, 0.2]), NoisyOr([0.2, 0.5])], times=[1000])
    >>> world.at(999).mu, world.at(1000).mu
    (array([0.5, 0.2]), array([0.2, 0.5]))
    >>> world.next_change(0), world.next_change(1000)
    (1000, None)
    """

    @property
    def m(self) -> int:
        """Number of arms that ever are; their ids follow the order in which they join."""

    def at(self, t: int) -> Game:
        """Return the game in force after t queries, of all arms that ever are."""

    def next_change(self, t: int) -> int | None:
        """Return the first time after t at which the game or the arms change, None if never."""

    def present(self, t: int) -> Ints:
        """Return the ids of the arms that can be shown after t queries, ascending."""

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return what happens at time t; gradual changes are none."""


class Changing(ABC):
    """A world in which all arms are there all the time, unless a class says otherwise."""

    def __init__(self, m: int) -> None:
        self.m = m

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.m})"

    @abstractmethod
    def at(self, t: int) -> Game:
        """Return the game in force after t queries, of all arms that ever are."""

    @abstractmethod
    def next_change(self, t: int) -> int | None:
        """Return the first time after t at which the game or the arms change, None if never."""

    def present(self, t: int) -> Ints:
        """Return the ids of the arms that can be shown after t queries, ascending."""
        return np.arange(self.m)

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return what happens at time t; gradual changes are none."""
        return ()


class Still(Changing):
    """A plain game as a world.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> Still(NoisyOr([0.5, 0.2])).next_change(0) is None
    True
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game.m)
        self.game = game

    def __repr__(self) -> str:
        return f"Still({self.game!r})"

    def at(self, t: int) -> Game:
        """Return the game, whenever."""
        return self.game

    def next_change(self, t: int) -> int | None:
        """Return None: it never changes."""
        return None


def as_world(game: Game | World) -> World:
    """Return a world unchanged, or a plain game as a world."""
    return game if isinstance(game, World) else Still(game)

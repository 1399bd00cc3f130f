"""Worlds whose arms come and go."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from evenhand.checks import as_integer, check_integer
from evenhand.games.changing.world import Change, Changing, World, as_world
from evenhand.games.game import Game
from evenhand.randomness.streams import Seed, as_generator
from evenhand.typing import Ints

ORDER = ("join", "resume", "pause", "leave")  # so that no moment has fewer arms than need be


class ComeAndGo(Changing):
    """A game or a world whose arms join, leave and take breaks.

    Parameters
    ----------
    world
        The game of all arms that ever are, still or changing.
    joins
        When arms join that are not there from the start: number of queries by arm. Arms are
        numbered in the order in which they join.
    leaves
        When arms leave for good, by arm.
    breaks
        ``(arm, start, end)`` for each time that an arm cannot be shown for a while.
    names
        Names of all arms that ever are, for learners that have names.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.2, 0.4, 0.6, 0.8])
    >>> world = ComeAndGo(game, joins={3: 1000}, leaves={0: 1000}, breaks=[(1, 500, 700)])
    >>> [world.present(t).tolist() for t in (0, 500, 700, 1000)]
    [[0, 1, 2], [0, 2], [0, 1, 2], [1, 2, 3]]
    >>> world.changes(1000)
    (Change(at=1000, what='join', arms=(3,)), Change(at=1000, what='leave', arms=(0,)))
    """

    def __init__(
        self,
        world: Game | World,
        joins: Mapping[int, int] | None = None,
        leaves: Mapping[int, int] | None = None,
        breaks: Iterable[tuple[int, int, int]] = (),
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        self.world = as_world(world)
        super().__init__(self.world.m)
        if isinstance(self.world, ComeAndGo):
            raise TypeError(
                "world must be one whose arms are all there; say all joins, leaves and breaks once"
            )
        if names is not None and len(names) != self.m:
            raise ValueError(
                f"names must hold one name per arm that ever is, m={self.m}, got {len(names)}"
            )
        self.names = None if names is None else tuple(names)
        self._joined = np.zeros(self.m, np.int64)
        self._left = np.full(self.m, np.iinfo(np.int64).max)
        for arm, t in (joins or {}).items():
            self._joined[self._arm(arm)] = check_integer("joins", t, 1)
        if np.any(np.diff(self._joined) < 0):
            late = int(np.argmax(np.diff(self._joined) < 0))
            raise ValueError(
                "joins must follow the numbers of the arms, got "
                f"{self._joined[late]} for arm {late} and {self._joined[late + 1]} for arm "
                f"{late + 1}; number the arms in the order in which they join"
            )
        for arm, t in (leaves or {}).items():
            self._left[self._arm(arm)] = self._later("leaves", arm, self._joined[arm], t)
        self._breaks = sorted(self._break(*one) for one in breaks)
        self._times = self._all_times()

    @classmethod
    def one_for_one(cls, world: Game | World, start: int, *, every: int, seed: Seed) -> Self:
        """Make a world in which one arm joins and one of the others leaves every so many queries.

        Parameters
        ----------
        world
            The game of all arms that ever are.
        start
            Arms that are there from the start; each of the others joins in its turn.
        every
            Queries between two changes.
        seed
            Seed of who leaves: all arms present are as likely.

        Examples
        --------
        >>> from evenhand.games import NoisyOr
        >>> world = ComeAndGo.one_for_one(NoisyOr([0.5] * 6), 4, every=1000, seed=1)
        >>> [len(world.present(t)) for t in (0, 1000, 2000)], world.next_change(2000)
        ([4, 4, 4], None)
        """
        m, rng = as_world(world).m, as_generator(seed, "instance")
        start, every = check_integer("start", start, 1), check_integer("every", every, 1)
        present, joins, leaves = list(range(start)), dict[int, int](), dict[int, int]()
        for arm in range(start, m):
            t = every * (arm - start + 1)
            joins[arm] = t
            leaves[present.pop(int(rng.integers(len(present))))] = t
            present.append(arm)
        return cls(world, joins, leaves)

    def _arm(self, arm: int) -> int:
        if not 0 <= as_integer("arm", arm) < self.m:
            raise ValueError(f"arms must lie in 0..{self.m - 1}, got {arm}")
        return arm

    def _later(self, name: str, arm: int, since: int, t: int) -> int:
        """Return a time at which an arm is there, checked."""
        if not since < as_integer(name, t):
            raise ValueError(f"{name} must come after arm {arm} is there at {since}, got {t}")
        return t

    def _break(self, arm: int, start: int, end: int) -> tuple[int, int, int]:
        self._later("breaks", self._arm(arm), self._joined[arm], start)
        self._later("breaks", arm, start, end)
        if end >= self._left[arm]:
            raise ValueError(
                f"breaks must end before arm {arm} leaves at {self._left[arm]}, got {end}"
            )
        return arm, start, end

    def _all_times(self) -> Ints:
        ends = [t for _, *ends in self._breaks for t in ends]
        left = self._left[self._left < np.iinfo(np.int64).max]
        return np.unique(np.concatenate([self._joined[self._joined > 0], left, ends]).astype(int))

    def at(self, t: int) -> Game:
        """Return the game in force after t queries, of all arms that ever are."""
        return self.world.at(t)

    def next_change(self, t: int) -> int | None:
        """Return the first time after t at which the game or the arms change, None if never."""
        place = int(np.searchsorted(self._times, t, "right"))
        own = [int(self._times[place])] if place < len(self._times) else []
        inner = self.world.next_change(t)
        return min([*own, *([] if inner is None else [inner])], default=None)

    def present(self, t: int) -> Ints:
        """Return the ids of the arms that can be shown after t queries, ascending."""
        there = (self._joined <= t) & (t < self._left)
        there[[arm for arm, start, end in self._breaks if start <= t < end]] = False
        return np.flatnonzero(there)

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return what happens at time t; gradual changes are none."""
        who = {
            "join": np.flatnonzero(self._joined == t).tolist() if t else [],
            "leave": np.flatnonzero(self._left == t).tolist(),
            "pause": [arm for arm, start, _ in self._breaks if start == t],
            "resume": [arm for arm, _, end in self._breaks if end == t],
        }
        own = [Change(t, what, tuple(who[what])) for what in ORDER if who[what]]
        return (*self.world.changes(t), *own)

"""Worlds that change from one query to the next."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, as_reals, check_integer, check_rng
from evenhand.games.carrier import Carrier
from evenhand.games.changing.world import Change, Changing
from evenhand.games.game import Game
from evenhand.games.noise import Bernoulli
from evenhand.randomness.streams import Seed, as_generator
from evenhand.typing import Floats

Make = Callable[[Floats], Game]


class Abrupt(Changing):
    """One game after the other.

    Parameters
    ----------
    games
        The games, of the same number of arms.
    times
        When each but the first begins: increasing numbers of queries, above 0.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> world = Abrupt([NoisyOr([0.5, 0.2]), NoisyOr([0.2, 0.5])], times=[1000])
    >>> world.changes(1000)
    (Change(at=1000, what='game', arms=()),)
    """

    def __init__(self, games: Sequence[Game], times: ArrayLike) -> None:
        self.games, self.times = list(games), as_integers("times", times).reshape(-1).tolist()
        if len(self.games) != len(self.times) + 1:
            raise ValueError(
                "times must say when each game but the first begins, "
                f"got {len(self.times)} times for {len(self.games)} games"
            )
        if any(b <= a for a, b in zip([0, *self.times], self.times, strict=False)):
            raise ValueError(f"times must be above 0 and increase, got {self.times}")
        sizes = {game.m for game in self.games}
        if len(sizes) > 1:
            raise ValueError(f"games must have the same number of arms, got {sorted(sizes)}")
        super().__init__(self.games[0].m)

    def at(self, t: int) -> Game:
        """Return the game in force after t queries."""
        return self.games[bisect_right(self.times, t)]

    def next_change(self, t: int) -> int | None:
        """Return when the next game begins, None after the last."""
        place = bisect_right(self.times, t)
        return self.times[place] if place < len(self.times) else None

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return the beginning of a game, where one begins at t."""
        return (Change(t, "game"),) if t in self.times else ()


class Redrawn(Changing):
    """A game whose parameters are drawn anew every so many queries, given those before.

    The parameters follow from the seed alone, however the queries are cut into batches.

    Parameters
    ----------
    make
        Makes the game of an array of parameters, such as :class:`~evenhand.games.NoisyOr`.
    start
        The first parameters.
    draw
        Called as ``draw(parameters, rng)``; returns the next parameters, and leaves those given as
        they are.
    every
        Queries between two draws.
    seed
        Seed of all draws: an integer or SeedSequence, of which the stream "instance" is taken, or
        a generator, of which one number is drawn.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> def redraw_one(mu, rng):
    ...     mu = mu.copy()
    ...     mu[rng.integers(len(mu))] = rng.uniform(0.2, 0.9)
    ...     return mu
    >>> world = Redrawn(NoisyOr, [0.5, 0.5, 0.5], redraw_one, every=1000, seed=1)
    >>> int((world.at(1000).mu != world.at(999).mu).sum())
    1
    """

    def __init__(
        self,
        make: Make,
        start: ArrayLike,
        draw: Callable[[Floats, np.random.Generator], Floats],
        *,
        every: int,
        seed: Seed,
    ) -> None:
        self.make, self.draw = make, draw
        self.start = as_reals("start", start, "be an array of real numbers")
        self.every = check_integer("every", every, 1)
        self._seed = _fixed(seed)
        self._begin()
        super().__init__(self.at(0).m)

    def _begin(self) -> None:
        """Go back to the start."""
        self._rng, self._now = as_generator(self._seed, "instance"), self.start
        self._piece, self._game = 0, self.make(self.start)

    def parameters(self, t: int) -> Floats:
        """Return the parameters in force after t queries."""
        self.at(t)
        return self._now.copy()

    def at(self, t: int) -> Game:
        """Return the game in force after t queries: only the newest is kept."""
        piece = t // self.every
        if piece < self._piece:
            self._begin()
        if piece > self._piece:
            for _ in range(piece - self._piece):
                self._now = self.draw(self._now, self._rng)
            self._piece, self._game = piece, self.make(self._now)
        return self._game

    def next_change(self, t: int) -> int | None:
        """Return when parameters are drawn next."""
        return (t // self.every + 1) * self.every

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return the change at t, where parameters are drawn then."""
        return (Change(t, "game"),) if t and t % self.every == 0 else ()


def _fixed(seed: Seed) -> int | np.random.SeedSequence:
    """Return a seed that gives the same numbers whenever it is used."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**62))
    return seed


def moving_pair(m: int, rng: np.random.Generator, every: int = 100_000) -> Redrawn:
    """Make a world in which arms alone stay as they are, while a pair worth 0.3 together moves.

    Arms are worth 0.02 to 0.12 and add up, but for two that bring 0.3 more where both are shown;
    every so many queries these are two others. Rewards are 0 or 1.

    Examples
    --------
    >>> world = moving_pair(6, np.random.default_rng(1), every=1000)
    >>> before, after = world.at(0), world.at(1000)
    >>> alone = np.eye(6, dtype=bool)
    >>> bool((before.value(alone) == after.value(alone)).all())
    True
    >>> bool((before.kshapley(2) == after.kshapley(2)).all())
    False
    """
    worth = check_rng(rng).uniform(0.02, 0.12, check_integer("m", m, 4))
    alone = [[a] for a in range(m)]

    def make(pair: Floats) -> Carrier:
        both = pair.astype(np.int64).tolist()
        return Carrier([*alone, both], [*worth, 0.3], m, noise=Bernoulli())

    def draw(pair: Floats, rng: np.random.Generator) -> Floats:
        others = np.setdiff1d(np.arange(float(m)), pair)
        return rng.choice(others, 2, replace=False)

    return Redrawn(make, rng.choice(m, 2, replace=False), draw, every=every, seed=rng)

"""Worlds that change little by little."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_reals, check_integer, check_number, check_positive
from evenhand.games.changing.abrupt import Make, Redrawn
from evenhand.games.changing.world import Change, Changing
from evenhand.games.game import Game
from evenhand.randomness.streams import Seed
from evenhand.typing import Floats


class Walk(Redrawn):
    r"""A game whose parameters wander between two bounds, each on its own.

    A parameter x is :math:`\text{low} + (\text{high} - \text{low}) / (1 + e^{-u})`, and u makes a
    Gaussian step every so many queries: x never leaves the bounds, and moves most between them.

    Parameters
    ----------
    make, start, seed
        As for :class:`Redrawn`; the start lies strictly between the bounds.
    sd
        Standard deviation of the steps of u that 100 000 queries add up to: 0.4 moves a parameter
        in the middle by a tenth of the range.
    low, high
        The bounds.
    every
        Queries between two steps.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> world = Walk(NoisyOr, [0.3, 0.6], sd=0.4, seed=1)
    >>> world.parameters(100_000).round(2)
    array([0.27, 0.55])
    """

    def __init__(
        self,
        make: Make,
        start: ArrayLike,
        *,
        sd: float,
        low: float = 0.0,
        high: float = 1.0,
        every: int = 500,
        seed: Seed,
    ) -> None:
        self.sd = check_positive("sd", sd)
        self.low = check_number("low", low, -np.inf, np.inf)
        self.high = check_number("high", high, -np.inf, np.inf)
        first = as_reals("start", start, "be an array of real numbers")
        if not np.all((self.low < first) & (first < self.high)):
            raise ValueError(
                f"start must lie strictly between low={self.low:g} and high={self.high:g}, "
                f"got {start!r}"
            )
        super().__init__(make, first, self._step, every=every, seed=seed)

    def _step(self, now: Floats, rng: np.random.Generator) -> Floats:
        share = (now - self.low) / (self.high - self.low)
        u = np.log(share / (1.0 - share))
        u = u + rng.normal(0.0, self.sd * np.sqrt(self.every / 1e5), now.shape)
        u = np.clip(u, -30.0, 30.0)  # beyond, rounding would put it on a bound
        return self.low + (self.high - self.low) / (1.0 + np.exp(-u))

    def changes(self, t: int) -> tuple[Change, ...]:
        """Return none: steps are small."""
        return ()


class Season(Changing):
    r"""A game whose parameters go to and fro between two ends, in the shape of a cosine.

    Parameters
    ----------
    make
        Makes the game of an array of parameters, such as :class:`~evenhand.games.NoisyOr`.
    one, other
        The two ends. Where they agree a parameter stays as it is.
    period
        Queries from one end to the other and back.
    phase
        Share of the period by which each parameter is ahead, one number or one per parameter; 0
        starts at the first end.
    every
        Queries after which the game is made anew.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> world = Season(NoisyOr, [0.2, 0.8], [0.8, 0.8], period=10_000)
    >>> [world.at(t).mu.round(2).tolist() for t in (0, 2500, 5000, 10_000)]
    [[0.2, 0.8], [0.5, 0.8], [0.8, 0.8], [0.2, 0.8]]
    """

    def __init__(
        self,
        make: Make,
        one: ArrayLike,
        other: ArrayLike,
        *,
        period: int,
        phase: ArrayLike = 0.0,
        every: int = 500,
    ) -> None:
        self.make = make
        self.one = as_reals("one", one, "be an array of real numbers")
        self.other = as_reals("other", other, "be an array of real numbers")
        self.phase = as_reals("phase", phase, "be a number or one per parameter")
        if self.one.shape != self.other.shape:
            raise ValueError(
                f"one and other must have the same shape, got {self.one.shape} "
                f"and {self.other.shape}"
            )
        if self.phase.ndim and self.phase.shape != self.one.shape:
            raise ValueError(
                f"phase must be a number or have shape {self.one.shape}, got {self.phase.shape}"
            )
        self.period = check_integer("period", period, 2)
        self.every = check_integer("every", every, 1)
        self._made = 0, self.make(self.parameters(0))
        super().__init__(self._made[1].m)

    def parameters(self, t: int) -> Floats:
        """Return the parameters in force after t queries."""
        begun = t - t % self.every
        turns = begun % self.period / self.period + self.phase
        return self.one + (self.other - self.one) * 0.5 * (1.0 - np.cos(2.0 * np.pi * turns))

    def at(self, t: int) -> Game:
        """Return the game in force after t queries."""
        piece = t // self.every
        if piece != self._made[0]:
            self._made = piece, self.make(self.parameters(t))
        return self._made[1]

    def next_change(self, t: int) -> int | None:
        """Return when the game is made anew."""
        return (t // self.every + 1) * self.every

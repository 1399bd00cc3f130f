"""Rows of a plan that are drawn before they are asked for."""

from functools import partial

import numpy as np

from evenhand.exchange.plan import Plan, Rows
from evenhand.randomness.state import kind_of, to_bytes, with_state
from evenhand.threads import Aside


class Ahead:
    """The next n rows of a plan, drawn by another thread while those before are played.

    They come from a copy of the generator. If it is used for anything else meanwhile, or if another
    plan or another number of rows is wanted then, they are given up: nothing was drawn.
    """

    def __init__(self, plan: Plan, n: int, rng: np.random.Generator) -> None:
        self._wanted = plan, n, to_bytes(rng.bit_generator.state)
        self._rng = with_state(kind_of(rng), self._wanted[2])
        self._rows = Aside(partial(plan.draw, n, self._rng))

    def take(self, plan: Plan, n: int, rng: np.random.Generator) -> Rows | None:
        """Return the rows that a draw would give now, and leave the generator as it would."""
        mine, number, state = self._wanted
        same = mine is plan and number == n and to_bytes(rng.bit_generator.state) == state
        if not same or self._rows.lost:
            return None
        rows = self._rows.result()
        rng.bit_generator.state = self._rng.bit_generator.state
        return rows

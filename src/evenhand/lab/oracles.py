"""Learners that know what none can know, to compare others with: when a world changes, or how."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.exchange import Batch
from evenhand.exchange.roster import Roster
from evenhand.games import World, restrict
from evenhand.learners import EvenHand
from evenhand.merit import kshapley
from evenhand.randomness.streams import Seed, as_generator
from evenhand.typing import Floats, Ints


def unwatched() -> dict[str, Any]:
    """Options of an EvenHand that does not look out for changes: none where it never does."""
    return {"watch": False} if "watch" in inspect.signature(EvenHand).parameters else {}


class Restarted:
    """EvenHand made anew whenever the world changes abruptly, and whenever an arm comes or goes.

    To :func:`evenhand.simulate` it is a learner. Rewards of rows asked before the last change are
    dropped.
    """

    trajectory = EvenHand.trajectory
    horizon = None
    empty = 0.0

    def __init__(self, m: int, k: int, *, world: World, seed: Seed) -> None:
        self.k, self.world = k, world
        self.roster = Roster.of(m)
        self.selections = np.zeros(world.m, np.int64)
        self._rng = as_generator(seed, "learner")
        self._restart(0)

    def _restart(self, before: int) -> None:
        """Forget everything, after so many queries."""
        self._before, self._due = before, False
        seed = self._rng.spawn(1)[0]
        self._learner = EvenHand(self.roster.m, self.k, seed=seed, **unwatched())

    @property
    def m(self) -> int:
        """Number of arms present."""
        return self.roster.m

    @property
    def names(self) -> None:
        """None: its arms have no names."""

    @property
    def queries(self) -> int:
        """Queries asked so far, before and after restarts."""
        return self._before + self._learner.queries

    @property
    def merit(self) -> Floats:
        """Estimated merits (m,)."""
        return self._learner.merit

    @property
    def marginals(self) -> Floats:
        """Next marginals (m,)."""
        return self._learner.marginals

    def estimate(self) -> Any:
        """What is known since the last restart."""
        return self._learner.estimate()

    def ask(self, limit: int) -> Batch:
        """Return the next queries, by id."""
        if self._learner.queries and self.world.changes(self.queries):
            self._restart(self.queries)
        batch = self._learner.ask(limit)
        batch = replace(batch, orders=np.append(self.roster.ids, -1)[batch.orders])
        batch.count_into(self.selections)
        return batch

    def tell(self, batch: Batch, rewards: Floats) -> None:
        """Take in rewards of rows asked since the last restart."""
        if batch.owner == self._learner._owner:
            self._learner.tell(batch, rewards)

    def add(self, names: int) -> Ints:
        """Let arms join."""
        return self._change(self.roster.add(names, self.queries))

    def retire(self, arms: Any) -> None:
        """Let arms leave."""
        self._change(self.roster.retire(arms))

    def pause(self, arms: Any) -> None:
        """Let arms pause."""
        self._change(self.roster.pause(arms))

    def resume(self, arms: Any) -> None:
        """Let arms come back."""
        self._change(self.roster.resume(arms))

    def _change(self, roster: Roster) -> Ints:
        new = np.setdiff1d(roster.ids, self.roster.ids)
        self.roster = roster
        self._restart(self.queries)
        return new


class Knowing(EvenHand):
    """EvenHand that after each change of arms knows the true merits of all but the newcomers."""

    def __init__(self, m: int, k: int, *, world: World, seed: Seed) -> None:
        self.world = world
        self._truth: Floats | None = None  # nan for newcomers; None until arms have changed
        super().__init__(m, k, seed=seed, **unwatched())

    def _change(self, roster: Roster) -> None:
        super()._change(roster)
        t = self.queries
        if not np.array_equal(self.world.present(t), self.roster.ids):
            return  # others come or go at the same time
        true = kshapley(restrict(self.world.at(t), self.roster.ids), self.k) / self._unit
        self._truth = np.where(self.roster.joined < t, true, np.nan)

    def _believed(self, merit: Floats, variance: Floats) -> tuple[Floats, Floats]:
        merit, variance = super()._believed(merit, variance)
        if self._truth is None:
            return merit, variance
        known = ~np.isnan(self._truth)
        return np.where(known, self._truth, merit), np.where(known, 0.0, variance)

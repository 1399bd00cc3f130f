"""What is in force while a learner plays: the game, the arms present and what each is due."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_vector
from evenhand.games import Change, Game, World, restrict
from evenhand.games.game import HasClosedForm
from evenhand.learners import Learner
from evenhand.merit import kshapley
from evenhand.policy import fair_policy
from evenhand.subsets.combinations import count_sets
from evenhand.typing import Floats, Ints

MAX_LISTED = 10**6  # sets of one size that are valued to work out a target

Due = Callable[[int], ArrayLike]


class Scene(NamedTuple):
    """A stretch of time in which nothing changes.

    Attributes
    ----------
    game
        The game in force, of all arms that ever are.
    arms
        Ids of the arms that can be shown.
    due
        (m,) fair marginals of all arms that ever are, 0 for those that cannot be shown.
    end
        Number of queries at which something changes, None if nothing ever does.
    happened
        What changed at its beginning.
    """

    game: Game
    arms: Ints
    due: Floats
    end: int | None
    happened: tuple[Change, ...]


class Stage:
    """A world and the learner that plays in it; tells the learner which arms come and go."""

    def __init__(self, world: World, learner: Learner, due: Due | None) -> None:
        self.world = world
        self.learner: Any = learner  # not every one can add arms
        self._due = due or self._work_out

    def enter(self) -> Scene:
        """Return what is in force now; the learner's arms follow."""
        t = self.learner.queries
        happened = self.world.changes(t)
        for change in happened:
            self._follow(change)
        arms, game = self._arms(t), self.world.at(t)
        self._check(arms, game)
        due = np.zeros(self.world.m)
        due[arms] = check_due(self._due(t), len(arms), self.learner.k)
        return Scene(game, arms, due, self.world.next_change(t), happened)

    def _arms(self, t: int) -> Ints:
        """Ids of the arms that can be shown: those present that no terms take out."""
        present, barred = self.world.present(t), list(getattr(self.learner, "barred", ()))
        return present[~np.isin(present, barred)] if barred else present

    def _follow(self, change: Change) -> None:
        """Let arms of the learner join, leave, pause or resume, unless they have already."""
        roster, paused = self.learner.roster, self.learner.roster.paused
        if change.what == "join":
            new = [arm for arm in change.arms if arm >= roster.next_id]
            names = getattr(self.world, "names", None)
            called = [f"arm {arm}" if names is None else names[arm] for arm in new]
            if new:
                self.learner.add(len(new) if roster.names is None else called)
        elif change.what == "resume":
            self._let("resume", [arm for arm in change.arms if arm in paused])
        elif change.what == "pause":
            self._let("pause", [arm for arm in change.arms if arm in roster.ids])
        elif change.what == "leave":
            there = [arm for arm in change.arms if arm in roster.ids or arm in paused]
            self._let("retire", there)

    def _let(self, method: str, arms: list[int]) -> None:
        if arms:
            getattr(self.learner, method)(arms)

    def _check(self, arms: Ints, game: Game) -> None:
        """Refuse a learner of other arms, or one to which the empty set is worth something else."""
        have = self.learner.roster.ids
        if not np.array_equal(have, arms):
            wrong = np.setxor1d(have, arms)[:1].tolist()
            raise ValueError(
                f"learner must hold the {len(arms)} arms that are present after "
                f"{self.learner.queries} queries, got {len(have)} that differ in arm {wrong}; make "
                "one of the arms at the start, or go on with the learner that played before"
            )
        worth = getattr(game, "empty", 0.0)
        if self.learner.empty != worth:
            raise ValueError(
                "learner and game must agree on what the empty set is worth, got "
                f"learner.empty={self.learner.empty:g} and {worth:g} in the game; "
                f"make the learner with empty={worth:g}"
            )

    def _work_out(self, t: int) -> Floats:
        merit = work_out(restrict(self.world.at(t), self._arms(t)), self.learner.k)
        terms, roster = getattr(self.learner, "terms", None), self.learner.roster
        if terms is None:
            return fair_policy(merit, self.learner.k)
        return terms.policy(merit, self.learner.k, roster.ids, roster.names)


def check_due(target: ArrayLike, m: int, k: int) -> Floats:
    """Return fair marginals (m,) that sum to k; they may exceed 1 where nothing was capped."""
    vector = check_vector("target", target, 0.0, np.inf)
    if len(vector) != m:
        raise ValueError(f"target must have shape ({m},), got {vector.shape}")
    if abs(vector.sum() - k) > 1e-6 * k:
        raise ValueError(
            f"target must sum to k={k}, got {vector.sum():.6g}; make it with evenhand.fair_policy"
        )
    return vector


def work_out(game: Game, k: int) -> Floats:
    """Merits, at least 0, of a game that has a closed form or can be listed in short time."""
    try:
        if not isinstance(game, HasClosedForm):
            most = count_sets(game.m, min(k, game.m // 2), MAX_LISTED)  # of the commonest size
            if most > MAX_LISTED:
                raise ValueError(f"more than {MAX_LISTED:,} sets of one size would need valuing")
        merit = kshapley(game, k)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"target must be given where the game's merits cannot be worked out ({error}); "
            "estimate them with evenhand.merit.stratified or evenhand.merit.reverse_reachable, "
            f"then pass target=evenhand.fair_policy(np.maximum(estimate.merit, 0), k={k})"
        ) from error
    return np.maximum(merit, 0.0)

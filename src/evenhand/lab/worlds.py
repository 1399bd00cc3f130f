"""Worlds that change, by the names experiment files use."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from evenhand import merit
from evenhand.games import (
    Abrupt,
    BestMember,
    ComeAndGo,
    Game,
    Graph,
    NoisyOr,
    Redrawn,
    Season,
    Still,
    Walk,
    World,
)
from evenhand.policy import fair_policy
from evenhand.randomness.streams import stream
from evenhand.typing import Floats


class Rehearsal(NamedTuple):
    """A world, and the fair marginals at any time where they cannot be worked out."""

    world: World
    due: Callable[[int], Floats] | None = None

    @property
    def m(self) -> int:
        """Number of arms at the start."""
        return len(self.world.present(0))


# the game of a vector of parameters, and the range from which these are drawn
FAMILIES: dict[str, tuple[Callable[[Floats], Game], float, float]] = {
    "noisy-or": (NoisyOr, 0.2, 0.9),
    "best-member": (BestMember, 0.05, 0.95),
}


def still(family: str, m: int, rng: np.random.Generator) -> World:
    """A game that never changes, as a world."""
    make, low, high = _family(family)
    return Still(make(rng.uniform(low, high, m)))


def redrawn(
    family: str, m: int, rng: np.random.Generator, arms: int = 0, every: int = 100_000
) -> World:
    """So many arms, or all, are drawn anew every so many queries."""
    make, low, high = _family(family)

    def draw(now: Floats, rng: np.random.Generator) -> Floats:
        new, who = now.copy(), rng.permutation(m)[: arms or m]
        new[who] = rng.uniform(low, high, len(who))
        return new

    return Redrawn(make, rng.uniform(low, high, m), draw, every=every, seed=rng)


def walk(family: str, m: int, rng: np.random.Generator, sd: float = 0.4) -> World:
    """Arms wander, by a tenth of their range in 100 000 queries unless said otherwise."""
    make, low, high = _family(family)
    start = rng.uniform(low, high, m)
    return Walk(make, start, sd=sd, low=low, high=high, seed=rng)


def season(
    family: str, m: int, rng: np.random.Generator, period: int = 200_000, swing: float = 0.5
) -> World:
    """Each arm goes to and fro by a share of its range, at a time of its own."""
    make, low, high = _family(family)
    half = 0.5 * swing * (high - low)
    middle = np.clip(rng.uniform(low, high, m), low + half, high - half)
    return Season(make, middle - half, middle + half, period=period, phase=rng.random(m))


def turnover(
    family: str, m: int, horizon: int, rng: np.random.Generator, every: int = 20_000
) -> World:
    """One arm joins and another leaves every so many queries."""
    make, low, high = _family(family)
    game = make(rng.uniform(low, high, m + (horizon - 1) // every))
    return ComeAndGo.one_for_one(game, m, every=every, seed=rng)


def _family(name: str) -> tuple[Callable[[Floats], Game], float, float]:
    if name not in FAMILIES:
        raise ValueError(f"family must be one of {sorted(FAMILIES)}, got {name!r}")
    return FAMILIES[name]


@cache
def livelier(
    cascade: Any,  # the class of the game
    graph: Callable[[], Graph],
    k: int,
    seed: int,
    p: float = 0.1,
    more: float = 0.15,
    at: int = 50_000,
    reference_sets: int = 20_000_000,
) -> Rehearsal:
    """A cascade in which the arcs of a third of the nodes carry more often from some time on.

    Made once for all learners, horizons and replications.
    """
    whole = graph()
    lively = np.zeros(whole.m, np.bool_)
    lively[stream(seed, 0, "instance").permutation(whole.m)[: whole.m // 3]] = True
    before = cascade(whole, p=p)
    after = cascade(whole, p=np.where(lively[whole.edges[:, 0]], more, p))
    rng = stream(seed, 0, "reference")
    known = [merit.reverse_reachable(game, k, reference_sets, rng) for game in (before, after)]
    fair = [fair_policy(one, k) for one in known]
    return Rehearsal(Abrupt([before, after], [at]), lambda t: fair[int(t >= at)])


MAKERS = (still, redrawn, walk, season, turnover)

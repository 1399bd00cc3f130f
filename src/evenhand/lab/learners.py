"""Learners by the names experiment files use: every class by its own, and variants of some."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from evenhand import learners
from evenhand.designs import EnumeratedMaxEntropy, Systematic
from evenhand.games import World
from evenhand.lab.oracles import Knowing, Restarted, unwatched
from evenhand.learners import EvenHand, IWKSVFair, Learner, MURaS

COUNTED_FROM = 10**7  # from this horizon on MURaS's commit phase is one multinomial draw


class Kind(NamedTuple):
    """A learner's class, and options of it that are settled by the name and the horizon."""

    learner: Any  # a class of learners
    settled: Callable[[int], dict[str, Any]] = lambda horizon: {}
    bumps: int = 0  # changes of random numbers that only this variant had

    @property
    def trajectory(self) -> int:
        """Trajectory version: bump the class's when a release changes the random numbers."""
        version: int = self.learner.trajectory + self.bumps
        return version

    @property
    def knows_world(self) -> bool:
        """Whether it is an oracle, which is told of the world in which it plays."""
        return "world" in inspect.signature(self.learner).parameters

    @property
    def needs_horizon(self) -> bool:
        """Whether the learner has to be told how long it will play."""
        return "horizon" in inspect.signature(self.learner).parameters

    @property
    def options(self) -> set[str]:
        """Options that a file may give: not settled, and no classes such as designs."""
        parameters = inspect.signature(self.learner).parameters.values()
        open_ones = {
            p.name for p in parameters if p.default is p.empty or not isinstance(p.default, type)
        }
        return open_ones - {"m", "k", "horizon", "names", "seed", "world"} - self.settled(1).keys()


KINDS: dict[str, Kind] = {
    found.name: Kind(found)
    for found in vars(learners).values()
    if isinstance(found, type) and issubclass(found, Learner) and not inspect.isabstract(found)
}
KINDS |= {
    "iw-ksvfair-exact": Kind(IWKSVFair, lambda horizon: {"design": EnumeratedMaxEntropy}),
    "no-iw": Kind(IWKSVFair, lambda horizon: {"weights": "none"}),
    # its weights are so large that a change of rounding alone once changed its random numbers
    "no-mix": Kind(IWKSVFair, lambda horizon: {"eta": 0.0, "gamma": None}, bumps=1),
    "even-hand-unwatched": Kind(EvenHand, lambda horizon: unwatched()),
    "restarted": Kind(Restarted),
    "knowing": Kind(Knowing),
    "muras": Kind(MURaS, lambda t: {"rounding": Systematic} if t >= COUNTED_FROM else {}),
}


def build_learner(
    config: dict[str, Any],
    m: int,
    k: int,
    horizon: int,
    rng: np.random.Generator,
    world: World | None = None,
) -> Learner:
    """Make a learner from an experiment's description; oracles are given the world."""
    options = dict(config)
    kind = KINDS[options.pop("kind")]
    options |= kind.settled(horizon)
    if kind.needs_horizon:
        options["horizon"] = horizon
    if kind.knows_world:
        options["world"] = world
    made: Learner = kind.learner(m, k, seed=rng, **options)
    return made

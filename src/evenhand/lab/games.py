"""Games by the names experiment files use, and the merits that regret is measured against."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenhand import games, merit, theory
from evenhand.datasets import facebook_graph, facebook_stand_in
from evenhand.games import CudaCascade, Game, Graph, IndependentCascade, World
from evenhand.lab import worlds
from evenhand.lab.worlds import Rehearsal
from evenhand.merit import Estimate
from evenhand.randomness.streams import stream

N_QUERIES = 200_000  # for the merits of a game with too many sets to list
SETS_PER_ARM = 2000  # reverse-reachable sets for the merits of a cascade of one's own


class Setting(NamedTuple):
    """A game and what is known of its merits, with standard errors 0 where they are exact."""

    game: Game
    known: Estimate


@cache
def _cascade(
    cascade: Any,  # the class of the game
    graph: Callable[[], Graph],
    k: int,
    seed: int,
    p: float = 0.1,
    both_ways: bool = False,
    reference_sets: int = 20_000_000,
) -> Setting:
    """Make a cascade and its merits, once for all learners, horizons and replications."""
    game = cascade(graph().both_ways() if both_ways else graph(), p=p)
    rng = stream(seed, 0, "reference")
    return Setting(game, merit.reverse_reachable(game, k, reference_sets, rng))


def _cut_cascade(
    cascade: Any,  # the class of the game
    graph: Callable[[], Graph],
    nodes: int,
    k: int,
    seed: int,
    rng: np.random.Generator,
    p: float = 0.1,
    reference_sets: int = 20_000_000,
) -> Setting:
    """Make a cascade on some nodes of a graph, drawn anew and in random order per replication."""
    whole = graph()
    place = np.full(whole.m, -1)
    place[rng.permutation(whole.m)[:nodes]] = np.arange(nodes)
    edges = place[whole.edges]
    game = cascade(edges[(edges >= 0).all(axis=1)], nodes, p)
    reference = stream(seed, 0, "reference")
    return Setting(game, merit.reverse_reachable(game, k, reference_sets, reference))


def _hard_pair(m: int, k: int, horizon: int, instance: int) -> Game:
    """One of the two games of the lower bound, a new pair for every horizon."""
    return games.hard_pair(m, k, theory.hard_gap(m, k, horizon))[instance]


def _drawn(family: str, m: int, k: int, rng: np.random.Generator) -> Game:
    """A random game by its own name, of which "random-" may be left out."""
    make = MAKERS.get(family) or MAKERS.get(f"random-{family}")
    if make is None:
        raise ValueError(f"family must be one of {sorted(MAKERS)}, got {family!r}")
    return _call(make, {"m": m}, {"k": k, "rng": rng})


def own(kind: str) -> Callable[..., Any]:
    """A maker of the user's, named ``module:function`` or ``module.py:function``."""
    path, _, name = kind.rpartition(":")
    module = path.removesuffix(".py").replace("/", ".")
    if Path(path).is_absolute():
        sys.path.insert(0, str(Path(path).parent))
        module = Path(path).stem
    try:
        make = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ValueError(
            f"game must name a module that can be imported from here, got {kind!r}; "
            f"is there a {module.replace('.', '/')}.py in the current folder?"
        ) from None
    if not callable(make):
        raise ValueError(
            f"game must name a function, got {kind!r}: {module} has none called {name!r}"
        )
    return make


# everything in evenhand.games that takes a generator: a new game per replication
MAKERS: dict[str, Callable[..., Any]] = {
    re.sub("(?<=[a-z])(?=[A-Z])|_", "-", name).lower(): make
    for name in games.__all__
    if "rng" in inspect.signature(make := getattr(games, name)).parameters
}
MAKERS |= {
    "drawn": _drawn,
    "hard-pair": _hard_pair,
    "facebook": partial(_cascade, IndependentCascade, facebook_graph),
    "facebook-cuda": partial(_cascade, CudaCascade, facebook_graph),
    "facebook-stand-in": partial(_cascade, IndependentCascade, facebook_stand_in),
    "facebook-livelier": partial(worlds.livelier, IndependentCascade, facebook_graph),
    "stand-in-livelier": partial(worlds.livelier, IndependentCascade, facebook_stand_in),
    "stand-in-cut": partial(_cut_cascade, IndependentCascade, facebook_stand_in),
}
MAKERS |= {make.__name__: make for make in worlds.MAKERS}
SUPPLIED = {"k", "horizon", "seed", "rng"}  # arguments that the lab fills in, not the file


def build_game(
    config: dict[str, Any], k: int, *, horizon: int = 1, replication: int = 1, seed: int = 1
) -> Setting:
    """Make a game that does not change, and its merits, from an experiment's description."""
    made = build(config, k, horizon=horizon, replication=replication, seed=seed)
    if isinstance(made, Rehearsal):
        raise ValueError(f"game must be one that does not change, got {config['kind']!r}")
    return made


def build(
    config: dict[str, Any], k: int, *, horizon: int = 1, replication: int = 1, seed: int = 1
) -> Setting | Rehearsal:
    """Make a game and its merits, or a world that changes, from an experiment's description.

    A maker that asks for ``k``, ``horizon``, ``seed`` or ``rng`` without a default is given it;
    ``rng`` is the replication's own.
    """
    options = dict(config)
    kind = options.pop("kind")
    rng = stream(seed, replication, "instance")
    given = {"k": k, "horizon": horizon, "seed": seed, "rng": rng}
    made = _call(own(kind) if ":" in kind else MAKERS[kind], options, given)
    if isinstance(made, Setting | Rehearsal):
        return made
    return Rehearsal(made) if isinstance(made, World) else with_merit(made, k, seed)


def call_maker(make: Callable[..., Any], options: dict[str, Any], k: int, seed: int = 1) -> Any:
    """Call a maker outside of an experiment: what it returns need not be a game."""
    rng = stream(seed, 1, "instance")
    return _call(make, options, {"k": k, "horizon": 1, "seed": seed, "rng": rng})


def _call(make: Callable[..., Any], options: dict[str, Any], given: dict[str, Any]) -> Any:
    """Call a maker with its options and whatever else it requires."""
    asked = inspect.signature(make).parameters.values()
    required = {p.name for p in asked if p.default is p.empty} - options.keys()
    return make(**options, **{name: given[name] for name in required & given.keys()})


def with_merit(game: Game, k: int, seed: int) -> Setting:
    """Find the merits of a game: exactly where its sets can be listed, else estimated."""
    rng = stream(seed, 0, "reference")
    if isinstance(game, IndependentCascade):
        return Setting(game, merit.reverse_reachable(game, k, SETS_PER_ARM * game.m, rng))
    try:
        return Setting(
            game, Estimate(merit.kshapley(game, k, progress=False), np.zeros(game.m), queries=0)
        )
    except ValueError:  # too many sets to list
        return Setting(game, merit.stratified(game, k, N_QUERIES, rng, progress=False))


def options_of(kind: str) -> set[str]:
    """Options that a file may give a named game."""
    return set(inspect.signature(MAKERS[kind]).parameters) - SUPPLIED


def trajectory(kind: str) -> int:
    """Trajectory version of a named game: bump its class's when its random numbers change."""
    return getattr(_described(kind), "trajectory", 1)


def needs_gpu(kind: str) -> bool:
    """Whether a named game runs on an NVIDIA GPU."""
    return getattr(_described(kind), "needs_gpu", False)


def seconds_per_query(config: dict[str, Any]) -> float:
    """Roughly how long a query takes, with a learner that learns from every reward."""
    if not isinstance(MAKERS.get(config["kind"]), partial):
        return 2e-7
    slow = config.get("both_ways") and not needs_gpu(config["kind"])  # it reaches far more nodes
    return 1.5e-5 if slow else 1e-6


def _described(kind: str) -> Any:
    """What describes a named game: its class where the maker is given one, else the maker."""
    make = MAKERS.get(kind)
    return make.args[0] if isinstance(make, partial) else make

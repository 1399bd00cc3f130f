"""Games and learners by the names experiment files use."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from evenhand import merit, theory
from evenhand.datasets import facebook_graph, facebook_stand_in
from evenhand.designs import DependentRounding, EnumeratedMaxEntropy, Systematic
from evenhand.games import (
    CudaCascade,
    Game,
    IndependentCascade,
    best_member,
    hard_pair,
    hidden_pair,
    random_additive,
    random_coverage,
    synthetic,
    wide_noisy_or,
)
from evenhand.learners import ETCG, URS, EvenHand, FairCMAB, GapE, IWKSVFair, Learner, MURaS
from evenhand.randomness.streams import stream
from evenhand.typing import Floats

COUNTED_FROM = 10**7  # from this horizon on MURaS rounds systematically: one multinomial draw
BUDGET = 200_000  # queries for the merits of a game of one's own that cannot be listed


class Setting(NamedTuple):
    """A game with its reference merits and their standard errors (0 where exact)."""

    game: Game
    merit: Floats
    stderr: Floats


class Place(NamedTuple):
    """Where a cell stands: what a game may depend on."""

    k: int
    horizon: int
    replication: int
    seed: int


def _synthetic(place: Place, m: int) -> Setting:
    game = synthetic(m, stream(place.seed, place.replication, "instance"))
    return Setting(game, game.kshapley(place.k), np.zeros(m))


@cache
def _cascade(
    kind: Callable[..., IndependentCascade],
    real: bool,
    k: int,
    seed: int,
    p: float,
    both_ways: bool,
    n: int,
) -> Setting:
    """One graph and one reference of n sets for every learner, horizon and replication."""
    graph = facebook_graph() if real else facebook_stand_in()
    game = kind(graph.both_ways() if both_ways else graph, p=p)
    found = merit.reverse_reachable(game, k, n, stream(seed, 0, "reference"))
    return Setting(game, found.merit, found.stderr)


def _on_graph(kind: Callable[..., IndependentCascade], real: bool) -> Callable[..., Setting]:
    """Cascades of one kind on the Facebook graph or its stand-in."""

    def make(
        place: Place, p: float = 0.1, both_ways: bool = False, reference_sets: int = 20_000_000
    ) -> Setting:
        return _cascade(kind, real, place.k, place.seed, p, both_ways, reference_sets)

    return make


def _hard_pair(place: Place, m: int, instance: int) -> Setting:
    game = hard_pair(m, place.k, theory.hard_gap(m, place.k, place.horizon))[instance]
    return Setting(game, game.kshapley(place.k), np.zeros(m))


def _drawn(place: Place, family: str, m: int) -> Setting:
    """A game drawn at random for every replication, with exact merits."""
    rng = stream(place.seed, place.replication, "instance")
    game = FAMILIES[family](m, place.k, rng)
    return Setting(game, np.maximum(merit.kshapley(game, place.k), 0.0), np.zeros(m))


FAMILIES: dict[str, Callable[[int, int, np.random.Generator], Game]] = {
    "wide-noisy-or": lambda m, k, rng: wide_noisy_or(m, rng),
    "coverage": lambda m, k, rng: random_coverage(m, rng),
    "additive": random_additive,
    "best-member": lambda m, k, rng: best_member(m, rng),
    "hidden-pair": lambda m, k, rng: hidden_pair(m, rng),
}


def _own(place: Place, kind: str, **options: Any) -> Setting:
    """A game made by a function of the user's, named ``module:callable``."""
    module, _, name = kind.partition(":")
    make = getattr(importlib.import_module(module), name, None)
    if not callable(make):
        raise ValueError(
            f"game must name a function, got {kind!r}: {module} has none called {name!r}"
        )
    game = make(**options)
    if isinstance(game, IndependentCascade):
        found = merit.reverse_reachable(
            game, place.k, 2000 * game.m, stream(place.seed, 0, "reference")
        )
        return Setting(game, found.merit, found.stderr)
    try:
        values = merit.kshapley(game, place.k)
        return Setting(game, values, np.zeros(game.m))
    except ValueError:  # too many sets to list
        rng = stream(place.seed, 0, "reference")
        found = merit.stratified(game, place.k, BUDGET, rng)
        return Setting(game, np.maximum(found.merit, 0.0), found.stderr)


GAMES: dict[str, Callable[..., Setting]] = {
    "synthetic": _synthetic,
    "facebook": _on_graph(IndependentCascade, real=True),
    "facebook-cuda": _on_graph(CudaCascade, real=True),
    "facebook-stand-in": _on_graph(IndependentCascade, real=False),
    "hard-pair": _hard_pair,
    "drawn": _drawn,
}


def build_game(config: dict[str, Any], place: Place) -> Setting:
    """Make a game and its merits from an experiment's description."""
    options = dict(config)
    kind = options.pop("kind")
    if ":" in kind:
        return _own(place, kind, **options)
    return GAMES[kind](place, **options)


def _muras(m: int, k: int, horizon: int, **options: Any) -> Learner:
    rounding = Systematic if horizon >= COUNTED_FROM else DependentRounding
    return MURaS(m, k, horizon, rounding=rounding, **options)


def _exact(m: int, k: int, horizon: int, **options: Any) -> Learner:
    return IWKSVFair(m, k, horizon, design=EnumeratedMaxEntropy, **options)


def _urs(m: int, k: int, horizon: int, **options: Any) -> Learner:
    return URS(m, k, **options)


def _even_hand(m: int, k: int, horizon: int, **options: Any) -> Learner:
    return EvenHand(m, k, **options)


LEARNERS: dict[str, tuple[Callable[..., Learner], tuple[str, ...]]] = {
    "even-hand": (_even_hand, ("sizes",)),
    "iw-ksvfair": (IWKSVFair, ("gamma", "eta", "floor", "growth")),
    "iw-ksvfair-exact": (_exact, ("gamma", "eta", "floor", "growth")),
    "no-mix": (IWKSVFair.no_mix, ("floor", "growth")),
    "no-iw": (IWKSVFair.no_iw, ("gamma", "eta", "floor", "growth")),
    "muras": (_muras, ("lam", "shuffled")),
    "urs": (_urs, ()),
    "etcg": (ETCG, ()),
    "gap-e": (GapE, ("c", "growth")),
    "fair-cmab": (FairCMAB, ("quotas",)),
}


def build_learner(
    config: dict[str, Any], m: int, k: int, horizon: int, rng: np.random.Generator
) -> Learner:
    """Make a learner from an experiment's description."""
    options = dict(config)
    make, _ = LEARNERS[options.pop("kind")]
    return make(m, k, horizon, seed=rng, **options)

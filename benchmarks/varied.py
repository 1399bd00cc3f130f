"""Rare coverage and cascades without what whole items and arcs give away: they weigh differently.

    python -m benchmarks.oracle varied-cover varied-cascade --worlds 20 --base-seed 4242
    python -m benchmarks.deployments varied-cover varied-cascade --worlds 20 --base-seed 4242

An arm of the rare rewards' coverage is worth whole sixtieths, a node of their cascade whole
fiftieths of an arc, and an oracle that is told so soon knows each merit exactly. Here all else is
alike, but items share the weight as chance has it, and arcs carry as often as an exponential law
says. What oracles that know this make of the worlds of whole items is called "uneven".
"""

import numpy as np

from benchmarks.covering import N_ITEMS, UNITS, compositions, drawn
from evenhand.games import IndependentCascade, SetFunction
from evenhand.games.noise import Bernoulli
from evenhand.lab.games import MAKERS, Setting
from evenhand.merit import Estimate, reverse_reachable
from evenhand.merit.reverse_reachable import _shares
from evenhand.randomness.streams import stream


def cover(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Make a rare coverage of items that share all weight in any way."""
    covers = drawn(m, rng)
    weights = compositions(N_ITEMS, UNITS, rng) / UNITS
    game = SetFunction(
        lambda sets: ((sets.astype(np.float64) @ covers) > 0.0) @ weights, m, noise=Bernoulli()
    )
    merit = covers @ (_shares(m, k)[covers.sum(axis=0)] * weights)
    return Setting(game, Estimate(merit, np.zeros(m), queries=0))


def cascade(
    k: int,
    seed: int,
    rng: np.random.Generator,
    nodes: int = 60,
    mean: float = 0.02,
    reference_sets: int = 20_000_000,
) -> Setting:
    """Make a cascade on some nodes of the stand-in graph, whose arcs carry more or less often."""
    cut = MAKERS["stand-in-cut"]
    whole = cut(nodes=nodes, k=k, seed=seed, rng=rng, p=mean, reference_sets=2)
    assert isinstance(whole.game, IndependentCascade)
    edges = whole.game.edges
    game = IndependentCascade(edges, nodes, np.minimum(rng.exponential(mean, len(edges)), 1.0))
    reference = stream(seed, 0, "reference")
    return Setting(game, reverse_reachable(game, k, reference_sets, reference))

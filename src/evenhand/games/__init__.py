"""What is true: set functions and their noise."""

from evenhand.games.carrier import Carrier, additive
from evenhand.games.cascade import IndependentCascade
from evenhand.games.cascade_cuda import CudaCascade
from evenhand.games.facebook import facebook_graph, facebook_stand_in
from evenhand.games.families import (
    WideNoisyOr,
    best_member,
    hidden_pair,
    random_additive,
    random_coverage,
)
from evenhand.games.game import Game
from evenhand.games.graphs import Graph
from evenhand.games.hard_pair import hard_pair
from evenhand.games.noise import Bernoulli, TruncatedGaussian
from evenhand.games.noisy_or import NoisyOr, synthetic
from evenhand.games.set_function import SetFunction

__all__ = [
    "Bernoulli",
    "Carrier",
    "CudaCascade",
    "Game",
    "Graph",
    "IndependentCascade",
    "NoisyOr",
    "SetFunction",
    "TruncatedGaussian",
    "WideNoisyOr",
    "additive",
    "best_member",
    "facebook_graph",
    "facebook_stand_in",
    "hard_pair",
    "hidden_pair",
    "random_additive",
    "random_coverage",
    "synthetic",
]

"""What is true: set functions and their noise."""

from evenhand.games.carrier import Carrier, additive
from evenhand.games.cascade import CudaCascade, Graph, IndependentCascade
from evenhand.games.families import (
    best_member,
    hidden_pair,
    random_additive,
    random_coverage,
    rare_coverage,
    shop,
    wide_noisy_or,
)
from evenhand.games.game import Game
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
    "additive",
    "best_member",
    "hard_pair",
    "hidden_pair",
    "random_additive",
    "random_coverage",
    "rare_coverage",
    "shop",
    "synthetic",
    "wide_noisy_or",
]

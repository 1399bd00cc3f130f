"""What is true: set functions and their noise."""

from evenhand.games.best_member import BestMember
from evenhand.games.carrier import Carrier, additive
from evenhand.games.cascade import CudaCascade, Graph, IndependentCascade
from evenhand.games.changing import (
    Abrupt,
    Change,
    ComeAndGo,
    Redrawn,
    Season,
    Still,
    Walk,
    World,
    moving_pair,
)
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
from evenhand.games.restricted import Restricted, restrict
from evenhand.games.set_function import SetFunction

__all__ = [
    "Abrupt",
    "Bernoulli",
    "BestMember",
    "Carrier",
    "Change",
    "ComeAndGo",
    "CudaCascade",
    "Game",
    "Graph",
    "IndependentCascade",
    "NoisyOr",
    "Redrawn",
    "Restricted",
    "Season",
    "SetFunction",
    "Still",
    "TruncatedGaussian",
    "Walk",
    "World",
    "additive",
    "best_member",
    "hard_pair",
    "hidden_pair",
    "moving_pair",
    "random_additive",
    "random_coverage",
    "rare_coverage",
    "restrict",
    "shop",
    "synthetic",
    "wide_noisy_or",
]

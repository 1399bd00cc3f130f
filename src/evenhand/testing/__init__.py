"""Checks for a game, design or learner of your own: what everything in this package keeps to."""

from evenhand.testing.design import DESIGN_CHECKS, check_design
from evenhand.testing.game import GAME_CHECKS, check_game
from evenhand.testing.learner import LEARNER_CHECKS, check_learner
from evenhand.testing.statistics import check_frequencies, check_mean

__all__ = [
    "DESIGN_CHECKS",
    "GAME_CHECKS",
    "LEARNER_CHECKS",
    "check_design",
    "check_frequencies",
    "check_game",
    "check_learner",
    "check_mean",
]

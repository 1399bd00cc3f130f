"""Games that change with time: worlds to rehearse in."""

from evenhand.games.changing.abrupt import Abrupt, Redrawn, moving_pair
from evenhand.games.changing.gradual import Season, Walk
from evenhand.games.changing.roster import ComeAndGo
from evenhand.games.changing.world import Change, Changing, Still, World

__all__ = [
    "Abrupt",
    "Change",
    "Changing",
    "ComeAndGo",
    "Redrawn",
    "Season",
    "Still",
    "Walk",
    "World",
    "moving_pair",
]

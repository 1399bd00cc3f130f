"""Merit-fair selection: choose K of M arms in proportion to what they contribute."""

from evenhand import adapters, designs, games, learners, merit, metrics, plot, policy, theory
from evenhand.batch import Batch
from evenhand.merit import kshapley
from evenhand.policy import fair_policy
from evenhand.simulation import Interrupted, Run, simulate
from evenhand.storage import load, save

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Interrupted",
    "Run",
    "adapters",
    "designs",
    "fair_policy",
    "games",
    "kshapley",
    "learners",
    "load",
    "merit",
    "metrics",
    "plot",
    "policy",
    "save",
    "simulate",
    "theory",
]

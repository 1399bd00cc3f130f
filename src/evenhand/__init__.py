"""Merit-fair selection: choose K of M arms in proportion to what they contribute."""

from evenhand import designs, games, merit, policy, theory
from evenhand.merit import kshapley
from evenhand.policy import fair_policy

__version__ = "0.1.0"

__all__ = [
    "designs",
    "fair_policy",
    "games",
    "kshapley",
    "merit",
    "policy",
    "theory",
]

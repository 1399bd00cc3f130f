"""What learners and the world hand to each other, and what is remembered of it."""

from evenhand.exchange.batch import Batch, Determined, Exposure, Marginals, Target
from evenhand.exchange.ledger import AlreadyTold, Expired, Ledger
from evenhand.exchange.plan import FullSetPlan, Plan, PrefixPlan, Rows, SetPlan
from evenhand.exchange.roster import Roster
from evenhand.exchange.shelf import Shelf

__all__ = [
    "AlreadyTold",
    "Batch",
    "Determined",
    "Expired",
    "Exposure",
    "FullSetPlan",
    "Ledger",
    "Marginals",
    "Plan",
    "PrefixPlan",
    "Roster",
    "Rows",
    "SetPlan",
    "Shelf",
    "Target",
]

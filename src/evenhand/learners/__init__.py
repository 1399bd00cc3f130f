"""One file per algorithm; each asks for sets and is told rewards."""

from evenhand.learners.etcg import ETCG
from evenhand.learners.even_hand import EvenHand
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.fair_cmab import FairCMAB
from evenhand.learners.full_sets import FullSets
from evenhand.learners.gap_e import GapE
from evenhand.learners.iw_ksvfair import IWKSVFair
from evenhand.learners.learner import Learner
from evenhand.learners.muras import MURaS
from evenhand.learners.ordered import OrderedLearner
from evenhand.learners.urs import URS

__all__ = [
    "ETCG",
    "URS",
    "EvenHand",
    "ExchangeableLearner",
    "FairCMAB",
    "FullSets",
    "GapE",
    "IWKSVFair",
    "Learner",
    "MURaS",
    "OrderedLearner",
]

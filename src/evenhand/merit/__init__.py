"""From a set function to its K-Shapley values, or to its full-set values: exact and estimated."""

from evenhand.estimate import Estimate
from evenhand.merit.asking import Unfinished
from evenhand.merit.cache import Cache
from evenhand.merit.carrier_form import carrier_form
from evenhand.merit.exact import exact, kshapley
from evenhand.merit.full_sets import full_set_estimate, full_set_value
from evenhand.merit.monte_carlo import monte_carlo
from evenhand.merit.processes import Processes
from evenhand.merit.reverse_reachable import reverse_reachable
from evenhand.merit.stratified import stratified

__all__ = [
    "Cache",
    "Estimate",
    "Processes",
    "Unfinished",
    "carrier_form",
    "exact",
    "full_set_estimate",
    "full_set_value",
    "kshapley",
    "monte_carlo",
    "reverse_reachable",
    "stratified",
]

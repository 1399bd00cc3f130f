"""From marginals to a law over K-sets."""

from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.dependent_rounding import DependentRounding
from evenhand.designs.design import Design, ExplicitDesign, Fitted
from evenhand.designs.enumerated import EnumeratedMaxEntropy
from evenhand.designs.mixture import Mixture
from evenhand.designs.systematic import Systematic
from evenhand.designs.uniform import Uniform

__all__ = [
    "ConditionalPoisson",
    "DependentRounding",
    "Design",
    "EnumeratedMaxEntropy",
    "ExplicitDesign",
    "Fitted",
    "Mixture",
    "Systematic",
    "Uniform",
]

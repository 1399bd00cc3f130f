"""From marginals to a law over K-sets."""

from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.cube import Cube
from evenhand.designs.dependent_rounding import DependentRounding
from evenhand.designs.design import Design, ExplicitDesign, Fitted
from evenhand.designs.enumerated import EnumeratedMaxEntropy
from evenhand.designs.horvitz_thompson import HorvitzThompson, horvitz_thompson
from evenhand.designs.mixture import Mixture
from evenhand.designs.pairs import Estimated, PairMarginals, estimate_pair_marginals
from evenhand.designs.sampford import Sampford
from evenhand.designs.systematic import Systematic
from evenhand.designs.uniform import Uniform

__all__ = [
    "ConditionalPoisson",
    "Cube",
    "DependentRounding",
    "Design",
    "EnumeratedMaxEntropy",
    "Estimated",
    "ExplicitDesign",
    "Fitted",
    "HorvitzThompson",
    "Mixture",
    "PairMarginals",
    "Sampford",
    "Systematic",
    "Uniform",
    "estimate_pair_marginals",
    "horvitz_thompson",
]

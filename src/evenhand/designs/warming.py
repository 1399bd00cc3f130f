"""Everything a kind of design can do, done once on a few arms, so that it is compiled."""

import numpy as np

from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.design import ExplicitDesign, Fitted
from evenhand.designs.enumerated import EnumeratedMaxEntropy
from evenhand.designs.mixture import Mixture

EXAMPLES = (
    (0.9, 0.75, 0.5, 0.35, 0.3, 0.2),
    (1.0, 0.8, 0.7, 0.5, 0.0, 0.0),  # with arms that have no choice
    (0.99, 0.98, 0.9, 0.8, 0.73, 0.6),  # draws of five arms are hardly ever distinct: the tree
)
MANY = (0.5,) * 60  # arms, half of which are in: conditioned by the contour


def warm(kind: type[Fitted]) -> None:
    """Fit, draw, weigh and restore designs of a kind, in all the ways it has for that."""
    rng = np.random.default_rng(0)
    for marginals in (*EXAMPLES, MANY) if kind is ConditionalPoisson else EXAMPLES:
        design = kind.fit(marginals)
        if isinstance(design, ConditionalPoisson | EnumeratedMaxEntropy):
            design = type(design).from_state(design.warm_state(), design.k).refit(marginals)
        for n in (1, 64):  # with 64 all sets are listed, with one they are not
            sets = design.sample(n, rng)
            if isinstance(design, ExplicitDesign):
                mixture = Mixture(design, 0.5)
                mixture.weights(sets)
                mixture.sample(n, rng)

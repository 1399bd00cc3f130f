"""Random games with rewards 0 or 1, each hard for learners in a way of its own."""

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.games.carrier import Carrier, additive
from evenhand.games.game import NoisyMean
from evenhand.games.noise import Bernoulli
from evenhand.games.noisy_or import NoisyOr
from evenhand.games.set_function import SetFunction
from evenhand.typing import Bools, Floats


class WideNoisyOr(NoisyMean):
    """Noisy-OR with qualities log-uniform over two decades, 0.01 to 1: merits differ a hundredfold.

    Parameters
    ----------
    m
        Number of arms.
    rng
        Generator of the qualities.

    Examples
    --------
    >>> merit = WideNoisyOr(50, np.random.default_rng(1)).kshapley(8)
    >>> bool(merit.max() > 50 * merit.min())
    True
    """

    def __init__(self, m: int, rng: np.random.Generator) -> None:
        m = check_integer("m", m, 1)
        self._means = NoisyOr(10.0 ** check_rng(rng).uniform(-2.0, 0.0, m))
        super().__init__(m, Bernoulli())

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        return self._means.value(sets)

    def kshapley(self, k: int) -> Floats:
        """K-Shapley values in closed form."""
        return self._means.kshapley(k)


def random_coverage(m: int, rng: np.random.Generator) -> SetFunction:
    """Weight of what the arms cover together of 60 things: redundancy without any formula.

    Each arm covers every thing with a chance of its own, between 0.05 and 0.3.

    Examples
    --------
    >>> game = random_coverage(5, np.random.default_rng(1))
    >>> everything = game.value(np.ones((1, 5), bool))
    >>> bool(everything[0] < game.value(np.eye(5, dtype=bool)).sum())  # they overlap
    True
    """
    m = check_integer("m", m, 1)
    weights = check_rng(rng).dirichlet(np.ones(60))
    covers = rng.random((m, 60)) < rng.uniform(0.05, 0.3, (m, 1))
    covers[np.arange(m), rng.integers(0, 60, m)] = True  # nobody covers nothing
    table = covers.astype(np.float64)
    return SetFunction(
        lambda sets: ((sets.astype(np.float64) @ table) > 0.0) @ weights, m, noise=Bernoulli()
    )


def random_additive(m: int, k: int, rng: np.random.Generator) -> Carrier:
    """Worths that add up, up to 0.9 for the k best: no saturation at all.

    Examples
    --------
    >>> merit = random_additive(6, 2, np.random.default_rng(1)).kshapley(2)
    >>> round(float(np.sort(merit)[-2:].sum()), 6)
    0.9
    """
    m, k = check_budget(m, k)
    worth = check_rng(rng).uniform(0.05, 1.0, m)
    return additive(0.9 / np.sort(worth)[-k:].sum() * worth, noise=Bernoulli())


def best_member(m: int, rng: np.random.Generator) -> SetFunction:
    """The best of the members counts alone: weak arms gain next to nothing in company.

    Examples
    --------
    >>> game = best_member(4, np.random.default_rng(1))
    >>> game.value(np.eye(4, dtype=bool)).max() == game.value(np.ones((1, 4), bool))
    array([ True])
    """
    worth = check_rng(rng).uniform(0.05, 0.95, check_integer("m", m, 1))
    return SetFunction(lambda sets: (sets * worth).max(axis=1), m, noise=Bernoulli())


def hidden_pair(m: int, rng: np.random.Generator) -> Carrier:
    """Worths that add up, but arm 0 is worthless alone and brings 0.3 beside arm 1.

    Examples
    --------
    >>> game = hidden_pair(5, np.random.default_rng(1))
    >>> game.value(np.array([[True, False, False, False, False]]))
    array([0.])
    >>> int(game.kshapley(3).argmax()) in (0, 1)
    True
    """
    worth = check_rng(rng).uniform(0.02, 0.12, check_integer("m", m, 2))
    worth[0] = 0.0
    return Carrier([*([a] for a in range(m)), [0, 1]], [*worth, 0.3], m, noise=Bernoulli())

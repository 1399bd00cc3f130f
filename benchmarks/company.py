"""Worlds in which rewards of single arms do not say how those of larger sets scatter.

    python -m benchmarks.deployments fee quiet together --worlds 20 --base-seed 4242

Whoever reads noise off single arms alone takes what a few larger sets brought for certain.
"""

import numpy as np

from evenhand.games import NoisyOr, SetFunction
from evenhand.games.noise import Bernoulli
from evenhand.lab.games import Setting
from evenhand.merit import Estimate
from evenhand.typing import Bools, Floats

FEE = 0.05  # what every set brings
SALE = 0.5 * (1.0 - FEE)  # mean amount of a sale
CHANCE = 0.2  # that two arms or more bring something together


class FeeAndSales:
    """Noise of a fee that always comes, and of an amount up to 0.95 that seldom does."""

    def observe(self, means: Floats, rng: np.random.Generator) -> Floats:
        """Return one reward for each of the means (n,)."""
        sold = rng.random(means.shape) < (means - FEE) / SALE
        return FEE + np.where(sold, (1.0 - FEE) * rng.random(means.shape), 0.0)


class QuietAlone(SetFunction):
    """A game in which a single arm brings the same each time, and larger sets up to 30 % off it."""

    def _observe(self, sets: Bools, rng: np.random.Generator) -> Floats:
        values = super()._observe(sets, rng)
        off = 0.6 * np.minimum(values, 1.0 - values) * (rng.random(len(values)) - 0.5)
        return values + np.where(sets.sum(axis=1) > 1, off, 0.0)


def fee(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Make a noisy-OR of rare sales of any worth, with a fee that any set brings."""
    chances = np.clip(rng.gamma(1.2, 0.02, m), 0.001, 0.3)
    sales = NoisyOr(chances)
    game = SetFunction(lambda sets: FEE + SALE * sales.value(sets), m, noise=FeeAndSales())
    merit = FEE / k + SALE * sales.kshapley(k)  # the first arm of a set brings the fee
    return Setting(game, Estimate(merit, np.zeros(m), queries=0))


def quiet(m: int, rng: np.random.Generator) -> Setting:
    """Make a game in which worths add up, and arms are quiet alone."""
    worth = rng.uniform(0.01, 0.19, m)
    game = QuietAlone(lambda sets: sets @ worth, m)
    return Setting(game, Estimate(worth, np.zeros(m), queries=0))


def together(m: int, k: int) -> Setting:
    """Make a game in which arms bring nothing alone, and any two or more of them the same."""
    game = SetFunction(lambda sets: CHANCE * (sets.sum(axis=1) > 1), m, noise=Bernoulli())
    return Setting(game, Estimate(np.full(m, CHANCE / k), np.zeros(m), queries=0))

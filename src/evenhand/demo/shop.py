"""The simulated shop: what is true, which the service cannot see."""

import numpy as np

from evenhand.games import ComeAndGo, Season
from evenhand.games import shop as qualities_of
from evenhand.games.changing.world import Change
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.policy import Terms, fair_policy
from evenhand.typing import Floats

SELLERS, PLACES = 40, 6
FLOOR = 0.01  # of all places, for everyone
PERIOD = 120_000  # queries from one season to the next and back
SEASONAL = 12  # sellers who sell by the season, half of them in each
JOINS, LEAVES = 12_000, 20_000  # queries after which one seller joins and another leaves
TERMS = {"floors": FLOOR, "unit": "shares"}


class Shop:
    """Forty sellers, six places, rare purchases; some follow the season, one joins, one leaves.

    Attributes
    ----------
    world
        What sets of sellers bring, by the number of queries.
    names
        Names of all sellers that ever are.
    """

    def __init__(self, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        quality = np.array(qualities_of(SELLERS + 1, rng)._means.mu)
        quality[SELLERS] = 0.2  # who joins sells well
        names = [f"seller {i + 1}" for i in range(SELLERS)] + ["newcomer"]
        seasonal = np.argsort(-quality[:SELLERS])[1 : 2 * SEASONAL : 2]
        other = quality.copy()
        for i, arm in enumerate(seasonal):
            summer = i % 2 == 0
            names[arm] = f"{'summer' if summer else 'winter'} {i // 2 + 1}"
            low, high = 0.7 * quality[arm], min(1.3 * quality[arm], 0.9)
            quality[arm], other[arm] = (low, high) if summer else (high, low)
        steady = np.setdiff1d(np.arange(SELLERS), seasonal)
        self.leaver = int(steady[np.argsort(-quality[steady])[2]])
        self.names = tuple(names)
        year = Season(BinaryNoisyOr, quality, other, period=PERIOD)
        leaves = {self.leaver: LEAVES}
        self.world = ComeAndGo(year, {SELLERS: JOINS}, leaves, names=self.names)

    def due(self, t: int) -> Floats:
        """Shares of all places (sum 1) that sellers are truly due after t queries, by number."""
        here = self.world.present(t)
        merit = self.world.at(t).among(here).kshapley(PLACES)  # type: ignore[attr-defined]
        due = np.zeros(self.world.m)
        due[here] = fair_policy(merit, PLACES, Terms.of(TERMS)) / PLACES
        return due

    def changes(self, start: int, end: int) -> list[Change]:
        """Who joins and leaves after more than ``start`` and at most ``end`` queries."""
        return [one for t in (JOINS, LEAVES) if start < t <= end for one in self.world.changes(t)]

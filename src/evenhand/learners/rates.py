"""How quickly to forget where arms change little by little: as would have forecast best.

Changes too small to be noticed one by one still make old rewards mislead. So beside the mean of
what an arm has brought alone since it last changed, means are kept in which rewards count half
after each of some times. Every stretch of rewards is forecast by all of them, and how much better
each half-life does than the plain mean is summed up, what was earlier counting for less. Where
nothing changes, and where changes are noticed, the plain mean forecasts best.

It is a rate for all arms, so of very many the first are enough to find it.
"""

import math

import numpy as np

from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.learners.moves import FEW, LIKELY
from evenhand.typing import Floats, Ints

HALF_LIVES = 2.0 ** np.arange(3, 13)  # in shortest times between two glances
NEVER = np.inf
MOST = 4096  # arms that are followed


def fields(m: int) -> Fields:
    """What is remembered."""
    h, m = len(HALF_LIVES), min(m, MOST)
    return {
        "sums": Field(-1e30, 1e30, (h + 1, m, 2)),
        "gains": Field(-1e30, 1e30, (h, m)),
        "new": Field(-1e30, 1e30, (m, 2)),
        "told": COUNT,
    }


class Rates:
    """Means that forget, and how well they have forecast.

    Attributes
    ----------
    sums
        (h + 1, m, 2) rewards of arms alone, n and y: all, and those left with each half-life.
    gains
        (h, m) twice the logarithm of how much more likely rewards were by each half-life.
    new
        (m, 2) those that were not yet forecast.
    told
        How many rewards of all kinds had been told when some last were.
    """

    def __init__(self, m: int) -> None:
        h, m = len(HALF_LIVES), min(m, MOST)
        self.sums, self.gains = np.zeros((h + 1, m, 2)), np.zeros((h, m))
        self.new, self.told = np.zeros((m, 2)), 0

    def note(self, alone: Floats) -> None:
        """Take notice of rewards of arms alone (m, 3), to be forecast later."""
        self.new += alone[:MOST, :2]

    def see(self, variance: Floats, told: int, unit: int) -> None:
        """Forecast new rewards, then take them in.

        ``variance`` (m,) is that of one reward; half-lives are in units of so many of all kinds.
        """
        n, y = self.new.T
        known = self.sums[..., 0]
        count, each = np.maximum(known, 1.0), np.maximum(n, 1.0)
        spread = variance * (1.0 / each + 1.0 / count)
        cost = np.log(spread) + (y / each - self.sums[..., 1] / count) ** 2 / spread
        both = (n > 0.0) & (known[1:] >= FEW)
        self.gains *= self.told / max(told, 1)  # that of stretch i of n counts i/n
        self.gains += np.where(both, cost[0] - cost[1:], 0.0)
        self.sums[1:] *= (0.5 ** ((told - self.told) / unit / HALF_LIVES))[:, None, None]
        self.sums += self.new
        self.new, self.told = np.zeros_like(self.new), told

    def half_life(self, chance: float) -> float:
        """Return the half-life that has forecast best, infinite if it may have by this chance.

        Gains of a few arms that have changed are about them. So the arms in the middle must have
        gained as well, as much as would be unlikely if all had gained as they did.
        """
        m = self.gains.shape[1]
        middle = m * np.sort(self.gains, axis=1)[:, m // 4 : m - m // 4].mean(axis=1)
        gains = np.where(middle > -2.0 * math.log(LIKELY), self.gains.sum(axis=1), 0.0)
        best = int(np.argmax(gains))
        return float(HALF_LIVES[best]) if gains[best] > -2.0 * math.log(chance) else NEVER

    def restart(self, column: int, n: float, y: float) -> None:
        """Know of an arm that has changed only what it has brought since, which explains gains."""
        if column < MOST:
            self.sums[:, column], self.gains[:, column], self.new[column] = (n, y), 0.0, 0.0

    def rearrange(self, source: Ints) -> None:
        """Go on with other arms: newcomers where the source is none that was followed."""
        source = source[:MOST]
        stays = (source >= 0) & (source < len(self.new))
        places = np.where(stays, source, 0)
        self.sums = np.where(stays[:, None], self.sums[:, places], 0.0)
        self.gains = np.where(stays, self.gains[:, places], 0.0)
        self.new = np.where(stays[:, None], self.new[places], 0.0)

"""Running means per arm: evidence in its simplest form."""

import numpy as np

from evenhand.exchange import Rows
from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.learners.accounting import Counted
from evenhand.typing import Floats, Ints, compiled

FIELDS: Fields = {"totals": Field(-1e300, 1e300), "counts": COUNT}


class Means:
    """Sums and counts of gains, per arm."""

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.totals, self.counts = np.zeros(shape), np.zeros(shape, np.int64)

    def add(self, cells: Ints, gains: Floats) -> None:
        """Add each gain to its arm (its cell where there are more axes), skipping nan."""
        add_gains(self.totals.reshape(-1), self.counts.reshape(-1), cells, gains)

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the weighted gain of every arm over the prefix before it (Alg. 1, lines 15 to 17)."""
        add_prefix_gains(self.totals, self.counts, rows.orders, rows.weights, rewards)

    def branch(self) -> "Means":
        """Return evidence of no rewards, to be merged into this one."""
        return Means(self.totals.shape)

    def merge(self, other: "Means") -> None:
        """Add what another one absorbed."""
        self.totals += other.totals
        self.counts += other.counts

    def estimate(self) -> Floats:
        """Return the means, nan where nothing was counted."""
        with np.errstate(invalid="ignore"):
            return self.totals / np.where(self.counts > 0, self.counts, np.nan)

    def counted(self) -> Counted:
        """Return how many gains it rests on: each is a reward less that of the prefix before."""
        return Counted(int(self.counts.sum()), None, self.counts.copy())


@compiled
def add_gains(totals: Floats, counts: Ints, cells: Ints, gains: Floats) -> None:
    """Add each row's gain to its cell, skipping nan."""
    for i in range(len(cells)):
        if not np.isnan(gains[i]):
            totals[cells[i]] += gains[i]
            counts[cells[i]] += 1


@compiled
def add_prefix_gains(
    totals: Floats, counts: Ints, orders: Ints, weights: Floats, rewards: Floats
) -> None:
    """Add the weighted gain of every arm of every row; gains that need a nan are skipped."""
    n, k = orders.shape
    for i in range(n):
        before = 0.0
        for r in range(k):
            gain = rewards[i, r] - before
            before = rewards[i, r]
            if not np.isnan(gain):
                arm = np.uintp(orders[i, r])  # of signed numbers each is looked at for its sign
                totals[arm] += weights[i, r] * gain
                counts[arm] += 1

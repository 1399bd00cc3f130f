"""What was shown and what came of it, by arm: counts and sums for the pages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.exchange import Plan, Rows
from evenhand.typing import Floats

COLUMNS = ("given", "brought", "shown", "there")


@dataclass(slots=True)
class Tally:
    """Sums over all rewards told.

    Attributes
    ----------
    told, total
        Number of rewards, and their sum.
    given, brought
        By id of arm: its share of the sets told, each worth k/r for a set of r arms, so that it
        compares with the marginals; and the sum of the rewards of sets with it.
    shown, there
        By id of arm, sets with it, and rewards told of plans in which it was.
    """

    told: int
    total: float
    given: Floats
    brought: Floats
    shown: Floats
    there: Floats

    @classmethod
    def empty(cls, ids: int) -> "Tally":
        """Nothing told yet, for so many ids."""
        return cls(0, 0.0, *(np.zeros(ids) for _ in COLUMNS))

    def grow(self, ids: int) -> None:
        """Make room for new arms."""
        for name in COLUMNS:
            old = getattr(self, name)
            setattr(self, name, np.append(old, np.zeros(max(0, ids - len(old)))))

    def add_rewards(self, rewards: Floats) -> None:
        """Count rewards; missing ones are nan."""
        there = rewards[~np.isnan(rewards)]
        self.told += len(there)
        self.total += float(there.sum())

    def add(self, plan: Plan, rows: Rows, rewards: Floats) -> None:
        """Count rows and their rewards."""
        self.add_rewards(rewards)
        sizes = rows.sizes[:, 0]
        inside = (np.arange(plan.k) < sizes[:, None]) & ~np.isnan(rewards)[:, None]
        where, _ = np.nonzero(inside)
        ids = plan.arms[rows.orders[inside]]
        n = len(self.given)
        self.given += np.bincount(ids, plan.k / sizes[where], n)
        self.brought += np.bincount(ids, rewards[where], n)
        self.shown += np.bincount(ids, minlength=n)
        self.there[plan.arms] += np.count_nonzero(~np.isnan(rewards))

    def as_json(self) -> list[Any]:
        """All of it, as JSON."""
        return [self.told, self.total, *(getattr(self, name).tolist() for name in COLUMNS)]

    @classmethod
    def from_json(cls, data: list[Any]) -> "Tally":
        """Return what gave this JSON."""
        told, total, *vectors = data
        if len(vectors) < len(COLUMNS):  # early snapshots did not count who was there
            vectors.append([told] * len(vectors[0]))
        return cls(told, total, *(np.array(vector, np.float64) for vector in vectors))

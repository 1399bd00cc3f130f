"""What was shown and what came of it, by arm: counts and sums for the pages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.exchange import Plan, Rows
from evenhand.typing import Floats


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
    shown
        By id of arm, sets with it.
    """

    told: int
    total: float
    given: Floats
    brought: Floats
    shown: Floats

    @classmethod
    def empty(cls, ids: int) -> "Tally":
        """Nothing told yet, for so many ids."""
        return cls(0, 0.0, np.zeros(ids), np.zeros(ids), np.zeros(ids))

    def grow(self, ids: int) -> None:
        """Make room for new arms."""
        for name in ("given", "brought", "shown"):
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

    def as_json(self) -> list[Any]:
        """All of it, as JSON."""
        vectors = [self.given.tolist(), self.brought.tolist(), self.shown.tolist()]
        return [self.told, self.total, *vectors]

    @classmethod
    def from_json(cls, data: list[Any]) -> "Tally":
        """Return what gave this JSON."""
        told, total, *vectors = data
        return cls(told, total, *(np.array(vector, np.float64) for vector in vectors))

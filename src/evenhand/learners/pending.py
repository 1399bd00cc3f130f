"""Rounds drawn when a policy was made and not yet asked."""

from typing import Any

import numpy as np

from evenhand.designs import Design
from evenhand.exchange.batch import Batch
from evenhand.learners.learner import MAX_BATCH
from evenhand.typing import Floats, Ints, compiled


class Pending:
    """Row-aligned arrays that are handed out from the front.

    Drawing all rounds of a policy at once makes the trajectory independent of how asks cut it.
    """

    def __init__(self, **arrays: np.ndarray) -> None:
        self.arrays = arrays
        self.taken = 0

    @property
    def left(self) -> int:
        """Rows not yet handed out."""
        return len(next(iter(self.arrays.values()))) - self.taken if self.arrays else 0

    def take(self, n: int) -> dict[str, Any]:
        """Hand out the next n rows."""
        rows = slice(self.taken, self.taken + n)
        self.taken += n
        return {name: array[rows] for name, array in self.arrays.items()}

    def state(self) -> dict[str, np.ndarray]:
        """What is left, for a snapshot."""
        return {f"pending_{name}": array[self.taken :] for name, array in self.arrays.items()}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray]) -> "Pending":
        """Take over what :meth:`state` returned, among other arrays."""
        head = "pending_"
        return cls(**{n.removeprefix(head): a for n, a in arrays.items() if n.startswith(head)})


def rounds_to_serve(rounds: int, growth: float, m: int, k: int) -> int:
    """Rounds that the policy made after ``rounds`` rounds serves.

    Early policies change every round, later ones when they have something new to say; with many
    arms a single round says little. ``growth=0`` refreshes every round for m <= 50 k.
    """
    return max(1, int(growth * rounds), m // (50 * k))


def means(totals: Floats, counts: Ints) -> Floats:
    """Running means, nan where nothing was counted."""
    with np.errstate(invalid="ignore"):
        return totals / np.where(counts > 0, counts, np.nan)


@compiled
def add_gains(totals: Floats, counts: Ints, arms: Ints, gains: Floats) -> None:
    """Add each row's gain to its arm, skipping nan."""
    for i in range(len(arms)):
        if not np.isnan(gains[i]):
            totals[arms[i]] += gains[i]
            counts[arms[i]] += 1


def add_pairs(totals: Floats, counts: Ints, batch: Batch, rewards: Floats) -> None:
    """Add the gains of rows asked just before and with their arm."""
    add_gains(totals, counts, batch.notes["arms"], rewards[:, 1] - rewards[:, 0])


def countable(design: Design, limit: int) -> int:
    """How many of ``limit`` draws to count in one batch: all where the sets can be listed."""
    return limit if design.listed is not None else min(limit, MAX_BATCH)

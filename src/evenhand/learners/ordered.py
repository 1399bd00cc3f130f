"""Learners whose next row depends on the rows before it: one process asks them in turn."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer
from evenhand.exchange import Ledger
from evenhand.learners.drafts import Asked
from evenhand.learners.learner import Learner
from evenhand.randomness.streams import Seed
from evenhand.typing import Ints

KEEP = 2**17  # rows that can still be told
Notes = dict[str, Ints]


class OrderedLearner(Learner):
    """A learner that notes in the ledger what it will need of each row."""

    horizon: int

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        seed: Seed,
        names: Iterable[str] | None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> None:
        horizon = check_integer("horizon", horizon, 1)
        super().__init__(m, k, horizon, seed, names, rewards, empty)
        self.ledger = Ledger(KEEP, self._notes())

    @abstractmethod
    def _notes(self) -> dict[str, int]:
        """Names of what is noted of a row, with the largest it may be."""

    @abstractmethod
    def _sizes(self, kept: Notes) -> Ints:
        """Sizes (n, s) that rows were queried at, given what was noted of them."""

    def add(self, *arms: Any) -> NoReturn:
        """Refuse: the order of its rows is laid out for the arms that there are at the start."""
        raise TypeError(
            f"{type(self).__name__} cannot change its arms while it runs; make a new one, or take "
            "EvenHand, which can"
        )

    retire = pause = resume = add

    def _recall(self, rows: slice | Ints) -> Asked:
        kept = {name: self.ledger.read(name, rows) for name in self.ledger.notes}
        return Asked(self._sizes(kept), kept)


class GainSampler(OrderedLearner):
    """A learner that samples gains: each row is a set before and with its target arm."""

    def _notes(self) -> dict[str, int]:
        return {"arms": self.m - 1, "before": self.k - 1}

    def _sizes(self, kept: Notes) -> Ints:
        return kept["before"][:, None] + np.arange(2)

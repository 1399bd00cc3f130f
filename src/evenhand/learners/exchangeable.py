"""Learners whose rows are independent given a plan, and so can be served in any order."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer
from evenhand.exchange import Marginals, Plan, Rows, Shelf
from evenhand.exchange.fields import COUNT, Fields
from evenhand.exchange.shelf import DrawnElsewhere, Part, joined
from evenhand.learners.learner import Asked, Draft, Learner
from evenhand.randomness.state import kind_of
from evenhand.randomness.streams import Seed
from evenhand.typing import Floats, Ints

P = TypeVar("P", bound=Plan)


class Evidence(Protocol):
    """What rewards have said so far, as sums; and what they are compared with, if anything."""

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards of rows."""

    def branch(self) -> Self:
        """Return evidence of no rewards yet, to be merged into this one."""

    def merge(self, other: Self) -> None:
        """Add what a branch absorbed: the same as if this one had absorbed it."""

    def estimate(self) -> Any:
        """Return all that follows from the sums, in one value."""


class Recalled(NamedTuple):
    """Rows that are told, all together and plan by plan."""

    rows: Rows
    parts: list[Part]


class Published(NamedTuple, Generic[P]):
    """A new plan, the number of its first row in the ledger, and all its rows."""

    plan: P
    first: int
    rows: Rows


class ExchangeableLearner(Learner, Generic[P]):
    """A learner that publishes plans and draws all rows of a plan at once (URS as they are asked).

    The rows of a plan are independent, and a row's weights are those of its own plan: any subset of
    rows may be shown, by any number of workers and in any order, if the choice does not depend on
    which arms they contain. (Rows of
    the other learners depend on those before, so that one process has to ask them in turn.)

    Attributes
    ----------
    evidence
        What rewards have said so far.
    plan
        The newest plan, from which queries are drawn; None if none was made yet.
    """

    evidence: Evidence | None = None

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int | None,
        seed: Seed,
        names: Iterable[str] | None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> None:
        super().__init__(m, k, horizon, seed, names, rewards, empty)
        self.plan: P | None = None
        self._plans = 0  # published so far
        self._shelf = Shelf(kind_of(self._rng))

    @abstractmethod
    def _make_plan(self) -> tuple[P, int]:
        """Return a new plan of what is known now, and the number of rows it serves."""

    @property
    def _left(self) -> int:
        """Rows of the plan that have not been asked."""
        return self._shelf.end - self.ledger.next

    def _take(self, n: int) -> Draft:
        """Return copies of up to n rows of the plan; make a new plan if all its rows were asked."""
        if not self._left:
            self._publish()
        assert self.plan is not None
        start, left = self.ledger.next, self._left
        try:
            rows = self._shelf.rows(slice(start, start + min(n, left)))
        except DrawnElsewhere:  # restored where other rows are drawn: skip the rest of the plan
            self.ledger.settle(self.ledger.open(left), missing=True)
            return self._take(n)
        return Draft(rows.orders.copy(), np.array(rows.sizes), Marginals(self.plan.marginals), {})

    def publish(self, least: int = 1) -> Published[P]:
        """Make a new plan, draw at least so many rows of it and ask all of them at once.

        For those who hand rows out themselves, to many askers. Rows of the plan before that were
        not asked are given up.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> learner = EvenHand(m=20, k=5, seed=1)
        >>> found = learner.publish(least=30)
        >>> found.first, len(found.rows.orders), learner.queries
        (0, 30, 30)
        """
        least = check_integer("least", least, 1)
        with self._lock:
            if self._left:
                self.ledger.settle(self.ledger.open(self._left), missing=True)
            self._publish(least)
            assert self.plan is not None
            first = self.ledger.next
            while self._left:
                self.ask()
            rows = self._shelf.rows(slice(first, self.ledger.next))
            return Published(self.plan, first, rows)

    def _publish(self, least: int = 1) -> None:
        """Make a plan and draw all its rows, so that how asks cut them changes nothing."""
        self.plan, n = self._make_plan()
        self._plans += 1
        self._shelf.put(self.plan, max(n, least), self.ledger, self._rng)

    def _recall(self, rows: slice | Ints) -> Asked:
        parts = self._shelf.parts(rows)
        drawn = joined(parts)
        return Asked(drawn.sizes, Recalled(drawn, parts))

    def _tell(self, kept: Recalled, rewards: Floats) -> None:
        assert self.evidence is not None
        self.evidence.absorb(kept.rows, rewards)

    def _settle(self, rows: slice | Ints) -> None:
        self._shelf.settle(rows, self.ledger)

    def _all_fields(self) -> Fields:
        return {**super()._all_fields(), "_plans": COUNT}

    def _parts(self) -> dict[str, np.ndarray]:
        return {**super()._parts(), "plans": self._shelf.to_array()}

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        self._shelf = Shelf(kind_of(self._rng))
        plan = self._shelf.set_array(arrays["plans"], self.ledger)
        if plan is None:
            if self._plans:
                raise ValueError("the newest plan is missing")
            return
        if (plan.m, plan.k, plan.number) != (self.m, self.k, self._plans - 1):
            raise ValueError(
                f"the newest plan must be number {self._plans - 1} of m={self.m} and k={self.k}"
            )
        self.plan = cast(P, plan)

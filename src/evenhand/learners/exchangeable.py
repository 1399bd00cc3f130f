"""Learners whose rows are independent given a plan, and so can be served in any order."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer
from evenhand.exchange import Marginals, Plan, Roster, Rows, Shelf
from evenhand.exchange.fields import COUNT, Fields
from evenhand.exchange.shelf import DrawnElsewhere, Part, joined
from evenhand.learners.accounting import Counted
from evenhand.learners.drafts import Asked, Draft
from evenhand.learners.learner import Learner
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

    def counted(self) -> Counted:
        """Return how many rewards it rests on."""


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
    """A learner that publishes plans and draws their rows many at a time (URS as they are asked).

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
    forgets_late: ClassVar[bool] = False  # rows told after a change of arms are all closed

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
        self._since = 0  # number of the first plan for the arms that there are now
        self._shelf = Shelf(kind_of(self._rng))

    @abstractmethod
    def _make_plan(self) -> tuple[P, int]:
        """Return a new plan of what is known now, and the number of rows it serves."""

    def _more(self, ahead: int = 0) -> int:
        """How many more rows the plan is to serve once all were asked; 0 if it is time for another.

        Rows are always drawn by the same numbers at a time, so that how asks cut them changes
        nothing. What is to be said once so many further rows are asked and told may be guessed.
        """
        return 0

    @property
    def _left(self) -> int:
        """Rows of the plan that have not been asked."""
        return self._shelf.end - self.ledger.next

    def _take(self, n: int) -> Draft:
        """Return copies of up to n rows of the plan; draw more, or make a new one, at its end."""
        start, left = self.ledger.next, self._left
        if not left:
            if (more := self._more()) and self.plan is not None:
                self._shelf.put(self.plan, more, self.ledger, self._rng)
            else:
                self._publish()
            assert self.plan is not None
            left = self._left
            self._shelf.draw_ahead(self.plan, self._more(left), self._rng)
        assert self.plan is not None
        try:
            rows = self._shelf.rows(slice(start, start + min(n, left)))
        except DrawnElsewhere:  # restored where other rows are drawn
            self._shelf.cut(self.ledger)
            return self._take(n)
        orders = self._by_id(self.plan, rows.orders)
        return Draft(orders, np.array(rows.sizes), Marginals(self.plan.marginals), {})

    def publish(self, least: int = 1, given: tuple[Plan, Rows] | None = None) -> Published[P]:
        """Make a new plan, draw at least so many rows of it and ask all of them at once.

        For those who hand rows out themselves, to many askers. Rows of the plan before that were
        not asked are given up. A plan and rows made elsewhere, from what is known here, may be
        given: they take the place of one's own.

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
            self._shelf.cut(self.ledger)
            self._publish(least, given)
            assert self.plan is not None
            first = self.ledger.next
            while self._left:
                self.ask()
            rows = self._shelf.rows(slice(first, self.ledger.next))
            return Published(self.plan, first, rows)

    def _publish(self, least: int = 1, given: tuple[Plan, Rows] | None = None) -> None:
        """Make a plan and draw all its rows, so that how asks cut them changes nothing."""
        self.plan, n = self._make_plan()
        n, rows = max(n, least), None
        if given is not None:
            self.plan, rows = cast(P, given[0]), given[1]
            n = len(rows.sizes)
        self._plans += 1
        self._shelf.put(self.plan, n, self.ledger, self._rng, rows)

    @staticmethod
    def _by_id(plan: Plan, orders: Ints) -> Ints:
        """Orders of a plan's columns, by id."""
        if plan.arms[-1] == plan.m - 1:  # ids ascend: these are 0..m-1
            return orders.copy()
        return np.append(plan.arms, -1)[orders]

    def _recall(self, rows: slice | Ints) -> Asked:
        parts = self._shelf.parts(rows)
        drawn = joined(parts)
        if parts[0].plan.number >= self._since:  # the oldest
            return Asked(drawn.sizes, Recalled(drawn, parts))
        left = np.zeros(len(drawn.orders), np.bool_)
        for i, (plan, places, old) in enumerate(parts):
            if plan.number < self._since:  # of a plan for other arms
                orders = np.append(self.roster.places(plan.arms), -1)[old.orders]
                left[places] = np.any((orders < 0) & (old.orders >= 0), axis=1) | self.forgets_late
                parts[i] = Part(plan, places, Rows(orders, old.sizes, old.weights))
        return Asked(drawn.sizes, Recalled(joined(parts), parts), left)

    def _tell(self, kept: Recalled, rewards: Floats) -> None:
        assert self.evidence is not None
        if kept.parts[0].plan.number >= self._since:
            self.evidence.absorb(kept.rows, rewards)
            return
        for plan, places, rows in kept.parts:
            if plan.number >= self._since:
                self.evidence.absorb(rows, rewards[places])
                continue
            if not self.forgets_late:
                here = np.all((rows.orders >= 0) | (np.arange(self.k) >= rows.sizes), axis=1)
                self._tell_late(plan, rows.pick(np.flatnonzero(here)), rewards[places][here])

    def _tell_late(self, plan: Plan, rows: Rows, rewards: Floats) -> None:
        """Take in rewards of rows of a plan for other arms, all of which are here still."""

    # ---- arms that come and go ----

    def add(self, names: Sequence[str] | int) -> Ints:
        """Let new arms join from the next query on; return their ids, in the order of the names.

        Parameters
        ----------
        names
            Their names, or how many if arms have none. A name that was here before and left has
            its old id again; what was known of it then is forgotten.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> learner = EvenHand(m=3, k=2, names=["ada", "bob", "cy"], seed=1)
        >>> learner.add(["dee"]), learner.names
        (array([3]), ('ada', 'bob', 'cy', 'dee'))
        """
        with self._lock:
            before = self.roster
            self._change(before.add(names, self.queries))
            if before.names is None:
                return np.arange(before.next_id, self.roster.next_id)
            return np.array(self.roster.find(names))  # one that is back has a smaller id

    def retire(self, arms: Any) -> None:
        """Let arms leave, given by id or name, one or a list: what was known of them is forgotten.

        Rows that are out and hold one of them are closed when they are told, and counted in
        ``ledger.n_left``.
        """
        with self._lock:
            self._change(self.roster.retire(arms))

    def pause(self, arms: Any) -> None:
        """Do not show arms for a while, given by id or name: what is known of them is kept.

        Rows that are out and hold one of them are closed if they are told before it resumes.
        """
        with self._lock:
            self._change(self.roster.pause(arms))

    def resume(self, arms: Any) -> None:
        """Show paused arms again, given by id or name."""
        with self._lock:
            self._change(self.roster.resume(arms))

    def _change(self, roster: Roster) -> None:
        """Go on with other arms: rows of the plan that were not asked are not asked any more."""
        if roster.m < self.k:
            raise ValueError(
                f"at least k={self.k} arms must remain to fill a set, got {roster.m}; "
                "add others first"
            )
        old = self.roster
        known = np.append(old.ids, np.array(sorted(old.paused), np.int64))
        order = np.argsort(known)

        def sources(ids: Ints) -> Ints:
            at = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
            return np.where(known[order[at]] == ids, order[at], -1)

        self._rearrange(sources(roster.ids), sources(np.array(sorted(roster.paused), np.int64)))
        self._shelf.cut(self.ledger)
        self.roster, self.m, self._since = roster, roster.m, self._plans
        places, more = self.selections.sum(), np.zeros(roster.next_id - old.next_id, np.int64)
        self.selections = np.append(self.selections, more)
        self._last, self._missed = np.append(self._last, more - 1), np.append(self._missed, more)
        self._missed[np.setdiff1d(roster.ids, old.ids)] += places
        self._missed[np.setdiff1d(old.ids, roster.ids)] -= places

    def _rearrange(self, source: Ints, away: Ints) -> None:
        """Arrange what is known for other arms.

        ``source`` (m,) says for each column that there will be where it comes from: a column of
        now, behind those a paused arm, or -1 for a newcomer; ``away`` the same for paused arms.
        """
        raise TypeError(
            f"{type(self).__name__} cannot change its arms while it runs; make a new one, or take "
            "EvenHand, which can"
        )

    def _background(self) -> dict[str, Any]:
        if self.evidence is None:
            return super()._background()
        return super()._background() | self.evidence.counted()._asdict()

    def _settle(self, rows: slice | Ints) -> None:
        self._shelf.settle(rows, self.ledger)

    def _all_fields(self) -> Fields:
        return {**super()._all_fields(), "_plans": COUNT, "_since": COUNT}

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
        m = plan.m if self._since == self._plans else self.m  # arms may have changed after it
        if (plan.m, plan.k, plan.number) != (m, self.k, self._plans - 1):
            raise ValueError(
                f"the newest plan must be number {self._plans - 1} of m={self.m} and k={self.k}"
            )
        if self._since > self._plans or (self._since == self._plans and self._left):
            raise ValueError("since must be the number of a plan, the next one at most")
        self.plan = cast(P, plan)

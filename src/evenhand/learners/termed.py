"""Learners that keep to terms, which may change while they run."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from evenhand.account.account import Group
from evenhand.exchange import Plan, Roster
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.proportional import on_terms, proportional, room_for_uniform
from evenhand.policy import Bounds, Terms
from evenhand.policy import Group as Together
from evenhand.typing import Bools, Floats

P = TypeVar("P", bound=Plan)


class TermedLearner(ExchangeableLearner[P]):
    r"""A learner whose marginals keep to terms from the first query on, explored sets included.

    With e the marginals that the terms give to arms of equal merit, each arm keeps at least
    :math:`\delta e_a`, and at most :math:`1 - \delta (1 - e_a)`, as without terms, where e is K/M.
    Of the sets a share :math:`\mu \le \delta` is uniform, as large as these marginals leave room
    for: at least :math:`\delta \min_a \min(\frac MK e_a, \frac{1 - e_a}{1 - K/M})`. Arms with a cap
    of 0 are paused.

    Attributes
    ----------
    terms
        What shares must satisfy, or None.
    past_terms
        Terms that were in force before, each with the number of queries at which it ended.
    """

    terms: Terms | None = None
    _bounds: Bounds | None = None  # the terms for the arms that there are now
    past_terms: tuple[tuple[int, Terms | None], ...] = ()

    def change_terms(self, terms: Terms | None) -> None:
        """Keep to other terms from the next query on, or to none.

        Rows that were drawn and not yet asked are dropped; rows that are out can be told as
        before. Terms that cannot be satisfied are refused, and nothing changes.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> learner = EvenHand(m=4, k=2, seed=1)
        >>> learner.change_terms(Terms(floors={0: 0.9}, unit="marginals"))
        >>> learner.ask(1).exposure.q.round(3)
        array([0.9  , 0.367, 0.367, 0.367])
        """
        with self._lock:
            before = self.terms
            self._agree(terms)
            self.past_terms = (*self.past_terms, (self.queries, before))
            self._shelf.cut(self.ledger)

    def _agree(self, given: Terms | Mapping[str, Any] | None) -> None:
        """Take over terms, and pause the arms that they take out."""
        terms = Terms.of(given)
        roster = self.roster.resume(sorted(self.barred)) if self.barred else self.roster
        bounds, barred = None, frozenset[int]()
        if terms is not None:
            names = None if roster.names is None else (*roster.names, *roster.former)
            known = np.array([*roster.ids.tolist(), *roster.paused])
            terms.check_known(known, names)
            bounds = terms.bounds(self.k, roster.ids, roster.names)
            barred = frozenset(roster.ids[bounds.high == 0.0].tolist())
            roster = roster.pause(sorted(barred)) if barred else roster
            bounds = self._bounds_of(terms, roster)
        if barred != self.barred:
            super()._change(roster)
        self.terms, self._bounds, self.barred = terms, bounds, barred

    def _bounds_of(self, terms: Terms, roster: Roster) -> Bounds:
        """Return terms for the arms of a roster, refusing those that cannot be kept to."""
        return terms.bounds(self.k, roster.ids, roster.names)

    def _change(self, roster: Roster) -> None:
        bounds = None
        if self.terms is not None and roster.m >= self.k:
            bounds = self._bounds_of(self.terms, roster)
            if not bounds.high.all():
                out = roster.label(int(roster.ids[int(np.argmin(bounds.high))]))
                raise ValueError(
                    f"arms must have a cap above 0 by the terms, got {out!r}; change the terms"
                )
        super()._change(roster)
        self._bounds, self.barred = bounds, self.barred & set(roster.paused)

    @property
    @abstractmethod
    def _known(self) -> Bools:
        """Whether anything is known of each arm (m,)."""

    def _share_out(self, merits: Floats, rate: float) -> Floats:
        """Marginals proportional to the merits, as far as terms and exploring allow."""
        if self.terms is None or self._bounds is None:
            return proportional(merits, self._known, self.k, rate)
        return on_terms(merits, self._known, self.k, self.terms, self._bounds, rate)

    @abstractmethod
    def _wanted(self) -> tuple[Floats, float]:
        """Merits that a policy made now would follow, and its share of uniformly drawn sets."""

    def _background(self) -> dict[str, Any]:
        said = super()._background() | {"agreed": tuple(n for n, _ in self.past_terms)}
        if self.terms is None or self._bounds is None:
            return said
        bounds, (merits, rate) = self._bounds, self._wanted()
        limits = zip(self.terms.groups, bounds.group_low, bounds.group_high, strict=True)
        return said | {
            "without_terms": proportional(merits, self._known, self.k, rate),
            "floors": bounds.low,
            "caps": bounds.high,
            "group": bounds.group,
            "groups": tuple(Group(name, float(low), float(high)) for name, low, high in limits),
            "power": self.terms.power,
        }

    def _uniform_share(self, policy: Floats, rate: float) -> float:
        """Share of uniformly drawn sets in the law of a policy."""
        return rate if self.terms is None else min(rate, room_for_uniform(policy, self.k))

    def warm(self) -> None:
        """Compile now what this learner may need later, so that no other call waits for it."""
        super().warm()
        Terms(groups={"both": Together([0, 1])}, unit="shares").policy(np.ones(3), 1)

    # ---- state: terms depend on the roster, which a constructor does not know ----

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"terms": None}

    def _parts(self) -> dict[str, np.ndarray]:
        if self.terms is None and not self.past_terms:
            return super()._parts()
        past = [[queries, terms and terms.to_json()] for queries, terms in self.past_terms]
        now = self.terms and self.terms.to_json()
        text = json.dumps({"terms": now, "barred": sorted(self.barred), "past": past})
        return {**super()._parts(), "terms": np.frombuffer(text.encode(), np.uint8)}

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        if "terms" not in arrays:
            return
        kept = json.loads(arrays["terms"].tobytes())
        self.terms, self.barred = Terms.of(kept["terms"]), frozenset(map(int, kept["barred"]))
        self.past_terms = tuple((int(n), Terms.of(terms)) for n, terms in kept["past"])
        if not self.barred <= set(self.roster.paused):
            raise ValueError("arms with a cap of 0 must be paused")
        if self.terms is not None:
            self._bounds = self._bounds_of(self.terms, self.roster)

    def __repr__(self) -> str:
        plain = super().__repr__()
        if self.terms is None:
            return plain
        start, end = plain.rsplit(", queries=", 1)
        return f"{start}, terms={self.terms!r}, queries={end}"

"""Learners that keep to terms, which may change while they run."""

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.exchange import Plan
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.proportional import (
    mixing_rate,
    on_terms,
    proportional,
    room_for_uniform,
)
from evenhand.policy import Group, Terms
from evenhand.randomness.streams import Seed
from evenhand.typing import Columns, Floats

P = TypeVar("P", bound=Plan)


class TermedLearner(ExchangeableLearner[P]):
    r"""A learner whose marginals keep to terms from the first query on, explored sets included.

    With e the marginals that the terms give to arms of equal merit, each arm keeps at least
    :math:`\delta e_a`, and at most :math:`1 - \delta (1 - e_a)`, as without terms, where e is K/M.
    Of the sets a share :math:`\mu \le \delta` is uniform, as large as these marginals leave room
    for: at least :math:`\delta \min_a \min(\frac MK e_a, \frac{1 - e_a}{1 - K/M})`.

    Attributes
    ----------
    terms
        What shares must satisfy, or None.
    past_terms
        Terms that were in force before, each with the number of queries at which it ended.
    """

    def __init__(
        self,
        m: int,
        k: int,
        seed: Seed,
        names: Iterable[str] | None,
        rewards: ArrayLike,
        empty: float,
        terms: Terms | Mapping[str, Any] | None,
    ) -> None:
        super().__init__(m, k, None, seed, names, rewards, empty)
        self.past_terms: list[tuple[int, Terms | None]] = []
        self._agree(Terms.of(terms))

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
            before, shown = self.terms, self._shown
            self._agree(Terms.of(terms))
            if not np.array_equal(np.arange(self.m)[shown], np.arange(self.m)[self._shown]):
                self._show_others()
            self.past_terms.append((self.queries, before))
            if self._left:
                self.ledger.settle(self.ledger.open(self._left), missing=True)

    def _agree(self, terms: Terms | None) -> None:
        """Take over terms, refusing those that cannot be satisfied."""
        bounds = None
        if terms is not None:
            terms.check_known(self.roster.ids, self.roster.names)
            bounds = terms.bounds(self.k, self.roster.ids, self.roster.names)
        self.terms, self._bounds = terms, bounds

    @abstractmethod
    def _show_others(self) -> None:
        """Take note that other arms than before may be shown."""

    @property
    def _shown(self) -> Columns:
        """Columns of the arms that may be shown."""
        if self._bounds is None or self._bounds.high.all():
            return slice(None)
        return np.flatnonzero(self._bounds.high)

    def _rate(self) -> float:
        """Share of uniformly drawn sets that the next policy has room for, but for terms."""
        shown = self.m if self._bounds is None else int(np.count_nonzero(self._bounds.high))
        return mixing_rate(self.queries, shown)

    def _policy(self, merits: Floats) -> Floats:
        """Marginals proportional to the merits, as far as terms and exploring allow."""
        if self.terms is None or self._bounds is None:
            return proportional(merits, self.k, self._rate())
        return on_terms(merits, self.k, self.terms, self._bounds, self._rate())

    def _uniform_share(self, policy: Floats) -> float:
        """Share of uniformly drawn sets in the law of a policy."""
        if self.terms is None:
            return self._rate()
        return min(self._rate(), room_for_uniform(policy, self.k))

    def warm(self) -> None:
        """Compile now what this learner may need later, so that no other call waits for it."""
        super().warm()
        Terms(groups={"both": Group([0, 1])}, unit="shares").policy(np.ones(3), 1)

    def _parts(self) -> dict[str, np.ndarray]:
        past = [[queries, terms and terms.to_json()] for queries, terms in self.past_terms]
        log = np.frombuffer(json.dumps(past).encode(), np.uint8)
        return {**super()._parts(), "past_terms": log}

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        if "past_terms" in arrays:  # those of older files had none
            past = json.loads(arrays["past_terms"].tobytes())
            self.past_terms = [(int(queries), Terms.of(terms)) for queries, terms in past]

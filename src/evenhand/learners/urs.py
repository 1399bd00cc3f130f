"""URS: a uniformly random K-set, every time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer
from evenhand.exchange import Marginals, Plan, Roster, Rows, SetPlan
from evenhand.exchange.batch import note_arms
from evenhand.exchange.fields import Fields
from evenhand.learners.drafts import Draft
from evenhand.learners.exchangeable import ExchangeableLearner, Published
from evenhand.learners.schedule import batch_limit
from evenhand.randomness.streams import Seed
from evenhand.typing import Floats, Ints


class URS(ExchangeableLearner[SetPlan]):
    """Uniform random sampling: every arm has marginal K/M, nothing is learnt.

    Examples
    --------
    >>> batch = URS(m=6, k=2, seed=1).ask(limit=10**9)
    >>> batch.orders.shape, int(batch.times.sum()), batch.learns
    ((15, 2), 1000000000, False)
    """

    name = "urs"
    trajectory = 2

    def __init__(
        self,
        m: int,
        k: int,
        *,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, None, seed, names, rewards, empty)
        self.plan, _ = self._make_plan()

    def _make_plan(self) -> tuple[SetPlan, int]:
        even, full = np.full(self.m, self.k / self.m), np.eye(self.k)[-1]
        return SetPlan(0, self.roster.ids, self.k, even, full, np.ones(self.k)), 1

    @property
    def merit(self) -> Floats:
        """Nan: it estimates none."""
        return np.full(self.m, np.nan)

    @property
    def marginals(self) -> Floats:
        """K/M for every arm."""
        return np.full(self.m, self.k / self.m)

    def publish(self, least: int = 1, given: tuple[Plan, Rows] | None = None) -> Published[SetPlan]:
        """Draw so many rows, one by one; nothing is learnt from them, so they have no numbers."""
        assert self.plan is not None
        with self._lock:
            n = check_integer("least", least, 1)
            rows = self.plan.draw(n, self._rng) if given is None else given[1]
            orders, once = self._by_id(self.plan, rows.orders), np.ones(len(rows.sizes), np.int64)
            note_arms(self.selections, self._last, orders, rows.sizes, once, self.queries)
            self.queries += len(rows.sizes)
            return Published(self.plan, 0, rows)

    def _ask(self, limit: int) -> Draft:
        assert self.plan is not None
        law = self.plan.law(self.k)
        sets, times = law.tally(batch_limit(law, limit), self._rng)
        return Draft.unlearnt(self._by_id(self.plan, sets), times, Marginals(self.plan.marginals))

    def _change(self, roster: Roster) -> None:
        super()._change(roster)
        self.plan, _ = self._make_plan()

    def _rearrange(self, source: Ints, away: Ints) -> None:
        """There is nothing it knows."""

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        self.plan, _ = self._make_plan()  # of the arms that there are now

    def _background(self) -> dict[str, Any]:
        return {"sizes": np.eye(self.k)[-1], "mixing": 1.0}

    def _fields(self) -> Fields:
        return {}

"""FullSets: selection in proportion to full-set values, for those who can only show K arms."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenhand.estimate import Estimate
from evenhand.exchange import FullSetPlan
from evenhand.exchange.fields import Fields
from evenhand.learners import full_evidence
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.full_evidence import FullEvidence
from evenhand.learners.learner import MAX_BATCH, Draft
from evenhand.learners.proportional import (
    anytime_width,
    mixing_rate,
    proportional,
    queries_to_serve,
)
from evenhand.randomness.streams import Seed
from evenhand.typing import Bools, Floats


class FullSets(ExchangeableLearner[FullSetPlan]):
    name = "full-sets"
    evidence: FullEvidence

    def __init__(self, m: int, k: int, *, names: Iterable[str] | None = None, seed: Seed) -> None:
        super().__init__(m, k, None, seed, names)
        self.evidence = FullEvidence(self.m, self.k)

    @property
    def merit(self) -> Floats:
        return np.where(self._seen, self.evidence.estimate().value, np.nan)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        if self.plan is not None and self._left:
            return self.plan.marginals.copy()
        return self._policy(self.evidence.estimate().shrunk)

    def estimate(self) -> Estimate:
        with self._lock:
            found = self.evidence.estimate()
            return replace(super().estimate(), stderr=np.where(self._seen, np.sqrt(found.variance), np.nan),
                intervals=self.intervals())

    def intervals(self, level: float = 0.95) -> Floats:
        width = anytime_width(level, self.evidence.told, self.m)
        found = self.evidence.estimate()
        radius = width * np.sqrt(found.variance)
        return np.clip(np.column_stack([found.value - radius, found.value + radius]), -1.0, 1.0)

    @property
    def _seen(self) -> Bools:
        return self.evidence.sums[:-1, 0] > 0.0

    def _policy(self, values: Floats) -> Floats:
        return proportional(values, self.k, mixing_rate(self.queries, self.m))

    def _make_plan(self) -> tuple[FullSetPlan, int]:
        policy = self._policy(self.evidence.renew().shrunk)
        mixing = mixing_rate(self.queries, self.m)
        plan = FullSetPlan(self._plans, self.roster.ids, self.k, policy, mixing)
        return plan, queries_to_serve(self.queries, self.m)

    def _ask(self, limit: int) -> Draft:
        return self._take(min(limit, MAX_BATCH))

    def _fields(self) -> Fields:
        return {f"evidence.{name}": field for name, field in full_evidence.FIELDS.items()}

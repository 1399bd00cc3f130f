"""URS: a uniformly random K-set, every time."""

from typing import Any

import numpy as np

from evenhand.designs import Uniform
from evenhand.exchange.batch import Batch, Marginals
from evenhand.learners.learner import Draft, Learner, Seed
from evenhand.learners.pending import countable
from evenhand.typing import Floats


class URS(Learner):
    """Uniform random sampling: every arm has marginal K/M, nothing is learnt.

    Examples
    --------
    >>> batch = URS(m=6, k=2, seed=1).ask(limit=10**9)
    >>> batch.orders.shape, int(batch.times.sum()), batch.learns
    ((15, 2), 1000000000, False)
    """

    name = "urs"
    trajectory = 2

    def __init__(self, m: int, k: int, *, seed: Seed) -> None:
        super().__init__(m, k, None, seed)
        self._design = Uniform(self.m, self.k)

    @property
    def merit(self) -> Floats:
        """Nan: it estimates none."""
        return np.full(self.m, np.nan)

    @property
    def marginals(self) -> Floats:
        """K/M for every arm."""
        return self._design.marginals.copy()

    def _ask(self, limit: int) -> Draft:
        sets, times = self._design.tally(countable(self._design, limit), self._rng)
        return Draft.unlearnt(sets, times, Marginals(self.marginals))

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        raise AssertionError("none of its batches learns")

    def _config(self) -> dict[str, Any]:
        return {"m": self.m, "k": self.k}

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        pass

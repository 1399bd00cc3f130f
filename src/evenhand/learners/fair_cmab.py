"""Fair-CMAB: fixed minimum shares for every arm, the rest to a reward maximiser."""

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.batch import Batch, Determined
from evenhand.checks import check_vector
from evenhand.learners.etcg import GreedyExploration, next_set, plays_per_set
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.typing import Floats, Ints, compiled


def largest_quota(m: int, k: int) -> float:
    """Upper end of the interval quotas are drawn from.

    The paper's 1 / (2 ceil(M/K)) - 0.01 where that is positive; else 0.92 / (2 ceil(M/K)), the
    same fraction as at the paper's (20, 5).

    Examples
    --------
    >>> round(largest_quota(20, 5), 4), round(largest_quota(534, 10), 5)
    (0.115, 0.00852)
    """
    half = 1 / (2 * ceil(m / k))
    return half - 0.01 if half > 0.01 else 0.92 * half


class FairCMAB(Learner):
    r"""Quota fairness under full-bandit feedback; a reconstruction.

    Arms are sorted by quota and cut into ceil(M/K) groups of K (the last is filled up with the
    arms before it). A group is due when it was played less often than its largest quota asks;
    the group most in arrears is played, and if none is, the query goes to a greedy exploration as
    of :class:`~evenhand.learners.ETCG`, or after that to its set. Every arm gets at least its
    quota.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    quotas
        (m,) minimum share of queries of each arm; drawn uniformly up to :func:`largest_quota` if
        not given.
    seed
        Seed or generator; draws quotas and decides ties.

    Notes
    -----
    The baseline's own description was not available; this is the simplest reading that keeps
    the quotas the paper states and learns from totals.
    """

    def __init__(
        self, m: int, k: int, horizon: int, quotas: ArrayLike | None = None, *, seed: Seed
    ) -> None:
        super().__init__(m, k, horizon, seed)
        if quotas is None:
            shares = self._rng.uniform(0.0, largest_quota(self.m, self.k), self.m)
        else:
            shares = check_vector("quotas", quotas, 0.0, 1.0)
            if len(shares) != self.m:
                raise ValueError(f"quotas must have shape ({self.m},), got {shares.shape}")
        self.quotas: Floats = shares
        order = np.argsort(-shares, kind="stable")
        starts = np.minimum(np.arange(0, self.m, self.k), self.m - self.k)
        self._groups: Ints = order[starts[:, None] + np.arange(self.k)]
        # the last group only owes those that no earlier one holds
        self._owed = np.array([shares[order[g * self.k]] for g in range(len(starts))])
        fair = sum(ceil(owed * horizon) for owed in self._owed)
        if fair > horizon:
            raise ValueError(
                f"quotas must leave room: the groups' largest add up to {self._owed.sum():.4g}, "
                "more than all queries; lower them"
            )
        self._played = np.zeros(len(starts), np.int64)
        plays = plays_per_set(m, k, max(1, horizon - fair))
        self._greedy = GreedyExploration(self.m, self.k, plays)

    @property
    def merit(self) -> Floats:
        """Nan: it estimates none."""
        return np.full(self.m, np.nan)

    @property
    def marginals(self) -> Floats:
        """The next query's set, scaled to sum to k."""
        due = _schedule(self._owed, self._played.copy(), self.queries, 1, 1)[0]
        if due >= 0:
            return np.isin(np.arange(self.m), self._groups[due]).astype(np.float64)
        return next_set(self._greedy)

    def _ask(self, limit: int) -> Draft:
        greedy = self._greedy
        if not greedy.left and len(greedy.chosen) < self.k:
            greedy.decide(self._rng)
        if len(greedy.chosen) == self.k:
            return self._commit(limit)
        due = _schedule(self._owed, self._played, self.queries, min(limit, MAX_BATCH), greedy.left)
        free = due < 0
        orders = np.zeros((len(due), self.k), np.int64)
        sizes = np.full((len(due), 1), self.k)
        orders[~free] = self._groups[due[~free]]
        arms, phases = np.full(len(due), -1), np.full(len(due), -1)
        arms[free], phases[free] = greedy.take(int(free.sum()))
        orders[free] = greedy.sets(arms[free])
        sizes[free] = len(greedy.chosen) + 1
        return Draft(orders, sizes, Determined(), {"arms": arms, "phases": phases})

    def _commit(self, limit: int) -> Draft:
        """Play groups that are due and else the set found, counted instead of listed."""
        before = self._played.copy()
        _play(self._owed, self._played, self.queries, limit)
        times = np.append(self._played - before, limit - (self._played - before).sum())
        sets = np.concatenate([self._groups, self._greedy.chosen[None, :]])
        return Draft.unlearnt(sets[times > 0], times[times > 0], Determined())

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        free = batch.notes["arms"] >= 0  # quota rows teach nothing
        arms, phases = batch.notes["arms"][free], batch.notes["phases"][free]
        self._greedy.absorb(arms, phases, rewards[free, 0])

    def _config(self) -> dict[str, Any]:
        quotas = self.quotas.tolist()
        return {"m": self.m, "k": self.k, "horizon": self.horizon, "quotas": quotas}

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {**self._greedy.state(), "played": self._played.copy()}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._played = arrays["played"]
        self._greedy.set_state(arrays)


@compiled
def _most_due(owed: Floats, played: Ints, query: int) -> int:
    """Group most in arrears at a query (counted from 1), -1 if none is."""
    best, arrears = -1, 0.0
    for g in range(len(owed)):
        if owed[g] * query - played[g] > arrears:
            best, arrears = g, owed[g] * query - played[g]
    return best


@compiled
def _schedule(owed: Floats, played: Ints, asked: int, limit: int, n_free: int) -> Ints:
    """Group due at each of the next queries, -1 for a free one; ends at the n_free-th of those."""
    due, n = np.empty(limit, np.int64), 0
    while n < limit and n_free > 0:
        group = _most_due(owed, played, asked + n + 1)
        due[n] = group
        n += 1
        if group >= 0:
            played[group] += 1
        else:
            n_free -= 1
    return due[:n]


@compiled
def _play(owed: Floats, played: Ints, asked: int, n: int) -> None:
    """Count the plays of groups over the next n queries."""
    for i in range(n):
        group = _most_due(owed, played, asked + i + 1)
        if group >= 0:
            played[group] += 1

"""Fair-CMAB: fixed minimum shares for every arm, the rest to a reward maximiser."""

from collections.abc import Iterable
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_vector
from evenhand.exchange import Determined
from evenhand.exchange.fields import COUNT, Fields
from evenhand.learners.drafts import Draft
from evenhand.learners.etcg import GreedyExploration, next_set, plays_per_set
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.ordered import Notes, OrderedLearner
from evenhand.randomness.streams import Seed
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


class FairCMAB(OrderedLearner):
    r"""Quota fairness under full-bandit feedback; a reconstruction.

    Arms are sorted by quota and cut into ceil(M/K) groups of K (the last also takes arms of the
    group before it, to reach K). A group is behind when it was played less often than its largest
    quota asks; the group most behind is played. If no group is, the query goes to a greedy
    exploration as of :class:`~evenhand.learners.ETCG`, or after that to its set.
    Every arm gets at least its quota.

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

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> learner = FairCMAB(m=4, k=2, horizon=10_000, quotas=[0.2, 0.1, 0.1, 0.0], seed=1)
    >>> game = additive([0.1, 0.2, 0.3, 0.4])
    >>> run = evenhand.simulate(learner, game, 10_000, target=[0.2, 0.4, 0.6, 0.8], seed=2)
    >>> bool(np.all(run.selections >= [2000, 1000, 1000, 0]))
    True
    """

    name = "fair-cmab"
    trajectory = 1

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        quotas: ArrayLike | None = None,
        *,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed, names, rewards, empty)
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
        # the last group's quota counts only arms that are in no earlier group
        self._owed = np.array([shares[order[g * self.k]] for g in range(len(starts))])
        self._needs = np.array([ceil(owed * horizon - 1e-9) for owed in self._owed])
        fair = int(self._needs.sum())
        if fair > horizon:
            raise ValueError(
                f"quotas must fit into the horizon: the largest of each group add up to {fair} "
                f"queries, horizon={horizon}; lower them"
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
        due = _most_due(self._owed, self._needs, self._played, self.queries + 1, self.horizon)
        if due >= 0:
            return np.isin(np.arange(self.m), self._groups[due]).astype(np.float64)
        return next_set(self._greedy)

    def _ask(self, limit: int) -> Draft:
        greedy = self._greedy
        greedy.end_phase_if_done(self._rng)
        learning = not greedy.complete
        due, times = _schedule(
            (self._owed, self._needs, self._played),
            (self.queries, self.horizon),
            min(limit, MAX_BATCH) if learning else limit,
            greedy.left if learning else limit,
            1 if learning else limit,
        )
        free = due < 0
        orders = np.full((len(due), self.k), -1)
        orders[~free] = self._groups[due[~free]]
        if not learning:
            orders[free] = greedy.chosen
            return Draft.unlearnt(orders, times, Determined())
        sizes = np.full((len(due), 1), self.k)
        arms, phases = np.full(len(due), -1), np.full(len(due), -1)
        arms[free], phases[free] = greedy.take(int(free.sum()))
        orders[free] = greedy.sets(arms[free])
        sizes[free] = len(greedy.chosen) + 1
        return Draft(orders, sizes, Determined(), {"arms": arms, "phases": phases})

    def _notes(self) -> dict[str, int]:
        return {"arms": self.m - 1, "phases": self.k - 1}

    def _sizes(self, kept: Notes) -> Ints:
        return np.where(kept["phases"] < 0, self.k, kept["phases"] + 1)[:, None]

    def _tell(self, kept: Notes, rewards: Floats) -> None:
        free = kept["arms"] >= 0  # quota rows teach nothing
        self._greedy.absorb(kept["arms"][free], kept["phases"][free], rewards[free, 0])

    def _fields(self) -> Fields:
        return {**self._greedy.fields("_greedy"), "_played": COUNT}


@compiled
def _most_due(owed: Floats, needs: Ints, played: Ints, query: int, horizon: int) -> int:
    """Group most in arrears at a query (counted from 1), -1 if none is.

    Where the queries left are just enough for the plays all groups still need, one is due.
    """
    best, arrears, left = -1, 0.0, 0
    for g in range(len(owed)):
        left += needs[g] - played[g]
        if owed[g] * query - played[g] > arrears and played[g] < needs[g]:
            best, arrears = g, owed[g] * query - played[g]
    if best < 0 and left > 0 and left >= horizon - query + 1:
        best = int(np.argmax(needs - played))
    return best


@compiled
def _schedule(
    groups: tuple[Floats, Ints, Ints],
    clock: tuple[int, int],
    limit: int,
    n_free: int,
    longest: int,
) -> tuple[Ints, Ints]:
    """Group due at each of the next queries, -1 for a free one, as runs and their lengths.

    Ends after ``limit`` queries, ``n_free`` free ones or MAX_BATCH runs; a run is at most
    ``longest``.
    """
    owed, needs, played = groups
    asked, horizon = clock
    due, times = np.empty(MAX_BATCH, np.int64), np.empty(MAX_BATCH, np.int64)
    n = 0
    for i in range(limit):
        if n_free == 0:
            break
        group = _most_due(owed, needs, played, asked + i + 1, horizon)
        if n > 0 and due[n - 1] == group and times[n - 1] < longest:
            times[n - 1] += 1
        elif n == MAX_BATCH:
            break
        else:
            due[n], times[n] = group, 1
            n += 1
        if group >= 0:
            played[group] += 1
        else:
            n_free -= 1
    return due[:n].copy(), times[:n].copy()

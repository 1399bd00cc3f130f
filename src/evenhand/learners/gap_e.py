"""GAP-E: sample gains where the top K arms are hardest to tell from the rest."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_number, check_positive, first_bad_query
from evenhand.exchange import Determined, Target
from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners import means
from evenhand.learners.drafts import Draft
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.means import Means
from evenhand.learners.ordered import GainSampler, Notes
from evenhand.learners.schedule import rounds_to_serve
from evenhand.randomness.streams import Seed
from evenhand.subsets.predecessors import draw_predecessors
from evenhand.typing import Floats, Ints, compiled


class GapE(GainSampler):
    r"""Gap-based exploration for the top K merits, adapted to coalitions of at most K arms.

    A pull of arm i is one sample of its gain, measured by two queries. After one pull each, it
    pulls the arm of the largest :math:`-D_i + c \sqrt{(P/H)/N_i}`: :math:`D_i` is the distance of
    the estimate from the border between the K-th and the (K+1)-th, P = T/2 the pulls there are, and
    :math:`H = \sum_i
    \max(D_i, N_i^{-1/2})^{-2}` is estimated, never taken from the truth. All of the horizon is
    exploration. For K = M there is no border and arms take turns.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    c
        Weight of exploration.
    growth
        Target arms are chosen in blocks of max(1, floor(growth * pulls so far), m // (50 k)) pulls:
        counts are updated within a block, means are not.
    seed
        Seed or generator of all of the learner's randomness.

    References
    ----------
    P. Kolpaczki, V. Bengs and E. Huellermeier, "Identifying top-k players in cooperative games
    via Shapley bandits", LWDA 2021. V. Gabillon et al., "Multi-bandit best arm identification",
    NIPS 2011.

    Examples
    --------
    >>> batch = GapE(m=4, k=2, horizon=1000, seed=1).ask(limit=8)  # every arm once
    >>> sorted(batch.exposure.arms.tolist())
    [0, 1, 2, 3]
    """

    name = "gap-e"
    trajectory = 1

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        *,
        c: float = 1.0,
        growth: float = 1e-3,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed, names, rewards, empty)
        self.c = check_positive("c", c)
        self.growth = check_number("growth", growth, 0.0, 1.0)
        self._pulled = np.zeros(self.m, np.int64)  # pulls chosen, asked or still pending
        self._gains = Means(self.m)
        # pulls chosen and drawn, of which the first ``_taken`` have been asked
        self._orders, self._drawn = np.empty((0, self.k), np.int64), np.empty((0, 2), np.int64)
        self._taken = 0

    @property
    def merit(self) -> Floats:
        """Means of the sampled gains (m,); nan for arms not yet seen."""
        return self._unit * self._gains.estimate()

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm given its target: the arm itself, the rest alike."""
        if self.horizon - self.queries == 1:  # the odd query at the end
            return np.isin(np.arange(self.m), self._top(np.arange(self.m))).astype(np.float64)
        if self._taken < len(self._orders):
            arm = int(_targets(self._orders, self._drawn)[self._taken])
        else:
            arm = int(self._choose(1, self._pulled.copy(), np.arange(self.m))[0])
        rest = (self.k - 1) / max(1, self.m - 1)
        return np.where(np.arange(self.m) == arm, 1.0, rest)

    def _top(self, ties: Ints) -> Ints:
        """The K arms of the largest estimates."""
        return ranked(self._gains.totals / np.maximum(self._gains.counts, 1), ties)[: self.k]

    def _choose(self, n: int, pulled: Ints, ties: Ints) -> Ints:
        """Choose n targets in turn and count them in ``pulled``."""
        merit = self._gains.totals / np.maximum(self._gains.counts, 1)
        order, budget = ranked(merit, ties), self.c**2 * (self.horizon // 2)
        return _choose(merit, self.k, budget, pulled, order, n)

    def _refresh(self) -> None:
        """Choose and draw the pulls of the next batch."""
        pulls = int(self._pulled.sum())
        left = (self.horizon - self.queries) // 2
        if pulls < self.m:  # one pull each first
            arms = np.arange(pulls, min(self.m, pulls + left))
            self._pulled[arms] += 1
        else:
            n = min(left, rounds_to_serve(pulls, self.growth, self.m, self.k))
            arms = self._choose(n, self._pulled, self._rng.permutation(self.m))
        self._orders, self._drawn = draw_predecessors(arms, self.m, self.k, self._rng)
        self._taken = 0

    def _ask(self, limit: int) -> Draft:
        if limit < 2:  # the odd query at the end
            self._warn_small_limit(limit, 2)
            top = self._top(self._rng.permutation(self.m))
            return Draft.unlearnt(top[None, :], np.array([limit]), Determined())
        if self._taken == len(self._orders):
            self._refresh()
        rows = slice(self._taken, self._taken + min(limit, MAX_BATCH) // 2)
        orders, sizes = self._orders[rows].copy(), self._drawn[rows].copy()
        self._taken += len(orders)
        arms = _targets(orders, sizes)
        return Draft(orders, sizes, Target(arms), {"arms": arms, "before": sizes[:, 0]})

    def _tell(self, kept: Notes, rewards: Floats) -> None:
        self._gains.add(kept["arms"], rewards[:, 1] - rewards[:, 0])

    def _fields(self) -> Fields:
        return {
            **{f"_gains.{name}": field for name, field in means.FIELDS.items()},
            "_pulled": COUNT,
            "_drawn": Field(0, self.k, (ANY, 2), _wrong_sizes),
            "_orders": Field(-1, self.m - 1, (ANY, self.k), self._wrong_sets),
            "_taken": COUNT,
        }

    def _wrong_sets(self, orders: Ints) -> str | None:
        same = len(orders) == len(self._drawn)
        if not same or first_bad_query(orders, self._drawn, self.m)[0] >= 0:
            return "must hold a set per row, of the sizes drawn"
        return None


def _wrong_sizes(sizes: Ints) -> str | None:
    return None if np.all(np.diff(sizes) == 1) else "must hold r and r + 1 in each row"


def _targets(orders: Ints, sizes: Ints) -> Ints:
    """Return the arm that each row's longest prefix ends in."""
    return orders[np.arange(len(orders)), sizes[:, 0]]


def ranked(merit: Floats, ties: Ints) -> Ints:
    """Arms in decreasing merit; equal ones in the order of ``ties``."""
    return ties[np.argsort(-merit[ties], kind="stable")]


@compiled
def _choose(merit: Floats, k: int, budget: float, pulled: Ints, order: Ints, n: int) -> Ints:
    """Choose n times the arm of the largest index; the first of equals."""
    m = len(merit)
    score, complexity = np.zeros(m), 1.0
    if k < m:
        for i, a in enumerate(order):  # minus the distance to the border
            score[a] = merit[order[k]] - merit[a] if i < k else merit[a] - merit[order[k - 1]]
        complexity = 0.0
        for a in range(m):
            complexity += 1.0 / max(-score[a], 1.0 / np.sqrt(max(pulled[a], 1))) ** 2
    index = score + np.sqrt(budget / complexity / pulled)
    chosen = np.empty(n, np.int64)
    for i in range(n):
        arm = np.argmax(index)
        pulled[arm] += 1
        index[arm] = score[arm] + np.sqrt(budget / complexity / pulled[arm])
        chosen[i] = arm
    return chosen

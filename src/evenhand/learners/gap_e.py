"""GAP-E: sample gains where the top K arms are hardest to tell from the rest."""

from typing import Any

import numpy as np

from evenhand.checks import check_number, check_positive
from evenhand.exchange.batch import Batch, Determined, Target
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import Pending, add_pairs, means, rounds_to_serve
from evenhand.subsets.predecessors import draw_predecessors
from evenhand.typing import Floats, Ints, compiled


class GapE(Learner):
    r"""Gap-based exploration for the top K merits, adapted to coalitions of at most K arms.

    A pull of arm i is one sampled gain, two queries. After one pull each, it pulls the arm of the
    largest :math:`-D_i + c \sqrt{(P/H)/N_i}`: :math:`D_i` is the distance of the estimate from the
    border between the K-th and the (K+1)-th, P = T/2 the pulls there are, and :math:`H = \sum_i
    \max(D_i, N_i^{-1/2})^{-2}` is estimated, never taken from the truth. All of the horizon is
    exploration. For K = M there is no border and arms take turns.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    c
        Weight of exploration.
    growth
        The targets of a batch are chosen one after another with counts kept up to date and means
        frozen; a batch is max(1, floor(growth * pulls so far), m // (50 k)) pulls.
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
    notes = ("arms",)

    def __init__(
        self, m: int, k: int, horizon: int, *, c: float = 1.0, growth: float = 1e-3, seed: Seed
    ) -> None:
        super().__init__(m, k, horizon, seed)
        self.c = check_positive("c", c)
        self.growth = check_number("growth", growth, 0.0, 1.0)
        self._pulled = np.zeros(self.m, np.int64)  # pulls chosen, asked or still pending
        self._totals, self._counts = np.zeros(self.m), np.zeros(self.m, np.int64)
        self._pending = Pending()

    @property
    def merit(self) -> Floats:
        """Means of the sampled gains (m,); nan for arms not yet seen."""
        return means(self._totals, self._counts)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm given its target: the arm itself, the rest alike."""
        assert self.horizon is not None
        if self.horizon - self.queries == 1:  # the odd query at the end
            return np.isin(np.arange(self.m), self._top(np.arange(self.m))).astype(np.float64)
        if self._pending.left:
            arm = int(self._pending.arrays["arms"][self._pending.taken])
        else:
            arm = int(self._choose(1, self._pulled.copy(), np.arange(self.m))[0])
        rest = (self.k - 1) / max(1, self.m - 1)
        return np.where(np.arange(self.m) == arm, 1.0, rest)

    def _top(self, ties: Ints) -> Ints:
        """The K arms of the largest estimates."""
        return ranked(self._totals / np.maximum(self._counts, 1), ties)[: self.k]

    def _choose(self, n: int, pulled: Ints, ties: Ints) -> Ints:
        """Choose n targets in turn and count them in ``pulled``."""
        assert self.horizon is not None
        merit = self._totals / np.maximum(self._counts, 1)
        return _choose(merit, self.k, self.c**2 * (self.horizon // 2), pulled, ties, n)

    def _refresh(self) -> None:
        """Choose and draw the pulls of the next batch."""
        assert self.horizon is not None
        pulls = int(self._pulled.sum())
        left = (self.horizon - self.queries) // 2
        if pulls < self.m:  # one pull each first
            arms = np.arange(pulls, min(self.m, pulls + left))
            self._pulled[arms] += 1
        else:
            n = min(left, rounds_to_serve(pulls, self.growth, self.m, self.k))
            arms = self._choose(n, self._pulled, self._rng.permutation(self.m))
        orders, sizes = draw_predecessors(arms, self.m, self.k, self._rng)
        self._pending = Pending(arms=arms, orders=orders, sizes=sizes)

    def _ask(self, limit: int) -> Draft:
        if limit < 2:  # the odd query at the end
            self._warn_small_limit(limit, 2)
            top = self._top(self._rng.permutation(self.m))
            return Draft.unlearnt(top[None, :], np.array([limit]), Determined())
        if not self._pending.left:
            self._refresh()
        rows = self._pending.take(min(min(limit, MAX_BATCH) // 2, self._pending.left))
        arms = rows["arms"]
        return Draft(rows["orders"], rows["sizes"], Target(arms), {"arms": arms})

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        add_pairs(self._totals, self._counts, batch, rewards)

    def _config(self) -> dict[str, Any]:
        return {
            "m": self.m,
            "k": self.k,
            "horizon": self.horizon,
            "c": self.c,
            "growth": self.growth,
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"pulled": self._pulled, "totals": self._totals, "counts": self._counts}
        arrays |= self._pending.state()
        return {}, {name: array.copy() for name, array in arrays.items()}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._pulled = arrays["pulled"]
        self._totals, self._counts = arrays["totals"], arrays["counts"]
        self._pending = Pending.from_state(arrays)


@compiled
def ranked(merit: Floats, ties: Ints) -> Ints:
    """Arms in decreasing merit; equal ones in the order of ``ties``."""
    return ties[np.argsort(-merit[ties], kind="mergesort")]


@compiled
def _choose(merit: Floats, k: int, budget: float, pulled: Ints, ties: Ints, n: int) -> Ints:
    """Choose n times the arm of the largest index; the first of equals."""
    m = len(merit)
    score, complexity = np.zeros(m), 1.0
    if k < m:
        order = ranked(merit, ties)
        score[order[:k]] = merit[order[k]] - merit[order[:k]]  # minus the distance to the border
        score[order[k:]] = merit[order[k:]] - merit[order[k - 1]]
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

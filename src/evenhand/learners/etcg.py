"""ETCG: explore greedily, then commit to one set."""

import math
from typing import Any

import numpy as np

from evenhand.checks import check_budget, check_integer
from evenhand.exchange.batch import Batch, Determined
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import add_gains, means
from evenhand.typing import Floats, Ints


def plays_per_set(m: int, k: int, horizon: int) -> int:
    r"""Plays of every candidate set, :math:`\lceil (T c / (M + 2 M K c))^{2/3} \rceil`.

    With :math:`c = \sqrt{2 \ln T}`; at least 1.

    Examples
    --------
    >>> plays_per_set(20, 5, 10**6), plays_per_set(534, 10, 10**6)
    (289, 21)
    """
    m, k = check_budget(m, k)
    c = math.sqrt(2.0 * math.log(check_integer("horizon", horizon, 1)))
    return max(1, math.ceil((horizon * c / (m + 2 * m * k * c)) ** (2 / 3)))


class GreedyExploration:
    """K phases; in each, every arm not yet chosen is tried beside the chosen ones.

    A phase ends when its queries have been asked and adds the arm with the largest mean reward
    told so far; arms without data lose, ties are broken at random.
    """

    def __init__(self, m: int, k: int, plays: int) -> None:
        self.m, self.k, self.plays = m, k, plays
        self.chosen = np.empty(0, np.int64)
        self.asked = 0  # queries of the current phase
        self.totals, self.counts = np.zeros((k, m)), np.zeros((k, m), np.int64)

    @property
    def candidates(self) -> Ints:
        """Arms not yet chosen, ascending."""
        return np.setdiff1d(np.arange(self.m), self.chosen)

    @property
    def left(self) -> int:
        """Queries of the current phase not yet asked; 0 once the set is complete."""
        phase = len(self.chosen)
        return 0 if phase == self.k else (self.m - phase) * self.plays - self.asked

    def take(self, n: int) -> tuple[Ints, Ints]:
        """Return the next n candidate arms of the phase, and its number for each."""
        phase = len(self.chosen)
        arms = self.candidates[(self.asked + np.arange(n)) // self.plays]
        self.asked += n
        return arms, np.full(n, phase)

    @property
    def complete(self) -> bool:
        """Whether all k arms are chosen."""
        return len(self.chosen) == self.k

    def settle(self, rng: np.random.Generator) -> None:
        """Choose an arm if the queries of a phase have all been asked."""
        if not self.complete and not self.left:
            self.chosen = np.append(self.chosen, rng.choice(self.best))
            self.asked = 0

    @property
    def best(self) -> Ints:
        """Candidates of the largest mean reward in this phase; those without data lose."""
        phase = len(self.chosen)
        scores = means(self.totals[phase], self.counts[phase])
        scores = np.where(np.isnan(scores), -np.inf, scores)
        scores[self.chosen] = np.nan
        return np.flatnonzero(scores == np.nanmax(scores))

    def sets(self, arms: Ints) -> Ints:
        """Rows of the chosen arms followed by a candidate each, padded to k columns."""
        phase = len(self.chosen)
        orders = np.zeros((len(arms), self.k), np.int64)
        orders[:, :phase] = self.chosen
        orders[:, phase] = arms
        return orders

    def absorb(self, arms: Ints, phases: Ints, rewards: Floats) -> None:
        """Add rewards to the candidates they belong to, in whatever phase."""
        flat = phases * self.m + arms
        add_gains(self.totals.reshape(-1), self.counts.reshape(-1), flat, rewards)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`set_state` goes on."""
        arrays = {"chosen": self.chosen, "totals": self.totals, "counts": self.counts}
        arrays["asked"] = np.array(self.asked)
        return {name: array.copy() for name, array in arrays.items()}

    def set_state(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        self.chosen, self.asked = arrays["chosen"], int(arrays["asked"])
        self.totals, self.counts = arrays["totals"], arrays["counts"]


class ETCG(Learner):
    """Explore-then-commit greedy (Nie et al., 2022): maximises reward, one set in the end.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries. If exploration does not fit into the horizon it stops there.
    seed
        Seed or generator; decides ties.

    References
    ----------
    G. Nie, M. Agarwal, A. K. Umrawal, V. Aggarwal and C. J. Quinn, "An explore-then-commit
    algorithm for submodular maximization under full-bandit feedback", UAI 2022.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> learner, game = ETCG(m=4, k=2, horizon=10_000, seed=1), additive([0.1, 0.2, 0.3, 0.4])
    >>> run = evenhand.simulate(learner, game, 10_000, target=[0.2, 0.4, 0.6, 0.8], seed=2)
    >>> run.marginals  # the two best, for good
    array([0., 0., 1., 1.])
    """

    name = "etcg"
    trajectory = 1
    notes = ("arms", "phases")

    def __init__(self, m: int, k: int, horizon: int, *, seed: Seed) -> None:
        super().__init__(m, k, horizon, seed)
        self._greedy = GreedyExploration(self.m, self.k, plays_per_set(m, k, horizon))

    @property
    def merit(self) -> Floats:
        """Nan: it estimates none."""
        return np.full(self.m, np.nan)

    @property
    def marginals(self) -> Floats:
        """The next query's set, scaled to sum to k; of equals not yet decided on, the first."""
        return next_set(self._greedy)

    def _ask(self, limit: int) -> Draft:
        greedy = self._greedy
        greedy.settle(self._rng)
        if greedy.complete:
            return Draft.unlearnt(greedy.chosen[None, :], np.array([limit]), Determined())
        arms, phases = greedy.take(min(limit, MAX_BATCH, greedy.left))
        sizes = np.full((len(arms), 1), len(greedy.chosen) + 1)
        notes = {"arms": arms, "phases": phases}
        return Draft(greedy.sets(arms), sizes, Determined(), notes)

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        self._greedy.absorb(batch.notes["arms"], batch.notes["phases"], rewards[:, 0])

    def _config(self) -> dict[str, Any]:
        return {"m": self.m, "k": self.k, "horizon": self.horizon}

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, self._greedy.state()

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._greedy.set_state(arrays)


def next_set(greedy: GreedyExploration) -> Floats:
    """Indicator of the set a greedy exploration asks next, scaled to sum to k."""
    members, asked = greedy.chosen, greedy.asked
    if not greedy.left and not greedy.complete:
        members, asked = np.append(members, greedy.best[0]), 0
    if len(members) < greedy.k:
        candidates = np.setdiff1d(np.arange(greedy.m), members)
        members = np.append(members, candidates[asked // greedy.plays])
    inside = np.zeros(greedy.m)
    inside[members] = greedy.k / len(members)
    return inside

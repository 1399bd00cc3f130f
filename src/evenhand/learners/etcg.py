"""ETCG: explore greedily, then commit to one set."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_integer
from evenhand.exchange import Determined
from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners import means
from evenhand.learners.drafts import Draft
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.means import Means
from evenhand.learners.ordered import Notes, OrderedLearner
from evenhand.randomness.streams import Seed
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
        self.means = Means((k, m))  # of a candidate's rewards, phase by phase

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

    def end_phase_if_done(self, rng: np.random.Generator) -> None:
        """Choose an arm if the queries of a phase have all been asked."""
        if not self.complete and not self.left:
            self.chosen = np.append(self.chosen, rng.choice(self.best))
            self.asked = 0

    @property
    def best(self) -> Ints:
        """Candidates of the largest mean reward in this phase; those without data lose."""
        phase = len(self.chosen)
        scores = self.means.estimate()[phase]
        scores = np.where(np.isnan(scores), -np.inf, scores)
        scores[self.chosen] = np.nan
        return np.flatnonzero(scores == np.nanmax(scores))

    def sets(self, arms: Ints) -> Ints:
        """Rows of the chosen arms followed by a candidate each, padded to k columns."""
        phase = len(self.chosen)
        orders = np.full((len(arms), self.k), -1)
        orders[:, :phase] = self.chosen
        orders[:, phase] = arms
        return orders

    def absorb(self, arms: Ints, phases: Ints, rewards: Floats) -> None:
        """Add rewards to the candidates they belong to, in whatever phase."""
        self.means.add(phases * self.m + arms, rewards)

    def fields(self, path: str) -> Fields:
        """What is remembered, for an owner that keeps it under this name."""
        kept = {f"{path}.means.{name}": field for name, field in means.FIELDS.items()}
        chosen = Field(0, self.m - 1, (ANY,), self._wrong_set)
        return {**kept, f"{path}.chosen": chosen, f"{path}.asked": COUNT}

    def _wrong_set(self, chosen: Ints) -> str | None:
        few = len(chosen) == len(np.unique(chosen)) <= self.k
        return None if few else f"must hold at most {self.k} different arms"


class ETCG(OrderedLearner):
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

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        *,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed, names, rewards, empty)
        self._greedy = GreedyExploration(self.m, self.k, plays_per_set(m, k, horizon))

    @property
    def merit(self) -> Floats:
        """Nan: it estimates none."""
        return np.full(self.m, np.nan)

    @property
    def marginals(self) -> Floats:
        """The next query's set, scaled to sum to k; ties not yet broken count as the first."""
        return next_set(self._greedy)

    def _ask(self, limit: int) -> Draft:
        greedy = self._greedy
        greedy.end_phase_if_done(self._rng)
        if greedy.complete:
            return Draft.unlearnt(greedy.chosen[None, :], np.array([limit]), Determined())
        arms, phases = greedy.take(min(limit, MAX_BATCH, greedy.left))
        sizes = np.full((len(arms), 1), len(greedy.chosen) + 1)
        notes = {"arms": arms, "phases": phases}
        return Draft(greedy.sets(arms), sizes, Determined(), notes)

    def _notes(self) -> dict[str, int]:
        return {"arms": self.m - 1, "phases": self.k - 1}

    def _sizes(self, kept: Notes) -> Ints:
        return kept["phases"][:, None] + 1

    def _tell(self, kept: Notes, rewards: Floats) -> None:
        self._greedy.absorb(kept["arms"], kept["phases"], rewards[:, 0])

    def _fields(self) -> Fields:
        return self._greedy.fields("_greedy")


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

"""MURaS: explore all arms uniformly, then commit to the fair policy of the estimates (Alg. 2)."""

from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand import theory
from evenhand.checks import check_positive, check_truth
from evenhand.designs import DependentRounding, Design, Fitted, Uniform
from evenhand.exchange import Marginals, Target
from evenhand.exchange.fields import Field, Fields
from evenhand.learners import means
from evenhand.learners.arguments import DESIGNS
from evenhand.learners.drafts import Draft
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.means import Means
from evenhand.learners.ordered import GainSampler, Notes
from evenhand.learners.schedule import batch_limit
from evenhand.policy import fill
from evenhand.randomness.streams import Seed
from evenhand.subsets.predecessors import write_predecessors
from evenhand.typing import Floats, Ints, compiled


class MURaS(GainSampler):
    r"""Meritocratic uniform random sampling, Algorithm 2 of the paper.

    Each arm's merit is the mean of :math:`R = \lfloor T^{2/3} / \Lambda \rfloor` sampled gains, two
    queries each; then sets are drawn with marginals proportional to the estimates, clipped at
    0 and projected, until the horizon.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    lam
        :math:`\Lambda`; the 2 M R exploration queries must fit into the horizon.
    rounding
        A design of :mod:`evenhand.designs` with given marginals, for the commit phase. Arms are
        put into random order once before it is made. Regret does not depend on it.
    shuffled
        Explore the (arm, repetition) pairs in uniformly random order, so that an exploration
        query really has marginals K/M; else arm by arm as the pseudo-code is written: the target
        arm is then known in advance, and regret is computed accordingly.
    seed
        Seed or generator of all of the learner's randomness.

    Examples
    --------
    >>> learner = MURaS(m=20, k=5, horizon=1_000_000, lam=8.0, seed=1)
    >>> batch = learner.ask(limit=10)  # five gains: a set before and with its target arm
    >>> batch.sizes.shape, bool((np.diff(batch.sizes) == 1).all())
    ((5, 2), True)
    """

    name = "muras"
    trajectory = 2

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        *,
        lam: float,
        rounding: type[Design] = DependentRounding,
        shuffled: bool = True,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed, names, rewards, empty)
        self.lam = check_positive("lam", lam)
        if horizon < 2 * self.m:
            raise ValueError(
                f"horizon must be at least 2 m = {2 * self.m} for one sample per arm, "
                f"got horizon={horizon}"
            )
        self.samples = theory.samples(horizon, lam)
        if self.samples < 1 or 2 * self.m * self.samples > horizon:
            raise ValueError(
                f"lam must lie between 2 M / T^(1/3) = "
                f"{theory.smallest_lambda(self.m, horizon):.6g} and T^(2/3) = "
                f"{horizon ** (2 / 3):.6g} so that exploration has at least one sample per arm "
                f"and at most T queries, got lam={lam:g}"
            )
        fitting = [design for design in DESIGNS if hasattr(design, "fit")]
        if rounding not in fitting:
            raise TypeError(
                f"rounding must be one of {', '.join(d.__name__ for d in fitting)} of "
                f"evenhand.designs, got {rounding!r}"
            )
        self.shuffled, self.rounding = check_truth("shuffled", shuffled), rounding
        self._remaining = np.full(self.m, self.samples)
        self._gains = Means(self.m)
        self._committed: Floats | None = None  # policy of the commit phase
        self._order = np.arange(self.m)
        self._design: Design | None = None

    @property
    def merit(self) -> Floats:
        """Means of the sampled gains (m,), not clipped; nan for arms not yet seen."""
        return self._unit * self._gains.estimate()

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        if self._committed is not None:
            return self._committed.copy()
        if self._remaining.any():
            return np.full(self.m, self.k / self.m)
        return self._policy()

    def _policy(self) -> Floats:
        return fill(np.maximum(np.nan_to_num(self._gains.estimate()), 0.0), self.k)

    def _ask(self, limit: int) -> Draft:
        if not self._remaining.any():
            return self._commit(limit)
        if limit < 2:
            self._warn_small_limit(limit, 2)
            sets = Uniform(self.m, self.k).sample(limit, self._rng)
            return Draft.unlearnt(sets, np.ones(limit, np.int64), Marginals(self.marginals))
        n = min(min(limit, MAX_BATCH) // 2, int(self._remaining.sum()))
        arms, orders, sizes = _explore(self._remaining, self.k, n, self.shuffled, self._rng)
        exposure = Marginals(np.full(self.m, self.k / self.m)) if self.shuffled else Target(arms)
        return Draft(orders, sizes, exposure, {"arms": arms, "before": sizes[:, 0]})

    def _commit(self, limit: int) -> Draft:
        """Draw from the fair policy of the estimates when the last exploration query was asked."""
        if self._committed is None:
            self._committed = self._policy()
            self._committed.flags.writeable = False  # handed out with every batch
            self._order = self._rng.permutation(self.m)
        if self._design is None:
            self._design = cast(Fitted, self.rounding).fit(self._committed[self._order])
        sets, times = self._design.tally(batch_limit(self._design, limit), self._rng)
        return Draft.unlearnt(self._order[sets], times, Marginals(self._committed))

    def _tell(self, kept: Notes, rewards: Floats) -> None:
        self._gains.add(kept["arms"], rewards[:, 1] - rewards[:, 0])

    def _fields(self) -> Fields:
        return {
            **{f"_gains.{name}": field for name, field in means.FIELDS.items()},
            "_remaining": Field(0, self.samples),
            "_committed": Field(0.0, 1.0, (self.m,), self._wrong_policy),
            "_order": Field(0, self.m - 1, rule=_wrong_order),
        }

    def _wrong_policy(self, policy: Floats) -> str | None:
        return None if abs(policy.sum() - self.k) < 1e-6 else f"must sum to {self.k}"


def _wrong_order(order: Ints) -> str | None:
    return None if len(np.unique(order)) == len(order) else "must hold every arm once"


@compiled
def _explore(
    remaining: Ints, k: int, n: int, shuffled: bool, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Draw n (arm, repetition) pairs that remain, with predecessors; uses them up."""
    m = len(remaining)
    arms, sizes = np.empty(n, np.int64), np.empty((n, 2), np.int64)
    orders = np.full((n, k), -1)
    pool, swaps = np.arange(m), np.empty(k, np.int64)
    top, first = remaining.max(), 0
    at_top = np.sum(remaining == top)
    for i in range(n):
        if shuffled:  # an arm with chance proportional to what remains of it, by rejection
            arm = int(rng.integers(0, m))
            while rng.random() * top >= remaining[arm]:
                arm = int(rng.integers(0, m))
        else:
            while remaining[first] == 0:
                first += 1
            arm = first
        at_top -= remaining[arm] == top
        remaining[arm] -= 1
        if at_top == 0:
            top = remaining.max()
            at_top = np.sum(remaining == top)
        before = write_predecessors(arm, pool, swaps, orders[i], rng)
        arms[i], sizes[i, 0], sizes[i, 1] = arm, before, before + 1
    return arms, orders, sizes

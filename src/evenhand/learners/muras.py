"""MURaS: explore all arms uniformly, then commit to the fair policy of the estimates (Alg. 2)."""

from typing import Any, Self

import numpy as np

from evenhand import designs, theory
from evenhand.checks import check_positive
from evenhand.designs import (
    ConditionalPoisson,
    DependentRounding,
    Design,
    EnumeratedMaxEntropy,
    Fitted,
    Systematic,
)
from evenhand.exchange.batch import Batch, Marginals, Target
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import add_pairs, countable, means
from evenhand.policy import fill
from evenhand.subsets.predecessors import write_predecessors
from evenhand.typing import Floats, Ints, compiled

ROUNDINGS: dict[str, type[Fitted]] = {
    "DependentRounding": DependentRounding,
    "Systematic": Systematic,
    "ConditionalPoisson": ConditionalPoisson,
    "EnumeratedMaxEntropy": EnumeratedMaxEntropy,
}


class MURaS(Learner):
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
        query really has marginals K/M; else arm by arm as the pseudo-code is written, where the
        target arm is known and the loss counts that.
    seed
        Seed or generator of all of the learner's randomness.

    Examples
    --------
    >>> learner = MURaS(m=20, k=5, horizon=1_000_000, lam=8.0, seed=1)
    >>> batch = learner.ask(limit=10)  # five gains: a set before and with its target arm
    >>> batch.sizes.shape, bool((np.diff(batch.sizes) == 1).all())
    ((5, 2), True)
    """

    notes = ("arms",)

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        *,
        lam: float,
        rounding: type[Design] = DependentRounding,
        shuffled: bool = True,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed)
        self.lam = check_positive("lam", lam)
        if horizon < 2 * self.m:
            raise ValueError(
                f"horizon must be at least 2 m = {2 * self.m} for one sample an arm, "
                f"got horizon={horizon}"
            )
        self.samples = theory.samples(horizon, lam)
        if self.samples < 1 or 2 * self.m * self.samples > horizon:
            raise ValueError(
                f"lam must lie between 2 M / T^(1/3) = "
                f"{theory.smallest_lambda(self.m, horizon):.6g} and T^(2/3) = "
                f"{horizon ** (2 / 3):.6g} so that one sample an arm and at most T queries are "
                f"explored, got lam={lam:g}"
            )
        if getattr(rounding, "__name__", "") not in ROUNDINGS:
            raise TypeError(
                f"rounding must be one of {', '.join(ROUNDINGS)} of evenhand.designs, "
                f"got {rounding!r}"
            )
        self.shuffled = bool(shuffled)
        self._rounding = rounding.__name__
        self._remaining = np.full(self.m, self.samples)
        self._totals, self._counts = np.zeros(self.m), np.zeros(self.m, np.int64)
        self._committed: Floats | None = None  # policy of the commit phase
        self._order = np.arange(self.m)
        self._design: Design | None = None

    @property
    def merit(self) -> Floats:
        """Means of the sampled gains (m,), not clipped; nan for arms not yet seen."""
        return means(self._totals, self._counts)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        if self._committed is not None:
            return self._committed.copy()
        if self._remaining.any():
            return np.full(self.m, self.k / self.m)
        return self._policy()

    def _policy(self) -> Floats:
        return fill(np.maximum(np.nan_to_num(self.merit), 0.0), self.k)

    def _ask(self, limit: int) -> Draft:
        if not self._remaining.any():
            return self._commit(limit)
        if limit < 2:
            self._warn_small_limit(limit, 2)
            sets = designs.Uniform(self.m, self.k).sample(limit, self._rng)
            return Draft.unlearnt(sets, np.ones(limit, np.int64), Marginals(self.marginals))
        n = min(min(limit, MAX_BATCH) // 2, int(self._remaining.sum()))
        arms, orders, sizes = _explore(self._remaining, self.k, n, self.shuffled, self._rng)
        exposure = Marginals(np.full(self.m, self.k / self.m)) if self.shuffled else Target(arms)
        return Draft(orders, sizes, exposure, {"arms": arms})

    def _commit(self, limit: int) -> Draft:
        """Draw from the policy that was best when exploration had been asked."""
        if self._committed is None:
            self._committed = self._policy()
            self._committed.flags.writeable = False  # handed out with every batch
            self._order = self._rng.permutation(self.m)
        if self._design is None:
            self._design = ROUNDINGS[self._rounding].fit(self._committed[self._order])
        sets, times = self._design.tally(countable(self._design, limit), self._rng)
        return Draft.unlearnt(self._order[sets], times, Marginals(self._committed))

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        add_pairs(self._totals, self._counts, batch, rewards)

    def _config(self) -> dict[str, Any]:
        return {
            "m": self.m,
            "k": self.k,
            "horizon": self.horizon,
            "lam": self.lam,
            "rounding": self._rounding,
            "shuffled": self.shuffled,
        }

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        return super()._from_config({**config, "rounding": getattr(designs, config["rounding"])})

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"remaining": self._remaining, "totals": self._totals, "counts": self._counts}
        if self._committed is not None:
            arrays |= {"committed": self._committed, "order": self._order}
        return {}, {name: array.copy() for name, array in arrays.items()}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._remaining = arrays["remaining"]
        self._totals, self._counts = arrays["totals"], arrays["counts"]
        self._committed = arrays.get("committed")
        self._order = arrays.get("order", self._order)


@compiled
def _explore(
    remaining: Ints, k: int, n: int, shuffled: bool, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Draw n (arm, repetition) pairs that remain, with predecessors; uses them up."""
    m = len(remaining)
    arms, sizes = np.empty(n, np.int64), np.empty((n, 2), np.int64)
    orders = np.zeros((n, k), np.int64)
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

"""IW-KSVFair: merit-proportional selection with importance-weighted merits (Algorithm 1)."""

from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand import theory
from evenhand.checks import check_integer, check_number
from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy, Mixture
from evenhand.exchange import Marginals, PrefixPlan
from evenhand.exchange.fields import COUNT, Fields
from evenhand.exchange.plan import MaxEntropy
from evenhand.learners import means
from evenhand.learners.drafts import Draft
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.means import Means
from evenhand.learners.schedule import rounds_to_serve
from evenhand.policy import fill
from evenhand.randomness.streams import Seed
from evenhand.typing import Floats, Ints, compiled


class IWKSVFair(ExchangeableLearner[PrefixPlan]):
    r"""Importance-weighted K-Shapley fair learner, Algorithm 1 of the paper.

    A round draws a K-set from a maximum-entropy design whose marginals are proportional to the
    current merits, mixed with the uniform law; queries the K prefixes of a random order; and
    credits each arm with its gain times

    .. math:: w(a, S) = q(a) \Big/ \Bigl( \binom{M-1}{K-1} P^{mix}(S) \Bigr),

    which makes it an unbiased sample of the arm's K-Shapley value. Marginals q and probabilities
    are those of the design that really drew the set, so a design fitted only to a tolerance
    costs no bias.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    gamma, eta
        Uniform mixing: :math:`\eta = M^{2/3} / (\Gamma K^{1/3} T^{1/3})`, or given itself. Exactly
        one of the two; :math:`\eta` must be at most 1.
    floor
        Merits are clipped to [floor, 1] before the policy is made (the paper's epsilon).
    design
        :class:`~evenhand.designs.ConditionalPoisson`, the paper's scalable version, or
        :class:`~evenhand.designs.EnumeratedMaxEntropy`, its exact one.
    growth
        A policy serves max(1, floor(growth * rounds so far), m // (50 k)) rounds. 0 is the paper
        to the letter, for m <= 50 k.
    weights
        "importance", or "none" for the ablation NoIW.
    seed
        Seed or generator of all of the learner's randomness.

    Examples
    --------
    >>> learner = IWKSVFair(m=20, k=5, horizon=10_000, gamma=0.8, seed=1)
    >>> batch = learner.ask()
    >>> batch.orders.shape, batch.sizes.tolist()
    ((1, 5), [[1, 2, 3, 4, 5]])
    >>> learner.tell(batch, [[0.5, 0.6, 0.8, 0.8, 0.9]])
    >>> round(float(learner.merit[batch.orders[0, 0]]), 6)
    0.5
    """

    name = "iw-ksvfair"
    trajectory = 2
    horizon: int
    evidence: Means

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int,
        *,
        gamma: float | None = None,
        eta: float | None = None,
        floor: float = 1e-4,
        design: type[MaxEntropy] = ConditionalPoisson,
        growth: float = 1e-3,
        weights: Literal["importance", "none"] = "importance",
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, check_integer("horizon", horizon, 1), seed, names, rewards, empty)
        self.gamma = None  # converted to eta, which is all that is kept
        self.eta = _mixing(self.m, self.k, horizon, gamma, eta)
        self.floor = check_number("floor", floor, 0.0, 1.0)
        self.growth = check_number("growth", growth, 0.0, 1.0)
        if design not in (ConditionalPoisson, EnumeratedMaxEntropy):
            raise TypeError(
                f"design must be ConditionalPoisson or EnumeratedMaxEntropy, got {design!r}: "
                "the weights need the probability of a set"
            )
        if weights not in ("importance", "none"):
            raise ValueError(f"weights must be 'importance' or 'none', got {weights!r}")
        self.weights, self.design = weights, design
        self.evidence = Means(self.m)
        self._mixture: Mixture[MaxEntropy] | None = None  # of the policy made last
        self._rounds = 0  # of all plans made so far

    @classmethod
    def no_mix(cls, m: int, k: int, horizon: int, **options: Any) -> Self:
        """Make the ablation without uniform mixing."""
        return cls(m, k, horizon, eta=0.0, **options)

    @classmethod
    def no_iw(cls, m: int, k: int, horizon: int, **options: Any) -> Self:
        """Make the ablation without importance weights."""
        return cls(m, k, horizon, weights="none", **options)

    @property
    def merit(self) -> Floats:
        """Means of the weighted gains (m,), not clipped; nan for arms not yet seen."""
        return self._unit * self.evidence.estimate()

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        trailing = self.horizon - self.queries < self.k
        if self._mixture is not None and (self._left or trailing):
            return self._mixture.marginals.copy()
        return (1.0 - self.eta) * self._policy() + self.eta * self.k / self.m

    def _policy(self) -> Floats:
        """Clipped, proportional, projected (Alg. 1, lines 4 to 7); unseen arms stand at floor."""
        found = self.evidence
        return policy_of(found.totals, found.counts, self.floor, self.k)

    def _calibrate(self) -> Mixture[MaxEntropy]:
        """Make the design of the current policy (Alg. 1, line 8)."""
        policy, old = self._policy(), self._mixture
        design = self.design.fit(policy) if old is None else old.design.refit(policy)
        self._mixture = Mixture(design, self.eta)
        return self._mixture

    def _make_plan(self) -> tuple[PrefixPlan, int]:
        serve = rounds_to_serve(self._rounds, self.growth, self.m, self.k)
        serve = min(serve, (self.horizon - self.queries) // self.k)
        self._rounds += serve
        weighted = self.weights == "importance"
        return PrefixPlan.of(self._plans, self.roster.ids, self._calibrate(), weighted), serve

    def _ask(self, limit: int) -> Draft:
        if limit < self.k:  # Alg. 1, last loop
            self._warn_small_limit(limit, self.k)
            mixture = self._mixture or self._calibrate()
            sets = mixture.sample(limit, self._rng)
            return Draft.unlearnt(sets, np.ones(limit, np.int64), Marginals(mixture.marginals))
        return self._take(max(1, min(limit, MAX_BATCH) // self.k))

    def _background(self) -> dict[str, Any]:
        same = np.full(self.k, 1.0 / self.k)  # of every round all prefixes
        return super()._background() | {"sizes": same, "mixing": self.eta}

    def _fields(self) -> Fields:
        kept = {f"evidence.{name}": field for name, field in means.FIELDS.items()}
        return {**kept, "_rounds": COUNT}

    def _parts(self) -> dict[str, np.ndarray]:
        start = {} if self._mixture is None else self._mixture.design.warm_state()
        return {**super()._parts(), **{f"design.{name}": array for name, array in start.items()}}

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        head = "design."
        start = {n.removeprefix(head): a for n, a in arrays.items() if n.startswith(head)}
        if self._plans and not start:
            raise ValueError("the design of the plan is missing")
        if start:
            self._mixture = Mixture(self.design.from_state(start, self.k), self.eta)


def _mixing(m: int, k: int, horizon: int, gamma: float | None, eta: float | None) -> float:
    """Return the mixing from gamma or as given."""
    if (gamma is None) == (eta is None):
        raise TypeError(f"exactly one of gamma and eta must be given, got {gamma=} and {eta=}")
    if gamma is None:
        return check_number("eta", eta, 0.0, 1.0)
    share = theory.eta(m, k, horizon, gamma)
    if share > 1.0:
        raise ValueError(
            f"gamma must be at least M^(2/3) / (K T)^(1/3) = "
            f"{theory.smallest_gamma(m, k, horizon)!r} so that eta <= 1, got gamma={gamma!r}"
        )
    return share


@compiled
def policy_of(totals: Floats, counts: Ints, floor: float, k: int) -> Floats:
    """Marginals in proportion to clipped means."""
    return fill(clipped_means(totals, counts, floor), k)


@compiled
def clipped_means(totals: Floats, counts: Ints, floor: float) -> Floats:
    """Running means clipped to [floor, 1] (Alg. 1, line 5)."""
    result = np.empty_like(totals)
    for a in range(len(totals)):
        result[a] = min(max(totals[a] / max(counts[a], 1), floor), 1.0)
    return result

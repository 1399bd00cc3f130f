"""IW-KSVFair: merit-proportional selection with importance-weighted merits (Algorithm 1)."""

from typing import Any, Literal, Self

import numpy as np

from evenhand import designs, theory
from evenhand.checks import check_number
from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy, Mixture
from evenhand.exchange.batch import Batch, Marginals
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import Pending, means, rounds_to_serve
from evenhand.policy import fill
from evenhand.typing import Floats, Ints, compiled

MaxEntropy = ConditionalPoisson | EnumeratedMaxEntropy


class IWKSVFair(Learner):
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

    notes = ("weights",)

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
        seed: Seed,
    ) -> None:
        super().__init__(m, k, horizon, seed)
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
        self.weights = weights
        self._kind = design
        self._mixture: Mixture[MaxEntropy] | None = None  # of the policy made last
        self._totals, self._counts = np.zeros(self.m), np.zeros(self.m, np.int64)
        self._rounds = 0  # of all policies made so far
        self._pending = Pending()
        self._prefixes = np.arange(1, self.k + 1)

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
        return means(self._totals, self._counts)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        assert self.horizon is not None
        trailing = self.horizon - self.queries < self.k
        if self._mixture is not None and (self._pending.left or trailing):
            return self._mixture.marginals.copy()
        return (1.0 - self.eta) * self._policy() + self.eta * self.k / self.m

    def _policy(self) -> Floats:
        """Clipped, proportional, projected (Alg. 1, lines 4 to 7); unseen arms stand at floor."""
        return fill(clipped_means(self._totals, self._counts, self.floor), self.k)

    def _calibrate(self) -> Mixture[MaxEntropy]:
        """Make the design of the current policy (Alg. 1, line 8)."""
        policy = self._policy()
        if self._mixture is None:
            design = self._kind.fit(policy)
        else:
            design = self._mixture.design.refit(policy)
        self._mixture = Mixture(design, self.eta)
        self._mixture.marginals.flags.writeable = False  # handed out with every batch
        return self._mixture

    def _refresh(self) -> None:
        """Make a policy and draw all rounds it serves."""
        mixture = self._calibrate()
        assert self.horizon is not None
        serve = rounds_to_serve(self._rounds, self.growth, self.m, self.k)
        serve = min(serve, (self.horizon - self.queries) // self.k)
        orders = mixture.sample(serve, self._rng)
        self._pending = Pending(orders=orders, weights=self._weigh(mixture, orders))
        self._rounds += serve

    def _weigh(self, mixture: Mixture[MaxEntropy], orders: Ints) -> Floats:
        """Importance weights (n, k) of drawn rows (Alg. 1, line 15)."""
        if self.weights == "none":
            return np.ones(orders.shape)
        return mixture._weights(orders)  # unchecked: rows of its own

    def _ask(self, limit: int) -> Draft:
        if limit < self.k:  # Alg. 1, last loop
            self._warn_small_limit(limit, self.k)
            mixture = self._mixture or self._calibrate()
            sets = mixture.sample(limit, self._rng)
            return Draft.unlearnt(sets, np.ones(limit, np.int64), Marginals(mixture.marginals))
        if not self._pending.left:
            self._refresh()
        assert self._mixture is not None
        rows = self._pending.take(min(max(1, min(limit, MAX_BATCH) // self.k), self._pending.left))
        orders = rows["orders"]
        sizes = np.empty(orders.shape, np.int64)
        sizes[:] = self._prefixes
        exposure = Marginals(self._mixture.marginals)
        return Draft(orders, sizes, exposure, {"weights": rows["weights"]})

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        absorb(self._totals, self._counts, batch.orders, batch.notes["weights"], rewards)

    def _config(self) -> dict[str, Any]:
        return {
            "m": self.m,
            "k": self.k,
            "horizon": self.horizon,
            "eta": self.eta,
            "floor": self.floor,
            "design": self._kind.__name__,
            "growth": self.growth,
            "weights": self.weights,
        }

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        return super()._from_config({**config, "design": getattr(designs, config["design"])})

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"totals": self._totals.copy(), "counts": self._counts.copy()}
        arrays |= {name: array.copy() for name, array in self._pending.state().items()}
        if self._mixture is not None:
            state = self._mixture.design.warm_state()
            arrays |= {f"design_{name}": array.copy() for name, array in state.items()}
        return {"rounds": self._rounds}, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._rounds = int(values["rounds"])
        self._totals, self._counts = arrays["totals"], arrays["counts"]
        self._pending = Pending.from_state(arrays)
        if self._pending.arrays.keys() not in ({"orders", "weights"}, set()):
            raise ValueError(f"pending arrays are {sorted(self._pending.arrays)}")
        head = "design_"
        design = {n.removeprefix(head): a for n, a in arrays.items() if n.startswith(head)}
        if self._rounds and not (design and self._pending.arrays):
            raise ValueError("the design or the pending rounds are missing")
        if design:
            self._mixture = Mixture(self._kind.from_state(design, self.k), self.eta)


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
def clipped_means(totals: Floats, counts: Ints, floor: float) -> Floats:
    """Running means clipped to [floor, 1] (Alg. 1, line 5)."""
    result = np.empty_like(totals)
    for a in range(len(totals)):
        result[a] = min(max(totals[a] / max(counts[a], 1), floor), 1.0)
    return result


@compiled
def absorb(totals: Floats, counts: Ints, orders: Ints, weights: Floats, rewards: Floats) -> None:
    """Add the weighted gain of every arm of every row (Alg. 1, lines 15 to 17); nan is skipped."""
    n, k = orders.shape
    for i in range(n):
        before = 0.0
        for r in range(k):
            gain = rewards[i, r] - before
            before = rewards[i, r]
            if not np.isnan(gain):
                totals[orders[i, r]] += weights[i, r] * gain
                counts[orders[i, r]] += 1

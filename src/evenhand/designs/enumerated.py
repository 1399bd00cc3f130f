"""The maximum-entropy design by listing all K-sets: the paper's exact implementation."""

from collections.abc import Mapping
from functools import cached_property
from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_marginals, check_positive
from evenhand.designs.conditional_poisson import check_same_arms, list_sets, sum_weights
from evenhand.designs.design import ExplicitDesign, draw_listed
from evenhand.designs.pairs import listed_pairs
from evenhand.designs.poisson_binomial import centre
from evenhand.designs.state import read_array, read_log_weights
from evenhand.randomness.alias import build_alias
from evenhand.subsets.combinations import all_sets, count_sets
from evenhand.typing import Floats, Ints, Words, compiled

MAX_SETS = 10**7


class EnumeratedMaxEntropy(ExplicitDesign):
    r"""The maximum-entropy law over all listed K-sets, calibrated by BFGS.

    The same law as :class:`~evenhand.designs.ConditionalPoisson`, by the route the paper calls
    exact: minimise the dual :math:`\log Z_K(\theta) - \theta \cdot \pi` over :math:`\theta`, with
    all :math:`\binom MK` probabilities at hand. Slow: it is there to reproduce and to check.

    Attributes
    ----------
    marginals
        What the design really gives each arm.
    sets, probabilities
        All sets (n, k) that can be drawn, and their probabilities (n,).

    Examples
    --------
    >>> design = EnumeratedMaxEntropy.fit([0.9, 0.6, 0.4, 0.1])
    >>> design.sets.tolist()
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    >>> design.marginals.round(6)
    array([0.9, 0.6, 0.4, 0.1])
    """

    def __init__(self, log_weights: Floats, k: int, curvature: Floats | None = None) -> None:
        """Trust finite, minus or plus infinite log weights; use :meth:`fit` instead."""
        self.m, self.k = len(log_weights), k
        self.log_weights = log_weights
        free = np.isfinite(log_weights)
        always = np.flatnonzero(log_weights == np.inf)
        chosen = all_sets(int(free.sum()), k - len(always))
        self.sets = chosen
        if not free.all():
            self.sets = list_sets(np.flatnonzero(free), always, k)
            # as those of all_sets are: for writable arrays kernels would be compiled once more
            self.sets.flags.writeable = False
        self._curvature = curvature  # inverse Hessian of the dual, where the next refit starts
        self._log_normaliser, self.probabilities, given = _expectations(log_weights[free], chosen)
        self.marginals = (log_weights == np.inf).astype(np.float64)
        self.marginals[free] = given

    @classmethod
    def fit(cls, marginals: ArrayLike, tol: float = 1e-8) -> Self:
        """Find the law with these marginals.

        Parameters
        ----------
        marginals
            (m,) numbers in [0, 1] that sum to an integer k >= 1, with at most 1e7 K-sets.
        tol
            Largest error in a marginal that BFGS is asked for. Where rounding in its line search
            stops it earlier, an error up to 1e-6 is accepted; a larger one raises RuntimeError.
        """
        return cls._calibrate(marginals, tol, None, None)

    def refit(self, marginals: ArrayLike, tol: float = 1e-8) -> Self:
        """Fit other marginals of the same arms, starting from this design and its curvature."""
        check_same_arms(marginals, self.m)
        return self._calibrate(marginals, tol, self.log_weights, self._curvature)

    @classmethod
    def _calibrate(
        cls, marginals: ArrayLike, tol: float, start: Floats | None, curvature: Floats | None
    ) -> Self:
        target, k = check_marginals(marginals)
        check_positive("tol", tol)
        theta = _log_odds(target, k)
        free, k_free = np.isfinite(theta), k - int(np.sum(theta == np.inf))
        check_listable(int(free.sum()), k_free)
        if not free.any():
            return cls(theta, k)
        if start is None or not np.isfinite(start[free]).all():
            start = theta
        theta[free], found = _bfgs(start[free], theta[free], k_free, tol, curvature)
        return cls(theta, k, found)

    def _log_prob(self, rows: Ints) -> Floats:
        n_always = int(np.sum(self.log_weights == np.inf))
        return sum_weights(self.log_weights, n_always, rows) - self._log_normaliser

    def entropy(self) -> float:
        """Entropy of the law, in nats."""
        free = np.isfinite(self.log_weights)
        return float(self._log_normaliser - self.log_weights[free] @ self.marginals[free])

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        return listed_pairs(self.sets, self.probabilities, self.m)[first, second]

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        return draw_listed(self._table, self.sets, rng.random(n))

    @property
    def listed(self) -> tuple[Ints, Floats]:
        """All sets that can be drawn, with their probabilities."""
        return self.sets, self.probabilities

    def state(self) -> dict[str, Floats]:
        """Arrays from which :meth:`from_state` makes a design that draws the same, bit for bit."""
        return {"log_weights": self.log_weights.copy()}

    def warm_state(self) -> dict[str, Floats]:
        """Return the state with what the next :meth:`refit` starts from, to go on bit for bit."""
        curvature = np.empty((0, 0)) if self._curvature is None else self._curvature.copy()
        return {**self.state(), "curvature": curvature}

    @classmethod
    def from_state(cls, state: Mapping[str, Floats], k: int) -> Self:
        """Make the design that gave this state, warm or not; refuse a state no design gives."""
        log_weights, k = read_log_weights(state, k)
        n_free = int(np.isfinite(log_weights).sum())
        check_listable(n_free, k - int(np.sum(log_weights == np.inf)))
        design = cls(log_weights, k)
        if not np.isfinite(design._log_normaliser):
            raise ValueError("state: log_weights must have a finite sum of weights over all sets")
        if "curvature" in state and (curvature := read_array(state, "curvature")).size:
            design._curvature = check_curvature(curvature, n_free)
        return design

    @cached_property
    def _table(self) -> Words:
        return build_alias(self.probabilities)


def check_listable(n_free: int, k_free: int) -> None:
    """Refuse to list more sets than can be handled."""
    if count_sets(n_free, k_free, MAX_SETS) > MAX_SETS:
        raise ValueError(
            f"listing all sets needs at most {MAX_SETS:g} of them, got "
            f"{comb(n_free, k_free):.3g}; use ConditionalPoisson"
        )


def check_curvature(curvature: Floats, n: int) -> Floats:
    """Return the inverse curvature (n, n), if it is symmetric and positive definite."""
    if (
        curvature.shape != (n, n)
        or not np.isfinite(curvature).all()
        or not np.array_equal(curvature, curvature.T)
        or np.linalg.eigvalsh(curvature)[0] <= 0.0
    ):
        raise ValueError(
            f"state: curvature must be a symmetric, positive definite ({n}, {n}) matrix, got "
            f"another of shape {curvature.shape}"
        )
    return curvature


@compiled
def _log_odds(target: Floats, k: int) -> Floats:
    """Log-odds whose chances sum to k: the target's, all shifted alike; infinite at 0 and 1."""
    m, n_free, certain = len(target), 0, 0
    theta, free = np.empty(m), np.empty(m)
    for a in range(m):
        theta[a] = np.log(target[a] / (1.0 - target[a]))
        certain += target[a] == 1.0
        if np.isfinite(theta[a]):
            free[n_free] = theta[a]
            n_free += 1
    if n_free:
        shift = centre(free[:n_free], k - certain)
        for a in range(m):
            theta[a] += shift  # what is infinite stays so
    return theta


def _bfgs(
    begin: Floats, wanted: Floats, k: int, tol: float, curvature: Floats | None
) -> tuple[Floats, Floats]:
    """Minimise the dual; its gradient is the error in the marginals."""
    from scipy.optimize import minimize  # an eighth of a second to import: only where it is needed

    sets = all_sets(len(begin), k)
    target = 1.0 / (1.0 + np.exp(-wanted))

    def dual(theta: Floats) -> tuple[float, Floats]:
        log_z, _, given = _expectations(theta, sets)
        return log_z - float(theta @ target), given - target

    options: Any = {"gtol": tol}
    if curvature is not None and curvature.shape == (len(begin), len(begin)):
        options["hess_inv0"] = curvature
    result: Any = minimize(dual, begin, jac=True, method="BFGS", options=options)
    error = float(np.abs(result.jac).max())
    if not error <= max(tol, 1e-6):
        raise RuntimeError(
            f"BFGS did not converge: error {error:.3g} in a marginal after {result.nit} steps, "
            f"tol={tol:g}; use ConditionalPoisson"
        )
    inverse = 0.5 * (result.hess_inv + result.hess_inv.T)
    return result.x, inverse


@compiled
def _expectations(theta: Floats, sets: Ints) -> tuple[float, Floats, Floats]:
    """Log normaliser, probability of every set, and marginals.

    A set's weight is the product of its arms' odds, so that no exponential is needed per set; all
    odds are first multiplied by one number, so that products of likely sets neither overflow nor
    vanish. In lexicographic order sets come in runs that share all arms but the last, which rises
    by one up to m - 1: the product of the shared arms is formed once per run.
    """
    (n, k), m = sets.shape, len(theta)
    if k == 0:
        return 0.0, np.ones(n), np.zeros(m)
    shift = centre(theta, k) if k < m else 0.0
    odds = np.exp(theta + shift)
    probabilities, marginals, z, i = np.empty(n), np.zeros(m), 0.0, 0
    while i < n:
        shared, run, last = 1.0, 0.0, sets[i, k - 1]
        for arm in sets[i, : k - 1]:
            shared *= odds[arm]
        for arm in range(last, m):
            probabilities[i + arm - last] = shared * odds[arm]
            marginals[arm] += shared * odds[arm]
            run += shared * odds[arm]
        for arm in sets[i, : k - 1]:
            marginals[arm] += run
        z += run
        i += m - last
    return np.log(z) - k * shift, probabilities / z, marginals / z

"""A law over K-sets that reaches every set at no cost to its marginals."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_marginals, check_number
from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.design import Design
from evenhand.policy import clip_to_sum
from evenhand.typing import Floats, Ints


class Split(Design):
    def __init__(self, steep: ConditionalPoisson, flat: ConditionalPoisson, eta: float) -> None:
        self.steep, self.flat, self.eta = steep, flat, eta
        self.m, self.k = steep.m, steep.k
        self.marginals = (1.0 - eta) * steep.marginals + eta * flat.marginals

    @classmethod
    def fit(cls, marginals: ArrayLike, eta: float, tol: float = 1e-10) -> Self:
        target, k = check_marginals(marginals)
        eta = check_number("eta", eta, 0.0, 1.0)
        flat = clip_to_sum(
            np.ones(len(target)), np.maximum((target - 1.0 + eta) / eta, 0.0), np.minimum(target / eta, 1.0), k
        )
        steep = np.clip((target - eta * flat) / (1.0 - eta), 0.0, 1.0)
        return cls(ConditionalPoisson.fit(steep, tol), ConditionalPoisson.fit(flat, tol), eta)

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        n_flat = rng.binomial(n, self.eta)
        rows = np.concatenate([self.flat.sample(n_flat, rng), self.steep.sample(n - n_flat, rng)])
        return rows

    def _log_prob(self, rows: Ints) -> Floats:
        return np.logaddexp(
            np.log1p(-self.eta) + self.steep._log_prob(rows), np.log(self.eta) + self.flat._log_prob(rows)
        )

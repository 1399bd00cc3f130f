"""A design mixed with the uniform one."""

import math
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from evenhand.checks import check_number
from evenhand.designs.design import Design
from evenhand.designs.uniform import Uniform
from evenhand.typing import Floats, Ints

D = TypeVar("D", bound=Design)


class Mixture(Design, Generic[D]):
    r"""With probability :math:`\eta` a uniform K-set, else one of the design.

    :math:`P^{mix}(S) = (1-\eta) P(S) + \eta / \binom MK` and :math:`q = (1-\eta) \pi + \eta K/M`
    (Alg. 1, lines 8 and 9). Every set keeps a probability of at least :math:`\eta / \binom MK`.

    Parameters
    ----------
    design
        Any design.
    eta
        Share of the uniform one, in [0, 1].

    Examples
    --------
    >>> from evenhand.designs import Systematic
    >>> Mixture(Systematic([1.0, 0.5, 0.5, 0.0]), eta=0.5).marginals
    array([0.75, 0.5 , 0.5 , 0.25])
    """

    def __init__(self, design: D, eta: float) -> None:
        if not isinstance(design, Design):
            raise TypeError(f"design must be a Design, got {type(design).__name__}")
        self.design = design
        self.eta = check_number("eta", eta, 0.0, 1.0)
        self.m, self.k = design.m, design.k
        self.marginals = (1.0 - self.eta) * design.marginals + self.eta * self.k / self.m

    @cached_property
    def uniform(self) -> Uniform:
        """The other part."""
        return Uniform(self.m, self.k)

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = self.design.sample(n, rng)
        plain = np.flatnonzero(rng.random(n) < self.eta)
        if len(plain):
            rows[plain] = self.uniform.sample(len(plain), rng)
        return rows

    def _log_prob(self, rows: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            log_eta, log_rest = np.log(self.eta), np.log1p(-self.eta)
        plain = log_eta + self.uniform.log_prob(rows)
        if log_rest == -math.inf:
            return plain
        return np.logaddexp(plain, log_rest + self.design.log_prob(rows))

    def weights(self, rows: Ints) -> Floats:
        from scipy.special import gammaln

        m, k = self.m, self.k
        log_sets = gammaln(m) - gammaln(k) - gammaln(m - k + 1)
        even = np.exp(-self._log_prob(rows) - log_sets)
        return self.marginals[rows] * even[:, None]

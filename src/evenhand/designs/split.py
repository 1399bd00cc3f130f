"""A law over K-sets that reaches every set without touching its marginals."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_marginals, check_number
from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.design import Design
from evenhand.policy import clip_to_sum
from evenhand.typing import Floats, Ints


class Split(Design):
    r"""Given marginals, split into a flat part and the rest, each of largest entropy.

    Mixing with the uniform law moves the marginals (:class:`~evenhand.designs.Mixture`). Here they
    are split instead, :math:`\pi = (1-\eta) \rho + \eta f`, with f as equal as it can be, that is
    :math:`f_a = c` wherever :math:`0 \le \rho_a \le 1` allows it. Sets of weak arms, which a law of
    marginals :math:`\pi` nearly never draws, then come from f, and the marginals are still
    :math:`\pi`. Where all :math:`\pi_a \ge \eta K/M`, f is uniform.

    Make one with :meth:`fit`.

    Parameters
    ----------
    steep, flat
        The two parts.
    eta
        Share of the flat one.

    Examples
    --------
    >>> design = Split.fit([0.9, 0.5, 0.5, 0.1], eta=0.2)
    >>> design.flat.marginals.round(6), design.steep.marginals.round(6)
    (array([0.5, 0.5, 0.5, 0.5]), array([1. , 0.5, 0.5, 0. ]))
    >>> design.marginals.round(6)
    array([0.9, 0.5, 0.5, 0.1])
    """

    def __init__(self, steep: ConditionalPoisson, flat: ConditionalPoisson, eta: float) -> None:
        self.steep, self.flat, self.eta = steep, flat, eta
        self.m, self.k = steep.m, steep.k
        self.marginals = (1.0 - eta) * steep.marginals + eta * flat.marginals

    @classmethod
    def fit(cls, marginals: ArrayLike, eta: float, tol: float = 1e-10) -> Self:
        """Find the design with these marginals.

        Parameters
        ----------
        marginals
            (m,) numbers in [0, 1] that sum to an integer k >= 1.
        eta
            Share of the flat part, above 0 and below 1.
        tol
            Largest error allowed in a marginal of either part.
        """
        target, k = check_marginals(marginals)
        eta = check_number("eta", eta, 0.0, 1.0)
        if not 0.0 < eta < 1.0:
            raise ValueError(f"eta must lie strictly between 0 and 1, got eta={eta!r}")
        low = np.maximum((target - 1.0 + eta) / eta, 0.0)
        flat = clip_to_sum(np.ones(len(target)), low, np.minimum(target / eta, 1.0), k)
        steep = np.clip((target - eta * flat) / (1.0 - eta), 0.0, 1.0)
        return cls(ConditionalPoisson.fit(steep, tol), ConditionalPoisson.fit(flat, tol), eta)

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = self.steep.sample(n, rng)
        others = np.flatnonzero(rng.random(n) < self.eta)
        rows[others] = self.flat.sample(len(others), rng)
        return rows

    def _log_prob(self, rows: Ints) -> Floats:
        steep, flat = self.steep.log_prob(rows), self.flat.log_prob(rows)
        return np.logaddexp(np.log1p(-self.eta) + steep, np.log(self.eta) + flat)

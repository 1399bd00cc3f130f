"""A design mixed with the uniform one."""

import math
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np

from evenhand.checks import check_number
from evenhand.designs.conditional_poisson import ConditionalPoisson
from evenhand.designs.design import ExplicitDesign
from evenhand.designs.uniform import draw_uniform
from evenhand.randomness.alias import alias_bits, draw_alias
from evenhand.randomness.splitmix import draw_row_word, start_row, uniform
from evenhand.subsets.combinations import log_comb
from evenhand.typing import Floats, Ints, Words, compiled

D = TypeVar("D", bound=ExplicitDesign)


class Mixture(ExplicitDesign, Generic[D]):
    r"""With probability :math:`\eta` a uniform K-set, else one of the design.

    :math:`P^{mix}(S) = (1-\eta) P(S) + \eta / \binom MK` and :math:`q = (1-\eta) \pi + \eta K/M`
    (Alg. 1, lines 8 and 9). Every set keeps a probability of at least :math:`\eta / \binom MK`.

    Parameters
    ----------
    design
        Any design with ``log_prob``.
    eta
        Share of the uniform law, in [0, 1].

    Examples
    --------
    >>> from evenhand.designs import Systematic
    >>> Mixture(Systematic.fit([1.0, 0.5, 0.5, 0.0]), eta=0.5).marginals
    array([0.75, 0.5 , 0.5 , 0.25])
    """

    def __init__(self, design: D, eta: float) -> None:
        if not isinstance(design, ExplicitDesign):
            raise TypeError(
                "design must be a design with log_prob, such as ConditionalPoisson, "
                f"got {type(design).__name__}"
            )
        self.design = design
        self.eta = check_number("eta", eta, 0.0, 1.0)
        self.m, self.k = design.m, design.k
        self.marginals = (1.0 - self.eta) * design.marginals + self.eta * self.k / self.m

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = self.design._sample(n, rng)
        plain = (rng.random(n) < self.eta).nonzero()[0]
        if len(plain):
            rows[plain] = draw_uniform(self.m, self.k, rng.random(len(plain)))
        return rows

    def _log_prob(self, rows: Ints) -> Floats:
        log_rest, log_eta = log_shares(self.eta)
        uniform = log_eta - log_comb(self.m, self.k)
        return np.logaddexp(log_rest + self.design._log_prob(rows), uniform)

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        plain = self.k * (self.k - 1) / max(1, self.m * (self.m - 1))
        joint = np.maximum(self.design._pair_marginals(first, second), 0.0)
        return (1.0 - self.eta) * joint + self.eta * plain

    def _weights(self, rows: Ints) -> Floats:
        """Importance weights of rows that the design drew: those of the base class, sooner."""
        with np.errstate(over="ignore"):
            times = np.exp(self.design._log_prob(rows) + log_comb(self.m, self.k))
        return weigh_mixed(self.marginals, self.eta, rows, times)

    def _fill(
        self, rows: Ints, numbers: Floats, rng: np.random.Generator, orders: Ints, weights: Floats
    ) -> None:
        design = self.design
        if isinstance(design, ConditionalPoisson) and (table := design.arm_table) is not None:
            level = log_comb(self.m, self.k) - design.log_normaliser
            with np.errstate(over="ignore"):
                odds = np.exp(design.log_weights + level / self.k)
            law = table, odds, design.log_weights, level, self.eta
            fill_rows(*law, self.marginals, self.k, rows, numbers, orders, weights)
        else:
            super()._fill(rows, numbers, rng, orders, weights)

    def __repr__(self) -> str:
        return f"Mixture({self.design!r}, eta={self.eta:.3g})"


@lru_cache(maxsize=64)  # a learner makes thousands of mixtures of one share
def log_shares(eta: float) -> tuple[float, float]:
    """Logarithms of the shares of the design and of the uniform law; either may be 0."""
    with np.errstate(divide="ignore"):
        return float(np.log1p(-eta)), float(np.log(eta))


@compiled
def weigh_mixed(marginals: Floats, eta: float, rows: Ints, times: Floats) -> Floats:
    """Importance weights of full rows that the design draws so many times as often as uniform."""
    (n, k), m = rows.shape, len(marginals)
    weights = np.empty((n, k))
    for i in range(n):
        rarity = m / k / (eta + (1.0 - eta) * times[i])
        for r in range(k):
            weights[i, r] = marginals[np.uintp(rows[i, r])] * rarity
    return weights


@compiled
def fill_singles(table: Words, rows: Ints, numbers: Floats, orders: Ints, weights: Floats) -> None:
    """Draw one arm into each of some rows, by the row's own number; its weight is 1."""
    width, bits = orders.shape[1], alias_bits(table)
    for place in rows:
        i = np.uintp(place)  # of signed numbers each is looked at, whether it counts from the end
        word, _ = draw_row_word(start_row(numbers[i]))
        orders[i, 0], weights[i, 0] = draw_alias(table, bits, word), 1.0
        for r in range(1, width):
            orders[i, r], weights[i, r] = -1, 0.0


@compiled
def fill_rows(
    table: Words,
    odds: Floats,
    log_weights: Floats,
    level: float,
    eta: float,
    marginals: Floats,
    k: int,
    rows: Ints,
    numbers: Floats,
    orders: Ints,
    weights: Floats,
) -> None:
    """Draw a k-set and its importance weights into each of some rows, by the row's own number.

    Draws from the ``table`` are repeated until all differ, as those of the design are. How many
    times likelier a set is than a uniform one is the product of its arms' ``odds``; where that is
    beyond the range of floats, it is worked out by logarithms, of which ``level`` is that of a set
    whose log weights sum to 0.
    """
    m, width, bits = len(marginals), orders.shape[1], alias_bits(table)
    seen, trial = np.zeros(m, np.int64), 0
    for place in rows:
        i = np.uintp(place)
        word, state = draw_row_word(start_row(numbers[i]))
        plain, times, r = uniform(word) < eta, 1.0, 0
        trial += 1
        while r < k:
            word, state = draw_row_word(state)
            arm = np.uintp(uniform(word) * m) if plain else np.uintp(draw_alias(table, bits, word))
            if seen[arm] == trial:
                if not plain:
                    trial, times, r = trial + 1, 1.0, 0
                continue
            seen[arm] = trial
            times *= odds[arm]
            orders[i, r] = arm
            r += 1
        if not 0.0 < times < np.inf:
            total = level
            for r in range(k):
                total += log_weights[np.uintp(orders[i, r])]
            times = math.exp(total)
        share = m / (k * (eta + (1.0 - eta) * times))
        for r in range(k):
            weights[i, r] = share * marginals[np.uintp(orders[i, r])]
        for r in range(k, width):
            orders[i, r], weights[i, r] = -1, 0.0

"""The paper's synthetic game: at least one of independent successes."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import (
    check_budget,
    check_integer,
    check_orders,
    check_positive,
    check_rng,
    check_sets,
    check_vector,
)
from evenhand.display import span
from evenhand.games.game import NoisyMean, chunks
from evenhand.games.noise import Bernoulli, half_mass, truncated_gaussian
from evenhand.subsets.combinations import mean_products
from evenhand.typing import Bools, Floats, Ints, compiled

BLOCK = 2**17  # random numbers at a time: they stay in the cache


class NoisyOr:
    r"""Noisy-OR game :math:`V(S) = 1 - \prod_{a \in S} (1 - \mu_a)`.

    Every query draws a fresh quality :math:`X_a = \mu_a + \varepsilon_a` for every arm in the set
    and observes :math:`1 - \prod_{a \in S} (1 - X_a)`. The noise is a centred Gaussian truncated
    to :math:`\pm\min(\text{width}, \mu_a, 1-\mu_a)`, so that rewards lie in [0, 1] and have mean V.
    On the paper's instances this is the paper's law.

    Parameters
    ----------
    mu
        Mean quality of every arm, in [0, 1].
    sd, width
        Standard deviation and truncation of the noise.

    Examples
    --------
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> game.value(np.array([[True, True, False]]))
    array([0.75])
    >>> game.kshapley(2).round(4)
    array([0.4125, 0.4125, 0.15  ])
    """

    trajectory = 1  # bump when a release changes the random numbers

    def __init__(self, mu: ArrayLike, sd: float = 0.1, width: float = 0.1) -> None:
        self.mu = check_vector("mu", mu, 0.0, 1.0)
        self.sd = check_positive("sd", sd)
        self.width = check_positive("width", width)
        self.m = len(self.mu)
        self._miss = 1.0 - self.mu

    @cached_property
    def _noise(self) -> Floats:
        """Of each arm 1 - mu, where its noise is cut off, and the mass of half of it (m, 3).

        In one place of memory: of a million arms few are in the cache.
        """
        cut = np.minimum(self.width, np.minimum(self.mu, self._miss))
        return np.column_stack([self._miss, cut, half_mass(cut, self.sd)])

    def __repr__(self) -> str:
        return f"NoisyOr(m={self.m}, mu={span(self.mu)}, sd={self.sd:g}, width={self.width:g})"

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        return _values(self._miss, check_sets(sets, self.m))

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Noisy rewards (n, s): entry (i, j) is that of the set ``orders[i, :sizes[i, j]]``."""
        orders, sizes = check_orders(orders, sizes, self.m)
        noise, rng = self._noise, check_rng(rng)
        rewards = np.empty(sizes.shape)
        for rows in chunks(len(orders), orders.shape[1] * sizes.shape[1], BLOCK):
            numbers = rng.random(int(sizes[rows].sum()))
            _pull(noise, self.sd, orders[rows], sizes[rows], numbers, rewards[rows])
        return rewards

    def kshapley(self, k: int) -> Floats:
        r"""K-Shapley values in closed form, in O(M K log M).

        A predecessor set :math:`B` leaves arm a the gain :math:`\mu_a \prod_{b \in B} (1-\mu_b)`,
        so :math:`\phi_a = \frac{\mu_a}{K} \sum_{s<K} \bar e_s`, with :math:`\bar e_s` the mean of
        the product over all s-subsets of the other arms (an elementary symmetric polynomial
        over its number of terms).
        """
        _, k = check_budget(self.m, k)
        return self.mu * mean_products(self._miss, k).mean(axis=1)

    def among(self, arms: Ints) -> "NoisyOr":
        """Return the game of these arms alone."""
        return NoisyOr(self.mu[arms], self.sd, self.width)


class BinaryNoisyOr(NoisyMean):
    """Noisy-OR of which only success or failure is seen: reward 1 with probability V(S), else 0.

    Parameters
    ----------
    mu
        Probability of success of every arm, in [0, 1].

    Examples
    --------
    >>> game = BinaryNoisyOr([0.5, 0.5, 0.2])
    >>> game.kshapley(2).round(4)
    array([0.4125, 0.4125, 0.15  ])
    """

    def __init__(self, mu: ArrayLike) -> None:
        self._means, self._noise = NoisyOr(mu), Bernoulli()
        self._miss = 1.0 - self._means.mu
        super().__init__(self._means.m, self._noise)

    def __repr__(self) -> str:
        return f"BinaryNoisyOr(m={self.m}, mu={span(self._means.mu)})"

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix."""
        return self._means.value(sets)

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Noisy rewards (n, s): entry (i, j) is that of the set ``orders[i, :sizes[i, j]]``."""
        orders, sizes = check_orders(orders, sizes, self.m)
        missed = np.ones(sizes.shape)
        for r in range(orders.shape[1]):
            np.multiply(missed, self._miss[orders[:, r], None], out=missed, where=sizes > r)
        return self._noise.observe(1.0 - missed, check_rng(rng))

    def kshapley(self, k: int) -> Floats:
        """K-Shapley values in closed form."""
        return self._means.kshapley(k)

    def among(self, arms: Ints) -> "BinaryNoisyOr":
        """Return the game of these arms alone."""
        return BinaryNoisyOr(self._means.mu[arms])


def synthetic(m: int, rng: np.random.Generator) -> NoisyOr:
    """Draw an instance of the paper's synthetic dataset: mu uniform on [0.2, 0.9].

    Examples
    --------
    >>> synthetic(3, np.random.default_rng(1)).mu.round(3)
    array([0.558, 0.865, 0.301])
    """
    return NoisyOr(check_rng(rng).uniform(0.2, 0.9, check_integer("m", m, 1)))


@compiled
def _values(miss: Floats, sets: Bools) -> Floats:
    values = np.empty(len(sets))
    for i in range(len(sets)):
        product = 1.0
        for a in range(len(miss)):
            if sets[i, a]:
                product *= miss[a]
        values[i] = 1.0 - product
    return values


@compiled
def _pull(
    noise: Floats,
    sd: float,
    orders: Ints,
    sizes: Ints,
    numbers: Floats,
    rewards: Floats,
) -> None:
    n, s = sizes.shape
    used = 0
    for i in range(n):
        for j in range(s):
            product = 1.0
            for r in range(sizes[i, j]):
                arm = noise[np.uintp(orders[i, r])]  # of signed numbers each is looked at
                product *= arm[0] - truncated_gaussian(arm[1], arm[2], sd, numbers[used])
                used += 1
            rewards[i, j] = 1.0 - product

"""Maximum-entropy designs: independent coins conditioned on exactly K heads."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.checks import (
    ROUNDING,
    as_floats,
    check_entries,
    check_marginals,
    check_positive,
)
from evenhand.designs.calibration import (
    HEADS,
    LOG_WEIGHTS,
    MARGINALS,
    NOTHING,
    REST,
    TAILS,
    calibrate,
    describe,
)
from evenhand.designs.design import ExplicitDesign, draw_listed
from evenhand.designs.head_tree import HeadTree, build_tree, draw_heads
from evenhand.designs.poisson_binomial import contour, points_for, sigmoid
from evenhand.designs.state import check_log_weights, read_log_weights, read_part
from evenhand.randomness.alias import alias_bits, build_alias, draw_alias
from evenhand.randomness.splitmix import draw_row_word, shuffle_row, start_row
from evenhand.subsets.combinations import all_sets, count_sets
from evenhand.typing import Floats, Ints, Words, compiled

ComplexFloats = NDArray[np.complex128]
MIN_ACCEPTANCE = 0.05  # below it distinct draws are too rare and the tree takes over
MAX_LISTED = 2**16
NOBODY = np.empty(0, np.int64)


class ConditionalPoisson(ExplicitDesign):
    r"""The law of largest entropy among those over K-sets with given marginals.

    .. math:: P(S) = \exp\Bigl(\sum_{a \in S} \theta_a\Bigr) \Big/ Z_K(\theta), \qquad |S| = K

    Make one with :meth:`fit` from marginals or :meth:`from_log_weights` from :math:`\theta`.

    Attributes
    ----------
    marginals
        What the design really gives each arm; within the tolerance of what was asked of a fit.
    log_weights
        :math:`\theta`, shifted so that the independent coins show about K heads; minus or plus
        infinity for arms that are never or always in.
    log_normaliser
        :math:`\log Z_K(\theta)` of the arms with finite log weights.

    Notes
    -----
    Fitting, marginals and memory are O(M) whatever K. A draw takes K draws from a table,
    repeated until they are distinct, where that happens often enough, and else splits the K
    heads down a tree of arms. Where at least as many draws are asked for as there are different
    sets, and these are at most 65536, draws come from a table of all sets. The law is exact in all
    three ways.

    References
    ----------
    S. X. Chen, A. P. Dempster and J. S. Liu, "Weighted finite population sampling to maximize
    entropy", Biometrika 81 (1994).

    Examples
    --------
    >>> design = ConditionalPoisson.fit([0.9, 0.6, 0.4, 0.1])
    >>> design.marginals.round(6)
    array([0.9, 0.6, 0.4, 0.1])
    >>> design.sample(2, np.random.default_rng(1)).shape
    (2, 2)
    """

    def __init__(self, law: Floats, log_normaliser: float, k: int) -> None:
        """Trust a law as :mod:`~evenhand.designs.calibration` makes it; use :meth:`fit` instead."""
        self.log_weights, self.marginals = law[LOG_WEIGHTS], law[MARGINALS]
        self.m, self.k = law.shape[1], k
        self._law, self.log_normaliser = law, log_normaliser
        # learners make a design per round and draw one set: a cached property costs more than these
        self._free, self._always = np.isfinite(self.log_weights).nonzero()[0], NOBODY
        if len(self._free) < self.m:
            self._always = (self.log_weights == np.inf).nonzero()[0]
        self._k_free = k - len(self._always)
        self._n_sets = count_sets(len(self._free), self._k_free, MAX_LISTED)

    @classmethod
    def fit(cls, marginals: ArrayLike, tol: float = 1e-10) -> Self:
        r"""Find the design with these marginals.

        Steps :math:`\theta \mathrel{+}= s (\operatorname{logit} \pi - \operatorname{logit}
        \pi(\theta))` by way of the odds, damped arm by arm and with a Barzilai-Borwein length s; a
        handful suffice, about twenty where marginals are nearly 0 or 1. Arms of exactly 0 and 1
        stay what they are.

        Parameters
        ----------
        marginals
            (m,) numbers in [0, 1] that sum to an integer k >= 1.
        tol
            Largest absolute error of a marginal; marginals below it may be off by any factor.
        """
        return cls._calibrate(*check_marginals(marginals), tol, NOTHING)

    @classmethod
    def _calibrate(cls, target: Floats, k: int, tol: float, old: Floats) -> Self:
        check_positive("tol", tol)
        law = np.empty((5, len(target)))
        log_normaliser, error, steps = calibrate(
            target, k, tol, old, law, points_for(len(target), k)
        )
        if not error <= tol:
            raise RuntimeError(
                f"the fit did not converge: error {error:.3g} in a marginal after {steps} "
                f"steps, tol={tol:g}; raise tol"
            )
        return cls(law, log_normaliser, k)

    @classmethod
    def from_log_weights(cls, theta: ArrayLike, k: int) -> Self:
        """Make the design with these log weights; minus or plus infinity is never or always in.

        Examples
        --------
        >>> ConditionalPoisson.from_log_weights([0.0, 0.0, np.inf], k=2).marginals
        array([0.5, 0.5, 1. ])
        """
        weights = as_floats("theta", theta)
        k, always, possible = check_log_weights("theta", weights, k)
        if always == k:  # no room for the others
            weights[weights < np.inf] = -np.inf
        elif possible == k:  # no choice among the others
            weights[weights > -np.inf] = np.inf
        law = np.empty((5, len(weights)))
        return cls(law, describe(weights, k, law), k)

    def refit(self, marginals: ArrayLike, tol: float = 1e-10) -> Self:
        """Fit other marginals of the same arms, starting from this design."""
        check_same_arms(marginals, self.m)
        return self._calibrate(*check_marginals(marginals), tol, self._law)

    def entropy(self) -> float:
        """Entropy of the law, in nats, in closed form."""
        free = self._free
        return float(self.log_normaliser - self.log_weights[free] @ self.marginals[free])

    def impossible_pair(self) -> tuple[int, int] | None:
        """Two arms that are never in together, or None."""
        never = np.flatnonzero(self.log_weights == -np.inf)
        if len(never) and self.m > 1:
            return int(never[0]), int(np.flatnonzero(np.arange(self.m) != never[0])[0])
        return (int(self._free[0]), int(self._free[1])) if self._k_free == 1 else None

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        contour = Contour(self)
        one, other = contour.heads(first.reshape(-1)), contour.heads(second)
        if first.ndim == 2:
            return contour.mean_products(one, other)
        return contour.mean(one * other)

    def _log_prob(self, rows: Ints) -> Floats:
        return sum_weights(self.log_weights, len(self._always), rows) - self.log_normaliser

    def state(self) -> dict[str, Floats]:
        """Arrays from which :meth:`from_state` makes a design that draws the same, bit for bit."""
        return {
            "log_weights": self.log_weights.copy(),
            "marginals": self.marginals.copy(),
            "log_normaliser": np.array(self.log_normaliser),
        }

    def warm_state(self) -> dict[str, Floats]:
        """Return the state with what the next :meth:`refit` starts from, to go on bit for bit."""
        return {**self.state(), "coins": self._law[REST:].copy()}

    @classmethod
    def from_state(cls, state: Mapping[str, Floats], k: int) -> Self:
        """Make the design that gave this state, warm or not; refuse a state no design gives."""
        log_weights, k = read_log_weights(state, k)
        law = np.empty((5, len(log_weights)))
        log_normaliser = describe(log_weights, k, law)
        law[LOG_WEIGHTS] = read_part(state, "log_weights", law[LOG_WEIGHTS], "be centred")
        law[MARGINALS] = read_part(state, "marginals", law[MARGINALS])
        check_entries("state: marginals", law[MARGINALS], 0.0, 1.0 + ROUNDING)
        if "coins" in state:
            law[REST:] = read_part(state, "coins", law[REST:])
            check_entries("state: coins", law[REST:], 0.0, 1.0 + ROUNDING)
        log_normaliser = float(read_part(state, "log_normaliser", np.array(log_normaliser)))
        return cls(law, log_normaliser, k)

    @cached_property
    def _coins(self) -> tuple[Floats, Floats]:
        """Chances of head and tail of the arms with a choice."""
        return sigmoid(self._free_weights)

    @property
    def _free_weights(self) -> Floats:
        """Log weights of the arms with a choice, which most often are all."""
        return self.log_weights if len(self._free) == self.m else self.log_weights[self._free]

    @property
    def listed(self) -> tuple[Ints, Floats] | None:
        """All sets that can be drawn, with their probabilities, up to 65536 of them."""
        if self._n_sets > MAX_LISTED:
            return None
        sets = list_sets(self._free, self._always, self.k)
        return sets, np.exp(self._log_prob(sets))

    @cached_property
    def _listing(self) -> tuple[Words, NDArray[np.uint32]]:
        """A table of all sets, and the sets, kept small for the cache's sake."""
        sets = list_sets(self._free, self._always, self.k)
        return build_alias(np.exp(self._log_prob(sets))), sets.astype(np.uint32)

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        if self._n_sets <= n:  # listing them pays
            return self._sample_alike(n, rng)
        return self._sample_arms(n, rng)

    def _sample_alike(self, n: int, rng: np.random.Generator) -> Ints:
        if self._n_sets > MAX_LISTED:
            return self._sample_arms(n, rng)
        return draw_listed(*self._listing, rng.random(n))

    @property
    def arm_table(self) -> Words | None:
        """A table whose draws make a set if all differ, where every arm has a choice."""
        sampler = self._sampler if len(self._free) == self.m else None
        return sampler if isinstance(sampler, np.ndarray) else None

    def _sample_arms(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw without listing sets."""
        rows = np.empty((n, self.k), np.int64)
        if len(self._always):
            rows[:, self._k_free :] = self._always
        sampler = self._sampler
        if isinstance(sampler, np.ndarray):
            _draw_distinct(sampler, self._free, rows, self._k_free, rng.random(n))
        else:
            draw_heads(sampler, *self._coins, self._free, rows, self._k_free, rng)
        return rows

    @cached_property
    def _sampler(self) -> Words | HeadTree:
        """Return a table to draw distinct arms from, or a tree where they rarely would be."""
        k = self._k_free
        if k == 0:
            return np.empty(1, np.uint64)  # nothing is ever drawn from it
        table = distinct_table(self._free_weights, k, math.lgamma(k + 1) + self.log_normaliser)
        return table if len(table) else build_tree(*self._coins)


class Contour:
    """The coins of a design at the points of its contour integral.

    At a point the coins are independent, coin a with a complex chance of head; means over the
    points with their weights are then expectations given k heads. The first point is 1.
    """

    def __init__(self, design: ConditionalPoisson) -> None:
        self._p, self._q = design._law[HEADS], design._law[TAILS]
        points = np.empty((4, design.m // 2 + 1))
        kept, _ = contour(self._p, self._q, design.k, points)
        cosines, sines, real, imaginary = points[:, :kept]
        self._turn: ComplexFloats = np.append(1.0, cosines + 1j * sines)
        weights = np.append(1.0, 2.0 * (real + 1j * imaginary))  # conjugate points come in pairs
        self._weights: ComplexFloats = weights / weights.real.sum()
        self.n_points = len(self._turn)

    def heads(self, arms: Ints) -> ComplexFloats:
        """Chance of head of each arm at each point (n, points)."""
        p = self._p[arms, None]
        return p * self._turn / (self._q[arms, None] + p * self._turn)

    def mean(self, terms: ComplexFloats) -> Floats:
        """Expectation of terms (n, points) given k heads."""
        return (terms @ self._weights).real

    def mean_products(self, one: ComplexFloats, other: ComplexFloats) -> Floats:
        """Expectations (n, l) of all products of terms (n, points) and (l, points)."""
        return ((one * self._weights) @ other.T).real


def list_sets(free: Ints, always: Ints, k: int) -> Ints:
    """All k-sets of the arms always in, which come first, and of free arms."""
    chosen = all_sets(len(free), k - len(always))
    sets = np.empty((len(chosen), k), np.int64)
    sets[:, : len(always)], sets[:, len(always) :] = always, free[chosen]
    return sets


def check_same_arms(marginals: ArrayLike, m: int) -> None:
    """Refuse marginals of another number of arms."""
    if np.shape(marginals) != (m,):
        raise ValueError(f"marginals must have shape ({m},), got {np.shape(marginals)}")


@compiled
def sum_weights(log_weights: Floats, n_always: int, rows: Ints) -> Floats:
    """Sum of the members' finite log weights; -inf if an arm that is always in is missing."""
    sums = np.empty(len(rows))
    for i in range(len(rows)):
        total, always = 0.0, 0
        for r in range(rows.shape[1]):
            weight = log_weights[np.uintp(rows[i, r])]  # arms are never negative
            if weight == np.inf:
                always += 1
            else:
                total += weight
        sums[i] = total if always >= n_always else -np.inf
    return sums


@compiled
def distinct_table(theta: Floats, k: int, log_orders: float) -> Words:
    """A table to draw arms from by their odds; an empty one where k draws rarely all differ.

    ``log_orders`` is the logarithm of the sum of all odds of k-sets, each in all its orders.
    """
    top, total, odds = -np.inf, 0.0, np.empty(len(theta))
    for x in theta:
        top = x if x > top else top
    for a in range(len(theta)):
        odds[a] = math.exp(theta[a] - top)
        total += odds[a]
    if not log_orders - k * (top + math.log(total)) >= math.log(MIN_ACCEPTANCE):
        return np.empty(0, np.uint64)
    return build_alias(odds)


@compiled
def _draw_distinct(table: Words, arms: Ints, rows: Ints, k: int, numbers: Floats) -> None:
    """Fill the first k places of each row with independent draws, repeated until all differ.

    Given that they are distinct, the chance of a set is proportional to the product of its
    members' odds, and every order is equally likely: the design itself. Each row's random words
    start from its number.
    """
    bits = alias_bits(table)
    seen, trial = np.empty(len(arms), np.int64), 1
    for a in range(len(arms)):
        seen[a] = 0
    for i in range(len(rows)):
        state, r = start_row(numbers[i]), 0
        while r < k:
            word, state = draw_row_word(state)
            drawn = draw_alias(table, bits, word)
            if seen[drawn] == trial:
                r = 0
                trial += 1
                continue
            seen[drawn] = trial
            rows[i, r] = arms[drawn]
            r += 1
        trial += 1
        if k < rows.shape[1]:  # the arms that are always in come last so far
            shuffle_row(rows[i], state)

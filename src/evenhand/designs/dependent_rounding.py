"""Randomised rounding of marginals by duels between arms."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_marginals
from evenhand.designs.design import Design
from evenhand.designs.pairs import PairMarginals
from evenhand.subsets.combinations import shuffle
from evenhand.typing import Floats, Ints, compiled

SNAP = 1e-12  # an entry this close to 0 or 1 counts as 0 or 1
MISSING = ("log_prob", "weights")  # methods that need the probability of a set


class DependentRounding(Design, PairMarginals):
    """K-sets with given marginals by dependent rounding: the paper's RRS.

    Two entries strictly between 0 and 1 fight: mass moves from one to the other, in a random
    direction that keeps both means, until one of them is 0 or 1. Arms are negatively correlated.
    A draw is O(M). The probability of a set has no closed form, so there is no ``log_prob``; that
    of a pair has one. Survey statistics calls this the ordered pivotal method.
    Make one with :meth:`fit`.

    References
    ----------
    R. Gandhi, S. Khuller, S. Parthasarathy and A. Srinivasan, "Dependent rounding and its
    applications to approximation algorithms", Journal of the ACM 53 (2006).

    Examples
    --------
    >>> rows = DependentRounding.fit([0.9, 0.6, 0.4, 0.1]).sample(10_000, np.random.default_rng(1))
    >>> bool(np.all(np.abs(np.bincount(rows.ravel()) / 10_000 - [0.9, 0.6, 0.4, 0.1]) < 0.02))
    True
    """

    def __init__(self, marginals: Floats, k: int) -> None:
        """Trust marginals that sum to k; use :meth:`fit` instead."""
        self.m, self.k, self.marginals = len(marginals), k, marginals

    @classmethod
    def fit(cls, marginals: ArrayLike) -> Self:
        """Make the design with these marginals (m,), in [0, 1], that sum to an integer k >= 1."""
        return cls(*check_marginals(marginals))

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        return _duels(self.marginals, self.k, n, rng)

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        r"""Joint chances of two arms.

        Whoever is carried when arm b comes has the mass mu, whoever it is. An arm that is in
        already when b comes meets it with the chance of b; the carried one meets it with
        :math:`(\mu + \pi_b - 1)^+`, as then one is in and the other carries that; by the
        martingale of an arm's mass, a is in already with :math:`\pi_a - c_{ab} \mu`, if it is
        carried with :math:`c_{ab}`.
        """
        low, high = np.minimum(first, second), np.maximum(first, second)
        mass, born, log_kept, ends = _careers(self.marginals)
        # carried from its own duel up to that with the later arm, if nothing ended in between
        alive = ends[low] >= high
        with np.errstate(divide="ignore", invalid="ignore"):
            carried = np.where(alive, born[low] * np.exp(log_kept[high] - log_kept[low + 1]), 0.0)
        mu, pi = mass[high], self.marginals[high]
        both = np.maximum(0.0, mu + pi - 1.0)
        return self.marginals[low] * pi - np.nan_to_num(carried) * (mu * pi - both)

    if not TYPE_CHECKING:  # type checkers know that there is no log_prob

        def __getattr__(self, name: str) -> Any:
            remedy = "; use ConditionalPoisson or Systematic" if name in MISSING else ""
            raise AttributeError(f"DependentRounding has no attribute {name!r}{remedy}")


@compiled
def _careers(marginals: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """How arms are carried along.

    For each arm: the mass that is carried when it comes; the chance that it is carried right after;
    and the last arm that comes before nobody is carried any more. And the log of the chance that
    who is carried stays so, summed over all arms before each.
    """
    m = len(marginals)
    before, born, ends = np.zeros(m), np.zeros(m), np.empty(m, np.int64)
    log_kept, mass, epoch = np.zeros(m + 1), 0.0, 0
    for a in range(m):
        before[a], p, stays = mass, marginals[a], 1.0
        if mass == 0.0:
            if SNAP < p < 1.0 - SNAP:
                mass, born[a] = p, 1.0
        elif mass + p < 1.0:
            stays = mass / (mass + p)
            mass, born[a] = mass + p, 1.0 - stays
        else:
            rest = mass + p - 1.0
            if rest < 1.0 - SNAP:
                stays = (p - rest) / (1.0 - rest)
                mass, born[a] = rest, 1.0 - stays
            else:
                mass = 1.0
            if rest <= SNAP:
                mass = 0.0
        log_kept[a + 1] = log_kept[a] + (np.log(stays) if stays > 0.0 else -np.inf)
        if mass == 0.0:
            for b in range(epoch, a + 1):
                ends[b] = a
            epoch = a + 1
            log_kept[a + 1] = 0.0
    for b in range(epoch, m):
        ends[b] = m
    return before, born, log_kept, ends


@compiled
def _duels(marginals: Floats, k: int, n: int, rng: np.random.Generator) -> Ints:
    """Carry one undecided arm along and let it fight the next one."""
    m = len(marginals)
    rows = np.empty((n, k), np.int64)
    for i in range(n):
        filled, carried, mass = 0, -1, 0.0
        for a in range(m):
            p = marginals[a]
            if carried >= 0:
                carried, mass, winner = _duel(carried, mass, a, p, rng)
            elif p >= 1.0 - SNAP:
                winner = a
            else:
                winner = -1
                if p > SNAP:
                    carried, mass = a, p
            if winner >= 0 and filled < k:
                rows[i, filled] = winner
                filled += 1
        if filled < k:  # the last one carried holds what rounding left of a whole unit
            rows[i, filled] = carried
        shuffle(rows[i], rng)
    return rows


@compiled
def _duel(i: int, p: float, j: int, q: float, rng: np.random.Generator) -> tuple[int, float, int]:
    """Return the arm still undecided (-1 if none), its mass, and the arm just let in (or -1)."""
    total = p + q
    if total < 1.0:  # one takes all, the other is out
        return (i, total, -1) if rng.random() * total < p else (j, total, -1)
    rest = total - 1.0  # one is in, the other keeps the rest
    if rest >= 1.0 - SNAP:
        return i, 1.0, j
    first_in = rng.random() * (1.0 - rest) < 1.0 - q
    winner, loser = (i, j) if first_in else (j, i)
    if rest <= SNAP:
        return -1, 0.0, winner
    return loser, rest, winner

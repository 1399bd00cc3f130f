r"""Noisy-OR curves through full-set values, to guess what smaller sets would bring.

Arms of worths x bring :math:`b(S) = (1 - \prod_{a \in S} (1 - \gamma x_a)) / \gamma` together: the
sum of their worths for :math:`\gamma \to 0`, noisy-OR for :math:`\gamma = 1`, more than their sum
below 0. For each curvature :math:`\gamma` there are worths with which b has the full-set values
that were estimated. Curves of several curvatures are kept, and weighed by how near they are to the
rewards, in least squares weighted by importance: near on all K-sets and not only on those that are
shown often. (Following one curve downhill ends at the wrong one too often: far from the right
curvature the slope vanishes in noise.)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from evenhand.exchange.fields import COUNT, Field, Fields
from evenhand.subsets.combinations import mean_products
from evenhand.subsets.full_sets import stretch
from evenhand.typing import Floats, Ints, compiled

# curvatures kept, times the mean reward of a set: 0 is additive, near 1 nothing is left to gain
FILLED = np.array(
    [-0.5, -0.25, 0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.985, 0.993, 0.998]
)
LEFT = 0.02  # an arm leaves at least so much of what it found
GROWTH = 0.25  # share of new rewards after which curves are fitted again
ROUNDS = 3  # of fitting then: from the curves before, which are near

FIELDS: Fields = {
    **{name: Field(-1e300, 1e300) for name in ("worth", "gamma", "loss", "gap")},
    "fitted": COUNT,
}


class Extrapolation(NamedTuple):
    """What K-Shapley values would be *if* smaller sets followed the curve; nobody has seen them.

    Attributes
    ----------
    kshapley
        (m,) K-Shapley values of the curves, averaged; nan for arms not yet seen.
    worth
        (m,) what the curves say an arm brings alone.
    curvature
        Their gamma: 0 where worths add up, 1 for noisy-OR.
    """

    kshapley: Floats
    worth: Floats
    curvature: float


class Curves:
    """Curves of several curvatures, and how near each is to the rewards.

    Attributes
    ----------
    gamma, worth
        (n,) curvatures and (n, m) worths, as they were fitted last.
    loss
        (n,) sums of u (y - b)^2. They fade, see :meth:`fit`.
    gap
        (n - 1,) sums of u (b - b')^2, b' being the next curve. They fade as well.
    fitted
        Rewards told when they were fitted last.
    """

    def __init__(self, m: int, k: int) -> None:
        self.k, self.fitted = k, 0
        self.loss, self.gap = np.zeros(len(FILLED)), np.zeros(len(FILLED) - 1)
        self.gamma, self.worth = curvatures(0.5), np.full((len(FILLED), m), 0.5 / k)

    def absorb(self, sets: Ints, weights: Floats, rewards: Floats) -> None:
        """Add the rewards (n, 1) of full sets with weights (n, 1), skipping nan."""
        add_losses(self.loss, self.gap, self.worth, self.gamma, sets, weights, rewards)

    def branch(self) -> "Curves":
        """Return the same curves without rewards."""
        other = Curves(self.worth.shape[1], self.k)
        other.gamma, other.worth = self.gamma.copy(), self.worth.copy()
        other.fitted = self.fitted
        return other

    def merge(self, other: "Curves") -> None:
        """Add what the same curves absorbed elsewhere."""
        self.loss += other.loss
        self.gap += other.gap

    def fit(self, values: Floats, told: int) -> None:
        """Lead the curves through full-set values, if there is much that is new."""
        if told > (1.0 + GROWTH) * self.fitted:
            self.gamma, self.worth = self._through(values, ROUNDS)
            # reward i of n keeps weight i/n: early losses are those of poor curves
            for array in (self.loss, self.gap):
                array *= (1.0 + self.fitted) / (1.0 + told)
            self.fitted = told

    def average(self, values: Floats, noise: float) -> Extrapolation:
        """Average the curves through full-set values by how likely their losses make them.

        ``noise`` is the mean of the squared weighted surprises. Before anything was seen all are
        equally likely.
        """
        gamma, worth = self._through(values, 100)
        phi = np.array(list(map(partial(kshapley_of, k=self.k), worth, gamma)))
        part, loss = nearest(self.loss, self.gap)
        share = np.exp(-(loss - loss.min()) / max(2.0 * noise, 1e-12))
        share /= share.sum()
        weights = np.append(share * (1.0 - part), 0.0) + np.append(0.0, share * part)
        return Extrapolation(weights @ phi, weights @ worth, float(weights @ gamma))

    def _through(self, values: Floats, rounds: int) -> tuple[Floats, Floats]:
        """Curvatures and worths of the curves with these full-set values."""
        gamma = curvatures(self.k * float(values.mean()))
        near = zip(gamma.tolist(), self.worth, strict=True)
        return gamma, np.array([match(values, g, self.k, x, rounds) for g, x in near])


def nearest(loss: Floats, gap: Floats) -> tuple[Floats, Floats]:
    """Where on the way from each curve to the next the loss is lowest (n - 1,), and how low.

    A part p of the way the curve is (1 - p) b + p b', with the loss
    (1 - p) L + p L' - p (1 - p) D, D being the weighted sum of (b - b')^2.
    """
    here, there, some = loss[:-1], loss[1:], np.where(gap > 0.0, gap, 1.0)
    part = np.where(gap > 0.0, np.clip((here - there + gap) / (2.0 * some), 0.0, 1.0), 0.5)
    return part, here + part * (there - here) - part * (1.0 - part) * gap


def kshapley_of(worth: Floats, gamma: float, k: int) -> Floats:
    """K-Shapley values (m,) of a curve: an arm brings its worth times what others leave."""
    return worth * mean_products(1.0 - gamma * worth, k).mean(axis=1)


def curvatures(level: float) -> Floats:
    """Curvatures of the curves where a set brings ``level`` on average; none is exactly 0."""
    gamma = FILLED / max(level, 1e-6)
    return np.where(gamma == 0.0, 1e-6, gamma)


@compiled
def add_losses(
    loss: Floats,
    gap: Floats,
    worth: Floats,
    gamma: Floats,
    sets: Ints,
    weights: Floats,
    rewards: Floats,
) -> None:
    """Add the weighted squared surprises of every curve, and its distance from the one before."""
    for i in range(len(sets)):
        if np.isnan(rewards[i, 0]):
            continue
        before = 0.0
        for j in range(len(gamma)):
            brings = 0.0
            for a in sets[i]:
                brings += worth[j, a] * (1.0 - gamma[j] * brings)
            loss[j] += weights[i, 0] * (rewards[i, 0] - brings) ** 2
            if j > 0:
                gap[j - 1] += weights[i, 0] * (brings - before) ** 2
            before = brings


@compiled
def match(values: Floats, gamma: float, k: int, start: Floats, rounds: int) -> Floats:
    """Worths (m,) with which the curve has these full-set values, as nearly as there are any.

    Each round adds to a worth what its full-set value lacks, over what the others leave to it.
    """
    m = len(values)
    worth, left, inside = np.empty(m), np.empty(m), np.empty(m)
    highest = min(1.0, (1.0 - LEFT) / gamma) if gamma > 0.0 else 1.0
    apart = stretch(m, k)
    for a in range(m):
        worth[a] = min(start[a], highest)
    for _ in range(rounds):
        for a in range(m):
            left[a] = 1.0 - gamma * worth[a]
        missed = mean_products(left, k)
        level = 0.0
        for a in range(m):
            inside[a] = (1.0 - left[a] * missed[a, k - 1]) / gamma
            level += inside[a] / m
        moved = 0.0
        for a in range(m):
            lacking = values[a] - level / k - apart * (inside[a] - level)
            new = min(max(worth[a] + lacking / missed[a, k - 1], 0.0), highest)
            moved = max(moved, abs(new - worth[a]))
            worth[a] = new
        if moved < 1e-9:
            break
    return worth

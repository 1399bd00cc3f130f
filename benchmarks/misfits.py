"""Worlds that the model of EvenHand does not describe, or in which few arms bring nearly all.

    python -m benchmarks.deployments star pairs crowd --full 0.95 --marks 500 2000 20000

Rewards are 0 or 1. Worth a look is what is said on mostly full pages, of which few are small.
"""

from collections.abc import Callable

import numpy as np

from evenhand import kshapley
from evenhand.games import NoisyOr, SetFunction
from evenhand.games.noise import Bernoulli
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.lab.games import Setting
from evenhand.merit import Estimate
from evenhand.typing import Bools, Floats

KINDS = 5  # of arms that stand in for each other


def setting(value: Callable[[Bools], Floats], m: int, k: int) -> Setting:
    """Make a game of 0/1 rewards, with its exact merits."""
    game = SetFunction(value, m, noise=Bernoulli())
    return Setting(game, Estimate(kshapley(game, k), np.zeros(m), queries=0))


def star(m: int, k: int, rng: np.random.Generator) -> Setting:
    """One arm brings nearly all, by a noisy-OR."""
    chance = np.append(0.7, rng.uniform(0.005, 0.03, m - 1))
    return setting(lambda sets: 1.0 - np.prod(1.0 - chance * sets, axis=1), m, k)


def tail(m: int, k: int, rng: np.random.Generator) -> Setting:
    """A noisy-OR of chances that fall like one over the rank: a few sell much, most hardly any."""
    chance = rng.permutation(0.4 / np.arange(1.0, m + 1.0))
    merit = NoisyOr(chance).kshapley(k)
    return Setting(BinaryNoisyOr(chance), Estimate(merit, np.zeros(m), queries=0))


def pairs(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Each arm is worth something together with one other."""
    half = m // 2
    worth = rng.uniform(0.1, 0.5, half)
    return setting(
        lambda sets: np.minimum((sets[:, :half] & sets[:, half : 2 * half]) @ worth, 1.0), m, k
    )


def crowd(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Sets bring less the more arms they hold."""
    worth = rng.uniform(0.05, 0.6, m)
    return setting(lambda sets: sets @ worth / np.maximum(sets.sum(axis=1), 1) ** 1.3, m, k)


def weakest(m: int, k: int, rng: np.random.Generator) -> Setting:
    """A set is worth what its weakest member is."""
    worth = rng.uniform(0.1, 0.9, m)
    return setting(lambda sets: np.where(sets, worth, 1.0).min(axis=1) * sets.any(axis=1), m, k)


def twins(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Of arms of a kind only the best counts; kinds add up."""
    kind, worth = rng.integers(0, KINDS, m), rng.uniform(0.02, 0.19, m)
    each = worth * (kind == np.arange(KINDS)[:, None])
    return setting(lambda sets: (sets[:, None] * each).max(axis=2).sum(axis=1), m, k)


def team(m: int, k: int, rng: np.random.Generator) -> Setting:
    """Every arm makes every other worth more."""
    worth = rng.uniform(0.0, 0.5, m)
    return setting(lambda sets: (sets @ worth) ** 2 / 4.0, m, k)

"""Random games with rewards 0 or 1, each hard for learners for a reason of its own."""

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.games.best_member import BestMember
from evenhand.games.carrier import Carrier, additive
from evenhand.games.noise import Bernoulli
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.games.set_function import SetFunction


def wide_noisy_or(m: int, rng: np.random.Generator) -> BinaryNoisyOr:
    """Make a noisy-OR whose qualities are log-uniform on [0.01, 1]: merits differ a hundredfold.

    Examples
    --------
    >>> merit = wide_noisy_or(50, np.random.default_rng(1)).kshapley(8)
    >>> bool(merit.max() > 50 * merit.min())
    True
    """
    return BinaryNoisyOr(10.0 ** check_rng(rng).uniform(-2.0, 0.0, check_integer("m", m, 1)))


def shop(m: int, rng: np.random.Generator) -> BinaryNoisyOr:
    """Make a shop window: purchases are rare, most sellers sell next to nothing, a few well.

    A noisy-OR whose qualities follow a Beta(1.2, 12), of mean 0.09, cut to [0.004, 0.9].

    Examples
    --------
    >>> merit = shop(40, np.random.default_rng(1)).kshapley(6)
    >>> bool(merit.max() < 0.3 and merit.max() > 10 * merit.min())
    True
    """
    quality = check_rng(rng).beta(1.2, 12.0, check_integer("m", m, 1))
    return BinaryNoisyOr(np.clip(quality, 0.004, 0.9))


def rare_coverage(m: int, rng: np.random.Generator) -> SetFunction:
    """Make a game worth the share of 60 items that its arms cover, of which each covers few.

    An arm covers each item with a chance of the arm's own, between 0.005 and 0.05: one or two
    items on average. One arm in four covers none and is worth nothing.

    Examples
    --------
    >>> game = rare_coverage(30, np.random.default_rng(1))
    >>> bool(game.value(np.eye(30, dtype=bool)).mean() < 0.05)
    True
    """
    m = check_integer("m", m, 1)
    covers = check_rng(rng).random((m, 60)) < rng.uniform(0.005, 0.05, (m, 1))
    table = covers.astype(np.float64)
    return SetFunction(
        lambda sets: ((sets.astype(np.float64) @ table) > 0.0).mean(axis=1), m, noise=Bernoulli()
    )


def random_coverage(m: int, rng: np.random.Generator) -> SetFunction:
    """Make a game in which a set is worth the weight of the items it covers, of 60 that sum to 1.

    An arm covers each item with a probability of the arm's own, between 0.05 and 0.3. What arms
    cover overlaps, and merits have no closed form.

    Examples
    --------
    >>> game = random_coverage(5, np.random.default_rng(1))
    >>> everything = game.value(np.ones((1, 5), bool))
    >>> bool(everything[0] < game.value(np.eye(5, dtype=bool)).sum())  # they overlap
    True
    """
    m = check_integer("m", m, 1)
    weights = check_rng(rng).dirichlet(np.ones(60))
    covers = rng.random((m, 60)) < rng.uniform(0.05, 0.3, (m, 1))
    covers[np.arange(m), rng.integers(0, 60, m)] = True  # every arm covers at least one
    table = covers.astype(np.float64)
    return SetFunction(
        lambda sets: ((sets.astype(np.float64) @ table) > 0.0) @ weights, m, noise=Bernoulli()
    )


def random_additive(m: int, k: int, rng: np.random.Generator) -> Carrier:
    """Make an additive game in which the k best arms add up to 0.9: gains never shrink.

    Examples
    --------
    >>> merit = random_additive(6, 2, np.random.default_rng(1)).kshapley(2)
    >>> round(float(np.sort(merit)[-2:].sum()), 6)
    0.9
    """
    m, k = check_budget(m, k)
    worth = check_rng(rng).uniform(0.05, 1.0, m)
    return additive(0.9 / np.sort(worth)[-k:].sum() * worth, noise=Bernoulli())


def best_member(m: int, rng: np.random.Generator) -> BestMember:
    """Make a game in which a set is worth its best arm: beside it weak arms add nothing.

    Examples
    --------
    >>> game = best_member(4, np.random.default_rng(1))
    >>> game.value(np.eye(4, dtype=bool)).max() == game.value(np.ones((1, 4), bool))
    array([ True])
    """
    return BestMember(check_rng(rng).uniform(0.05, 0.95, check_integer("m", m, 1)))


def hidden_pair(m: int, rng: np.random.Generator) -> Carrier:
    """Make a game that is additive but for arm 0: worth nothing alone, 0.3 beside arm 1.

    Examples
    --------
    >>> game = hidden_pair(5, np.random.default_rng(1))
    >>> game.value(np.array([[True, False, False, False, False]]))
    array([0.])
    >>> int(game.kshapley(3).argmax()) in (0, 1)
    True
    """
    worth = check_rng(rng).uniform(0.02, 0.12, check_integer("m", m, 2))
    worth[0] = 0.0
    return Carrier([*([a] for a in range(m)), [0, 1]], [*worth, 0.3], m, noise=Bernoulli())

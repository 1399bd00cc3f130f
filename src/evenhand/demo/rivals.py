"""The same shop under other rules, simulated in the library."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenhand.demo.shop import JOINS, LEAVES, PLACES, Shop
from evenhand.exchange import Batch
from evenhand.games.game import Game
from evenhand.learners import ETCG, URS, IWKSVFair, Learner
from evenhand.typing import Floats, Ints

Make = Callable[[int, int, int], Learner]  # of arms, queries and a seed
GAMMA = 0.8  # the paper's, in its first experiments
STEP = 500  # queries between two looks at the world


class Outcome(NamedTuple):
    """How a rule has done.

    Attributes
    ----------
    name, words
        The rule, and what it does.
    off
        Share of all places that were not where they were due, in the last third of the queries.
    worst
        Given over due of the worst-served seller, in the last third.
    bought
        Purchases per query, over all queries.
    """

    name: str
    words: str
    off: float
    worst: float
    bought: float

    @classmethod
    def of(cls, name: str, words: str, given: Floats, due: Floats, bought: float) -> "Outcome":
        """Compare shares given with those due, both summing to 1 over all sellers."""
        there = due > 0.0
        worst = float((given[there] / due[there]).min())
        return cls(name, words, 0.5 * float(np.abs(given - due).sum()), worst, bought)


RULES: dict[str, tuple[str, Make]] = {
    "uniform": (
        "every seller the same, nothing is learnt",
        lambda m, n, seed: URS(m, PLACES, seed=seed),
    ),
    "most reward": (
        "explores, then shows the best set it has found (ETCG)",
        lambda m, n, seed: ETCG(m, PLACES, horizon=n, seed=seed),
    ),
    "the paper's learner": (
        "shares by merit, from prefixes of full sets (IW-KSVFair, its gamma as in the paper)",
        lambda m, n, seed: IWKSVFair(m, PLACES, horizon=n, gamma=GAMMA, seed=seed),
    ),
}


def beside(shop: Shop, queries: int, seed: int = 1) -> list[Outcome]:
    """Let every rule run the shop for so many queries."""
    return [play(name, *rule, shop, queries, seed) for name, rule in RULES.items()]


def play(name: str, words: str, make: Make, shop: Shop, queries: int, seed: int) -> Outcome:
    """Let one rule run the shop; it is made anew when a seller joins or leaves."""
    rng, last = np.random.default_rng(seed), 2 * queries // 3
    given, due, bought = np.zeros(shop.world.m), np.zeros(shop.world.m), 0.0
    edges = [0, *(t for t in (JOINS, LEAVES) if t < queries), queries]
    for start, end in pairwise(edges):
        arms = shop.world.present(start)
        learner = make(len(arms), end - start, seed)
        while (t := start + learner.queries) < end:
            game = shop.world.at(t).among(arms)  # type: ignore[attr-defined]
            batch = _asked(learner, min(end, t - t % STEP + STEP) - t)
            if batch.learns:
                learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
            bought += _expected(batch, game)
            if t >= last:
                given[arms] += _places(batch, len(arms))
                due += batch.queries * shop.due(t)
    return Outcome.of(name, words, given / given.sum(), due / due.sum(), bought / queries)


def _asked(learner: Learner, limit: int) -> Batch:
    """Ask; a round that does not fit before the world changes is no reason to learn nothing."""
    left = (learner.horizon or 2**62) - learner.queries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last queries of a horizon are fewer than a round
        return learner.ask(min(max(limit, PLACES), left))


def _places(batch: Batch, m: int) -> Floats:
    """Places that arms were given, those of a query summing to 1."""
    result = np.zeros(m)
    for sizes in batch.sizes.T:
        inside = np.arange(batch.orders.shape[1]) < sizes[:, None]
        each = batch.times / np.maximum(sizes, 1)
        result += np.bincount(batch.orders[inside], np.repeat(each, sizes), m)
    return result


def _expected(batch: Batch, game: Game) -> float:
    """Purchases to be expected of a batch."""
    total = 0.0
    for sizes in batch.sizes.T:
        sets = _as_sets(batch.orders, sizes, game.m)
        total += float(batch.times @ game.value(sets))
    return total


def _as_sets(orders: Ints, sizes: Ints, m: int) -> np.ndarray:
    sets = np.zeros((len(orders), m), np.bool_)
    rows, places = np.nonzero(np.arange(orders.shape[1]) < sizes[:, None])
    sets[rows, orders[rows, places]] = True
    return sets

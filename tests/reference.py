"""Naive, readable re-implementations: what the package must agree with."""

from itertools import combinations, permutations
from math import comb, factorial

import numpy as np


def sets_of(m, k):
    """All k-subsets of range(m)."""
    return [list(s) for s in combinations(range(m), k)]


def value_of(game, arms):
    """V of one set of arms."""
    row = np.zeros((1, game.m), bool)
    row[0, list(arms)] = True
    return float(game.value(row)[0])


def kshapley(game, k):
    """The paper's definition, sum by sum."""
    m, phi = game.m, np.zeros(game.m)
    for i in range(m):
        others = [a for a in range(m) if a != i]
        for rest in combinations(others, k - 1):
            for s in range(k):
                for coalition in combinations(rest, s):
                    weight = factorial(s) * factorial(k - s - 1) / factorial(k)
                    gain = value_of(game, [*coalition, i]) - value_of(game, coalition)
                    phi[i] += weight * gain / comb(m - 1, k - 1)
    return phi


def waterfill(scores, k):
    """The appendix in words: cap at one, reduce the budget, share again among the rest."""
    scores = [float(s) for s in scores]
    m = len(scores)
    positive = [a for a in range(m) if scores[a] > 0]
    if len(positive) < k:
        return np.array(
            [1.0 if scores[a] > 0 else (k - len(positive)) / (m - len(positive)) for a in range(m)]
        )
    capped = set()
    while True:
        left = k - len(capped)
        open_arms = [a for a in positive if a not in capped]
        total = sum(scores[a] for a in open_arms)
        share = {a: left * scores[a] / total for a in open_arms}
        over = {a for a in open_arms if share[a] > 1}
        if not over:
            return np.array([1.0 if a in capped else share.get(a, 0.0) for a in range(m)])
        capped |= over


def max_entropy(theta, k):
    """Listed sets and their probabilities under weights exp(theta)."""
    sets = sets_of(len(theta), k)
    weights = np.exp([np.sum(theta[s]) for s in sets])
    return sets, weights / weights.sum()


def marginals_of(sets, probabilities, m):
    """Marginals of a listed law."""
    marginals = np.zeros(m)
    for s, p in zip(sets, probabilities, strict=True):
        marginals[s] += p
    return marginals


def pairs_of(sets, probabilities, m):
    """Joint marginals of a listed law."""
    joint = np.zeros((m, m))
    for s, p in zip(sets, probabilities, strict=True):
        joint[np.ix_(s, s)] += p
    return joint


def cascade(edges, chances, m, seeds, rng):
    """One cascade, a coin an edge; returns the active nodes."""
    active, frontier = set(seeds), list(seeds)
    while frontier:
        node = frontier.pop()
        for (u, v), p in zip(edges, chances, strict=True):
            if u == node and v not in active and rng.random() < p:
                active.add(v)
                frontier.append(v)
    return active


def systematic(marginals, k, start):
    """Arms lying at start, start + 1, ... on the line of marginals."""
    ends = np.cumsum(marginals)
    return [int(np.argmax(ends > start + j)) for j in range(k)]


def orders_of(arms):
    """All orders of a set."""
    return [list(o) for o in permutations(arms)]


def cube_law(marginals, balance):
    """The law of the cube method: all orders of the units, and both ways of every step."""
    m, law = len(marginals), {}
    equations = np.vstack([np.ones(m), np.asarray(balance).T / marginals])

    def walk(pi, active, waiting, chance):
        while len(active) <= len(equations) and waiting:
            active, waiting = [*active, waiting[0]], waiting[1:]
        if len(active) < 2:
            chosen = tuple(np.flatnonzero(np.round(pi)))
            law[chosen] = law.get(chosen, 0.0) + chance
            return
        kept = equations[: min(len(equations), len(active) - 1), active]
        u = np.linalg.svd(kept)[2][-1]  # the direction that all equations leave free
        here = pi[active]
        with np.errstate(divide="ignore"):
            ahead = np.where(u > 0, (1 - here) / u, np.where(u < 0, -here / u, np.inf)).min()
            back = np.where(u < 0, (here - 1) / u, np.where(u > 0, here / u, np.inf)).min()
        for step, p in ((ahead, back / (ahead + back)), (-back, ahead / (ahead + back))):
            then = pi.copy()
            then[active] = here + step * u
            then[np.abs(then) < 1e-9], then[np.abs(then - 1) < 1e-9] = 0.0, 1.0
            walk(then, [a for a in active if 0 < then[a] < 1], waiting, chance * p)

    for order in permutations(range(m)):
        walk(np.array(marginals, float), [], list(order), 1 / factorial(m))
    return law

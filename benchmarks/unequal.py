"""What there is to learn for somebody who is not told that items or arcs weigh the same.

    python -m benchmarks.unequal cover cascade --worlds 20 --base-seed 4242

Whoever it is knows all else: of set cover which arm covers which item, and so which arms cover
none; of cascades the graph, and that all arcs of a node carry equally often, but not how often. Of
the rewards of the sets that the oracle is shown (:mod:`benchmarks.oracle`) the inverse of the
Fisher information about weights is then the covariance that no estimate can do better than at all
weights near these (the local asymptotic minimax theorem of Hajek and Le Cam), and half-L1 of shares
is at least what normal errors of that covariance make it, as it is a norm of them. (That is said of
many rewards, and of no marginal at its bounds; each weight must have been seen.)
"""

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.covering import N_ITEMS, drawn
from benchmarks.deployments import MARKS, WORLDS, settings
from benchmarks.oracle import show
from benchmarks.told import Told, counted, members
from evenhand.games import IndependentCascade
from evenhand.lab.games import Setting
from evenhand.learners.sizes import size_shares
from evenhand.merit.reverse_reachable import _shares
from evenhand.randomness.streams import stream
from evenhand.typing import Bools, Floats

DRAWS = 400  # normal errors per world


class Unknown(NamedTuple):
    """Weights of which rewards and merits are sums.

    A set's mean is a row of ``means`` (sets, n) times them, the variance of its rewards is
    ``variance``, and it was shown so many ``times``; merits are ``merits`` (m, n) times them, and
    ``known`` besides.
    """

    weights: Floats
    means: Floats
    variance: Floats
    times: Floats
    merits: Floats
    known: Floats


def covers(setting: Setting, seed: int, replication: int) -> Bools:
    """Which arm covers which item (m, n), drawn as the game was."""
    m = setting.game.m
    table = drawn(m, stream(seed, replication, "instance"))
    if not np.allclose(setting.game.value(np.eye(m, dtype=np.bool_)), table.mean(axis=1)):
        raise AssertionError("games of set cover are drawn in another way")
    return table


def weights_of_items(table: Bools, told: Told, k: int) -> Unknown:
    """What is unknown of set cover: items that the same arms cover can but be weighed together."""
    m = len(table)
    groups, counts = np.unique(table[:, table.any(axis=0)], axis=1, return_counts=True)
    weights = counts / N_ITEMS
    sets, successes, failures = counted(told, m)
    covered = ((sets.astype(np.int64) @ groups) > 0).astype(np.float64)
    chance = covered @ weights
    merits = groups * _shares(m, k)[groups.sum(axis=0)]
    return Unknown(
        weights, covered, chance * (1.0 - chance), successes + failures, merits, np.zeros(m)
    )


def weights_of_arcs(game: IndependentCascade, told: Told, k: int) -> Unknown:
    """What is unknown of a cascade, of which paths of more than one arc are left out.

    Nothing is known of how many nodes a node activates, which is Poisson, but where its arcs lead.
    """
    m = game.m
    arcs = np.zeros((m, m))
    arcs[game.edges[:, 0], game.edges[:, 1]] = game.p
    some = arcs.any(axis=1)
    extra = arcs[some].sum(axis=1)
    sets = members(told, m).astype(np.float64)
    means = (sets * (1.0 - sets @ arcs.T / np.where(some, arcs.sum(axis=1), 1.0)))[:, some]
    others = 0.5 * (k - 1) / (m - 1)  # chance that a node stands before another
    merits = (1.0 - others) * np.eye(m)[:, some] - others * (arcs[some] / extra[:, None]).T
    seen = means @ extra
    return Unknown(extra, means, seen, np.ones(len(seen)), merits / m, np.full(m, 1.0 / m))


def information(unknown: Unknown) -> Floats:
    """Fisher information about the weights."""
    some = unknown.variance > 0.0  # the rewards of the others are known whatever weights are
    means = unknown.means[some]
    each = (unknown.times / np.where(some, unknown.variance, 1.0))[some]
    found: Floats = (means * each[:, None]).T @ means
    return found


def least_misplaced(unknown: Unknown, rng: np.random.Generator) -> float:
    """Half-L1 of shares that is left at best."""
    covariance = np.linalg.inv(information(unknown))
    merit = unknown.merits @ unknown.weights + unknown.known
    normal = rng.multivariate_normal(np.zeros(len(covariance)), covariance, DRAWS)
    errors = normal @ unknown.merits.T
    shares = errors / merit.sum() - np.outer(errors.sum(axis=1), merit) / merit.sum() ** 2
    return float(np.abs(shares).sum(axis=1).mean() / 2.0)


def main() -> None:
    """Print one line per kind of world and number of rewards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="+", choices=["cover", "cascade"])
    parser.add_argument("--worlds", dest="n", type=int, default=20, help="worlds of each kind")
    parser.add_argument("--base-seed", type=int, default=900)
    given = parser.parse_args()
    for name in given.worlds:
        world, seed = WORLDS[name], given.base_seed
        sizes, built = size_shares(world.k, None, None), settings(world, seed, given.n)
        for mark in MARKS:
            found = []
            for r, setting in enumerate(built, 1):
                rng, noise = (stream(seed, r, name) for name in ("learner", "environment"))
                told = show(setting, world.k, sizes, mark, rng, noise)
                if isinstance(setting.game, IndependentCascade):
                    unknown = weights_of_arcs(setting.game, told, world.k)
                else:
                    unknown = weights_of_items(covers(setting, seed, r), told, world.k)
                found.append(least_misplaced(unknown, rng))
            stderr = np.std(found, ddof=1) / np.sqrt(len(found))
            least = f"half-L1 at least {np.mean(found):.2%} ± {stderr:.2%}"
            print(f"{name:8s} {mark:6d}  {least}", flush=True)


if __name__ == "__main__":
    main()

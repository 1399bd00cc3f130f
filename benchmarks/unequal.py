"""What set cover leaves to learn for somebody who is not told that all items weigh the same.

    python -m benchmarks.unequal --worlds 30 --base-seed 4242

Whoever it is knows all else: that rewards are 0 or 1 with the weight of the items covered as their
mean, which arm covers which item, and so which arms cover none. Of the rewards of the sets that the
oracle is shown (:mod:`benchmarks.oracle`) the inverse of the Fisher information about the weights
is then the covariance that no estimate can do better than at all weights near these (the local
asymptotic minimax theorem of Hajek and Le Cam), and half-L1 of shares is at least what normal
errors of that covariance make it, as it is a norm of them.
"""

import argparse

import numpy as np

from benchmarks.deployments import MARKS, WORLDS, settings
from benchmarks.oracle import show
from benchmarks.posteriors import N_ITEMS, Told, _counted
from evenhand.lab.games import Setting
from evenhand.learners.sizes import size_shares
from evenhand.merit.reverse_reachable import _shares
from evenhand.randomness.streams import stream
from evenhand.typing import Bools, Floats

DRAWS = 400  # normal errors per world


def covers(setting: Setting, seed: int, replication: int) -> Bools:
    """Which arm covers which item (m, n), drawn as the game was."""
    rng, m = stream(seed, replication, "instance"), setting.game.m
    table = rng.random((m, N_ITEMS)) < rng.uniform(0.005, 0.05, (m, 1))
    if not np.allclose(setting.game.value(np.eye(m, dtype=np.bool_)), table.mean(axis=1)):
        raise AssertionError("games of set cover are drawn in another way")
    return table


def information(covered: Bools, weights: Floats, times: Floats) -> Floats:
    """Fisher information about items' weights of sets that cover some, each shown so often."""
    value = covered @ weights
    some = value > 0.0  # the rewards of the others are 0 whatever weights are
    each = times[some] / (value * (1.0 - value))[some]
    found: Floats = (covered[some] * each[:, None]).T @ covered[some].astype(np.float64)
    return found


def least_misplaced(table: Bools, told: Told, k: int, rng: np.random.Generator) -> float:
    """Half-L1 of shares that is left at best."""
    m = len(table)
    # items that the same arms cover can neither be told apart nor need be
    groups, counts = np.unique(table[:, table.any(axis=0)], axis=1, return_counts=True)
    weights = counts / N_ITEMS
    sets, successes, failures = _counted(told, m)
    covered = (sets.astype(np.int64) @ groups) > 0
    covariance = np.linalg.inv(information(covered, weights, successes + failures))
    gains = groups * _shares(m, k)[groups.sum(axis=0)]  # merits are linear in the weights
    merit = gains @ weights
    errors = rng.multivariate_normal(np.zeros(len(weights)), covariance, DRAWS) @ gains.T
    shares = errors / merit.sum() - np.outer(errors.sum(axis=1), merit) / merit.sum() ** 2
    return float(np.abs(shares).sum(axis=1).mean() / 2.0)


def main() -> None:
    """Print one line per number of rewards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=30)
    parser.add_argument("--base-seed", type=int, default=900)
    given = parser.parse_args()
    world, seed = WORLDS["cover"], given.base_seed
    sizes, built = size_shares(world.k, None, None), settings(world, seed, given.worlds)
    for mark in MARKS:
        found = []
        for r, setting in enumerate(built, 1):
            rng, noise = (stream(seed, r, name) for name in ("learner", "environment"))
            told = show(setting, world.k, sizes, mark, rng, noise)
            found.append(least_misplaced(covers(setting, seed, r), told, world.k, rng))
        stderr = np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"cover {mark:6d}  half-L1 at least {np.mean(found):.2%} ± {stderr:.2%}", flush=True)


if __name__ == "__main__":
    main()

"""How well anybody could do: an oracle that knows the model and the prior, and draws by the truth.

    python -m benchmarks.oracle shop cover --worlds 10 --base-seed 900

It shows sets as a learner does that had found the true merits: sizes and exploration are
EvenHand's. From their rewards it forms the posterior of the merits, whose mean it would share the
slots by, and whose 95 % ranges are what intervals can be compared with.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks import posteriors
from benchmarks.deployments import MARKS, WORLDS, World, line, mostly_full, settings
from benchmarks.posteriors import Told
from evenhand.exchange import SetPlan
from evenhand.games import IndependentCascade
from evenhand.lab.games import Setting
from evenhand.lab.readings import Reading, condense
from evenhand.learners import EvenHand
from evenhand.policy import clip_to_sum, fair_policy
from evenhand.randomness.streams import stream
from evenhand.typing import Floats

N_PRIOR = 40  # cascades of other seeds that stand for the prior
Conclude = Callable[[Told, int, int, np.random.Generator], Floats]


def show(
    setting: Setting,
    k: int,
    sizes: Floats,
    n: int,
    rng: np.random.Generator,
    noise: np.random.Generator,
) -> Told:
    """Draw n sets by the true merits and observe their rewards."""
    m, merit = setting.game.m, np.maximum(setting.known.merit, 0.0)
    scores = np.maximum(merit, 1e-9 * merit.max())
    parts, asked = [], 0
    while asked < n:
        rate = min(0.5, (1.0 + asked / m) ** (-1.0 / 3.0))
        policy = clip_to_sum(scores, rate * k / m, 1.0 - rate * (1.0 - k / m), k)
        count = min(max(m, asked // 4), n - asked)
        rows = SetPlan(len(parts), np.arange(m), k, policy, sizes, rate).draw(count, rng)
        rewards = setting.game.pull(rows.orders, rows.sizes, noise)
        parts.append(Told(rows.orders, rows.sizes[:, 0], rewards[:, 0]))
        asked += count
    return Told(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def conclusion(name: str, world: World) -> Conclude:
    """The posterior of a kind of world."""
    if name == "shop":
        return posteriors.shop
    if name == "cover":
        return posteriors.cover
    others: list[IndependentCascade] = []
    for one in settings(World(world.game | {"reference_sets": 1000}, world.k), 10**6, N_PRIOR):
        assert isinstance(one.game, IndependentCascade)
        others.append(one.game)
    prior = posteriors.prior_of(others, world.k)
    return lambda told, m, k, rng: posteriors.cascade(told, m, prior, rng)


def reading(
    setting: Setting,
    k: int,
    conclude: Conclude,
    sizes: Floats,
    mark: int,
    seed: int,
    replication: int,
) -> Reading:
    """What the oracle says after so many rewards."""
    rng, noise = (stream(seed, replication, name) for name in ("learner", "environment"))
    told = show(setting, k, sizes, mark, rng, noise)
    draws = conclude(told, setting.game.m, k, rng)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    merit, mean = np.maximum(setting.known.merit, 0.0), draws.mean(axis=0)
    return Reading(k, merit, mean, draws.std(axis=0), fair_policy(mean, k), low, high)


def main() -> None:
    """Print one line per kind of world and mark, as benchmarks.deployments does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="+", choices=list(WORLDS))
    parser.add_argument("--worlds", dest="n", type=int, default=6, help="worlds of each kind")
    parser.add_argument("--base-seed", type=int, default=900)
    parser.add_argument("--marks", type=float, nargs="+", default=MARKS)
    parser.add_argument("--full", type=float, help="share of full sets")
    given = parser.parse_args()
    for name in given.worlds:
        world, start = WORLDS[name], time.perf_counter()
        sizes = EvenHand(world.k, world.k, seed=1).sizes
        if given.full is not None:
            sizes = mostly_full(world.k, given.full)
        conclude = conclusion(name, world)
        built = settings(world, given.base_seed, given.n)
        for mark in map(round, given.marks):
            found = [
                reading(s, world.k, conclude, sizes, mark, given.base_seed, r)
                for r, s in enumerate(built, 1)
            ]
            seconds = time.perf_counter() - start
            print(
                f"{name:8s} oracle    {mark:6d}  {line(condense(found))}  ({seconds:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()

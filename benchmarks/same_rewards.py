"""What exact posteriors make of the rewards that EvenHand was told, beside what it makes of them.

    python -m benchmarks.same_rewards cover --worlds 20 --base-seed 777 --marks 5e3

An oracle that draws by the true merits sees more of the best arms than any learner can. Here it
is told what the learner was told: what is left is what the learner makes of it.
"""

import argparse

import numpy as np

from benchmarks.deployments import MARKS, WORLDS, World, line, settings
from benchmarks.oracle import concluded, oracles
from benchmarks.told import Told
from evenhand.lab.games import Setting
from evenhand.lab.readings import Reading, condense
from evenhand.learners import EvenHand
from evenhand.randomness.streams import stream


def readings(
    name: str,
    world: World,
    setting: Setting,
    full: float | None,
    mark: int,
    seed: int,
    replication: int,
) -> dict[str, Reading]:
    """What EvenHand says after so many rewards, and what others do who were told the same."""
    game, k = setting.game, world.k
    learner = EvenHand(game.m, k, full=full, seed=stream(seed, replication, "learner"))
    noise = stream(seed, replication, "environment")
    batches, rewards = [], []
    while learner.queries < mark:
        batch = learner.ask(mark - learner.queries)
        given = game.pull(batch.orders, batch.sizes, noise)
        learner.tell(batch, given)
        batches.append(batch)
        rewards.append(given[:, 0])
    orders = np.concatenate([batch.orders for batch in batches])
    sizes = np.concatenate([batch.sizes[:, 0] for batch in batches])
    told, said = Told(orders, sizes, np.concatenate(rewards)), learner.estimate()
    assert said.stderr is not None
    assert said.intervals is not None
    truth, shares = np.maximum(setting.known.merit, 0.0), learner.marginals
    found = {"EvenHand": Reading(k, truth, said.merit, said.stderr, shares, *said.intervals.T)}
    for called, conclude in oracles(name, world).items():
        rng = stream(seed, replication, "reference")
        found[called] = concluded(setting, k, conclude(told, game.m, k, rng))
    return found


def main() -> None:
    """Print one line per kind of world, mark and who concludes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="+", choices=WORLDS)
    parser.add_argument("--worlds", dest="n", type=int, default=6, help="worlds of each kind")
    parser.add_argument("--base-seed", type=int, default=900)
    parser.add_argument("--marks", type=float, nargs="+", default=MARKS)
    parser.add_argument("--full", type=float, help="share of full sets")
    given = parser.parse_args()
    for name in given.worlds:
        world = WORLDS[name]
        built = settings(world, given.base_seed, given.n)
        for mark in map(round, given.marks):
            found = [
                readings(name, world, setting, given.full, mark, given.base_seed, r)
                for r, setting in enumerate(built, 1)
            ]
            for called in found[0]:
                shown = line(condense([one[called] for one in found]))
                print(f"{name:8s} {called:12s} {mark:6d}  {shown}", flush=True)


if __name__ == "__main__":
    main()

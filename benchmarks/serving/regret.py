"""Fairness regret through the service against the library's: arguments are seeds and rewards.

Four clients in closed loops ask for a row and tell its reward. A row's regret is the distance of
its plan's marginals from what is due; through the service, plans are some rows behind. Prints a
line per seed; minutes each.
"""

import statistics
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from benchmarks.bench_service import ARMS, K, served
from benchmarks.serving.clients import Caller
from evenhand import fair_policy, kshapley
from evenhand.exchange import Plan
from evenhand.games import NoisyOr, synthetic
from evenhand.learners import EvenHand
from evenhand.service.database import database
from evenhand.typing import Floats

CLIENTS = 4
FULL = 0.95


def through_the_service(
    port: int, key: str, file: Path, game: NoisyOr, seed: int, rewards: int, due: Floats
) -> tuple[float, int]:
    """Regret of the rows told, and how many epochs they were of."""
    name, arms = f"regret-{seed}", [str(i) for i in range(ARMS)]
    new = {"name": name, "arms": arms, "k": K, "seed": seed}
    Caller(port, key).post("/v1/experiments", new, status=201)
    left, lock = iter(range(rewards)), threading.Lock()

    def run(i: int) -> None:
        caller, rng = Caller(port, key), np.random.default_rng([seed, i])
        while True:
            with lock:
                if next(left, None) is None:
                    break
            row = caller.post(f"/v1/experiments/{name}/ask", {"n": 1})["decisions"][0]
            while not row["learns"]:
                row = caller.post(f"/v1/experiments/{name}/ask", {"n": 1})["decisions"][0]
            shown = np.array([[int(arm) for arm in row["arms"]]])
            reward = game.pull(shown, np.array([[shown.size]]), rng)[0, 0]
            told = [{"id": row["id"], "reward": float(reward)}]
            caller.post(f"/v1/experiments/{name}/tell", {"tells": told})
        caller.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    c = database(str(file)).connect()
    found = c.execute(
        "select e.plan, count(*) from epochs e join experiments x on x.id=e.exp "
        "join tells t on t.exp=e.exp and t.epoch=e.number where x.name=? group by e.number",
        (name,),
    )
    c.close()
    Caller(port, key).post(f"/v1/experiments/{name}/archive", None)
    assert sum(n for _, n in found) == rewards
    away = sum(n * np.abs(Plan.from_bytes(plan).marginals - due).sum() for plan, n in found)
    return float(away), len(found)


def in_the_library(game: NoisyOr, seed: int, rewards: int, due: Floats) -> float:
    """Regret of as many rows asked and told in one process, plan after plan."""
    learner, rng = EvenHand(ARMS, K, full=FULL, seed=seed), np.random.default_rng([seed, CLIENTS])
    total, left = 0.0, rewards
    while left > 0:
        batch = learner.ask()
        total += min(left, len(batch.orders)) * float(np.abs(learner.marginals - due).sum())
        left -= len(batch.orders)
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return total


def main(seeds: int, rewards: int) -> None:
    """Print the regrets of each seed, and their ratio over all."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), "evenhand.db") as running:
        port, key, _ = running
        for seed in range(1, seeds + 1):
            game = synthetic(ARMS, np.random.default_rng(seed))
            due = fair_policy(kshapley(game, K), K)
            file = Path(folder) / "evenhand.db"
            away, epochs = through_the_service(port, key, file, game, seed, rewards, due)
            ours.append(away)
            theirs.append(in_the_library(game, seed, rewards, due))
            ratio = statistics.mean(ours) / statistics.mean(theirs)
            print(
                f"seed {seed}: {ours[-1]:.0f} in {epochs} epochs, library {theirs[-1]:.0f}, "
                f"ratio {ours[-1] / theirs[-1]:.3f}, of the means so far {ratio:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(float(sys.argv[2])))

"""One cell: one game, learner, horizon and replication, and everything that determines it."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.exchange.batch import Batch
from evenhand.lab.catalogue import Place, build_game, build_learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.policy import fair_policy
from evenhand.randomness.streams import stream
from evenhand.simulation.loop import simulate

# raised when the same seed would give other numbers, rounding aside: 1 plus, by the kind of game,
# by that of the learner, and by that of a learner whose sets are few enough to be listed, how often
# that was so
GAME_STREAMS = {"facebook": 1, "facebook-stand-in": 1}
LEARNER_STREAMS = {
    "iw-ksvfair": 1,
    "iw-ksvfair-exact": 1,
    "no-mix": 2,  # its weights are so large that rounding is not aside
    "no-iw": 1,
    "muras": 1,
    "urs": 1,
    "even-hand": 1,
}
FEW_SETS = ("synthetic", "hard-pair", "drawn")
LISTED_STREAMS = {
    "iw-ksvfair": 1,
    "iw-ksvfair-exact": 1,
    "no-mix": 1,
    "no-iw": 1,
    "even-hand": 1,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """The unit of work. Equal cells of different experiments are run once."""

    game: dict[str, Any]
    k: int
    learner: dict[str, Any]
    horizon: int
    replication: int
    seed: int

    @property
    def key(self) -> str:
        """All that determines the result, as canonical JSON."""
        parts = {
            "game": self.game,
            "k": self.k,
            "learner": self.learner,
            "horizon": self.horizon,
            "replication": self.replication,
            "seed": self.seed,
            "streams": _streams(self.game["kind"], self.learner["kind"]),
        }
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    @property
    def id(self) -> str:
        """Name of the cell's file: a hash of its key."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:20]


def _streams(game: str, learner: str) -> int:
    listed = LISTED_STREAMS.get(learner, 0) if game in FEW_SETS else 0
    return 1 + GAME_STREAMS.get(game, 0) + LEARNER_STREAMS.get(learner, 0) + listed


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run a cell and return its record: numbers and lists of numbers."""
    place = Place(cell.k, cell.horizon, cell.replication, cell.seed)
    game, merit, stderr = build_game(cell.game, place)
    target = fair_policy(merit, cell.k)
    uncapped = cell.k * merit / merit.sum()
    rng = stream(cell.seed, cell.replication, "learner")
    learner = build_learner(cell.learner, game.m, cell.k, cell.horizon, rng)
    other = _Total(FairnessLoss(uncapped, cell.k))
    run = simulate(
        learner,
        game,
        cell.horizon,
        target=target,
        seed=stream(cell.seed, cell.replication, "environment"),
        watch=other.add if uncapped.max() > 1.0 else None,
    )
    regret = float(run.regret[-1])
    return {
        "m": game.m,
        "regret": regret,
        "regret_uncapped": other.total if uncapped.max() > 1.0 else regret,
        "largest_due": float(uncapped.max()),
        "alignment": alignment(merit, run.selections),
        "queries": run.queries,
        "checkpoints": run.checkpoints.tolist(),
        "curve": run.regret.tolist(),
        "merit": merit.tolist(),
        "merit_stderr": stderr.tolist(),
        "estimate": run.merit.tolist(),
        "marginals": run.marginals.tolist(),
        "selections": run.selections.tolist(),
        "reward": run.reward,
        "seconds": run.seconds,
    }


class _Total:
    """Sum of a loss over all queries of a run."""

    def __init__(self, loss: FairnessLoss) -> None:
        self.loss, self.total = loss, 0.0

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        loss = self.loss(batch)
        if isinstance(loss, float):
            self.total += loss * batch.queries
        else:
            self.total += float((loss * batch.times[:, None]).sum())


def same_numbers(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records agree in all but the time they took."""
    return all(
        np.array_equal(one[name], other[name], equal_nan=True)
        for name in one.keys() | other.keys()
        if name != "seconds"
    )

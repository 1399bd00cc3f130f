"""One cell: one game, learner, horizon and replication, and everything that determines it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.exchange.batch import Batch
from evenhand.lab.games import build_game, trajectory
from evenhand.lab.learners import KINDS, build_learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.policy import fair_policy
from evenhand.randomness.streams import stream
from evenhand.simulation.loop import simulate

# One release changed the random numbers of these learners on these games only, which no version of
# a class can say. The list is closed: a new change bumps `trajectory` of the learner or the game.
MOVED_GAMES = ("synthetic", "hard-pair", "drawn")
MOVED_LEARNERS = ("iw-ksvfair", "iw-ksvfair-exact", "no-mix", "no-iw", "even-hand")


@dataclass(frozen=True, slots=True, repr=False)
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
        parts = asdict(self) | {"streams": _version(self.game["kind"], self.learner["kind"])}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    @property
    def id(self) -> str:
        """Name of the cell's file: a hash of its key."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:20]

    def __repr__(self) -> str:
        return (
            f"Cell({in_words(self.learner)} on {in_words(self.game)}, k={self.k}, "
            f"horizon={self.horizon}, replication={self.replication}, seed={self.seed})"
        )


def in_words(config: dict[str, Any]) -> str:
    """Describe a game or a learner in few words."""
    options = (f"{name}={value}" for name, value in config.items() if name != "kind")
    return " ".join([config["kind"], *options])


def _version(game: str, learner: str) -> int:
    """Trajectory version of a game and a learner together; both count from 1."""
    moved = game in MOVED_GAMES and learner in MOVED_LEARNERS
    return trajectory(game) + KINDS[learner].trajectory + moved - 1


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run a cell and return its record: numbers and lists of numbers."""
    game, known = build_game(
        cell.game,
        cell.k,
        horizon=cell.horizon,
        replication=cell.replication,
        seed=cell.seed,
    )
    merit = np.maximum(known.merit, 0.0)  # harm, or the noise of an estimate, counts as 0
    uncapped = cell.k * merit / merit.sum()
    loss, regret_uncapped = FairnessLoss(uncapped, cell.k), 0.0

    def add(batch: Batch) -> None:
        nonlocal regret_uncapped
        regret_uncapped += loss.total(batch)

    run = simulate(
        build_learner(
            cell.learner,
            game.m,
            cell.k,
            cell.horizon,
            stream(cell.seed, cell.replication, "learner"),
        ),
        game,
        cell.horizon,
        target=fair_policy(merit, cell.k),
        seed=stream(cell.seed, cell.replication, "environment"),
        checkpoints=[cell.horizon],
        watch=add if uncapped.max() > 1.0 else None,
    )
    regret = float(run.regret[-1])
    return {
        "m": game.m,
        "regret": regret,
        "regret_uncapped": regret_uncapped if uncapped.max() > 1.0 else regret,
        "largest_due": float(uncapped.max()),
        "alignment": alignment(merit, run.selections),
        "queries": run.queries,
        "merit": merit.tolist(),
        "selections": run.selections.tolist(),
        "reward": run.reward,
        "seconds": run.seconds,
    }

"""One cell: one game, learner, horizon and replication, and everything that determines it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.exchange import SetPlan
from evenhand.exchange.batch import Batch
from evenhand.lab.games import Setting, build, trajectory
from evenhand.lab.learners import KINDS, build_learner
from evenhand.lab.rehearsals import rehearse
from evenhand.lab.worlds import Rehearsal
from evenhand.learners import EvenHand, Learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.policy import fair_policy
from evenhand.randomness.streams import stream
from evenhand.simulation.loop import simulate
from evenhand.typing import Floats

# One release changed the random numbers of these learners on these games only, which no version of
# a class can say. The list is closed: a new change bumps `trajectory` of the learner or the game.
MOVED_GAMES = ("synthetic", "hard-pair", "drawn")
MOVED_LEARNERS = ("iw-ksvfair", "iw-ksvfair-exact", "no-mix", "no-iw", "even-hand")
N_FAIR = 200_000  # sets that say what the fair policy earns
MAX_KEPT_ARMS = 100  # with more, what a learner says of each arm is not kept, to save space


@dataclass(frozen=True, slots=True, repr=False)
class Cell:
    """The unit of work. Equal cells of different experiments are run once.

    ``horizon`` counts rewards told; each is told ``late`` queries after it was asked.
    """

    game: dict[str, Any]
    k: int
    learner: dict[str, Any]
    horizon: int
    replication: int
    seed: int
    late: int = 0

    @property
    def key(self) -> str:
        """All that determines the result, as canonical JSON."""
        parts = asdict(self) | {"streams": _version(self.game["kind"], self.learner["kind"])}
        if not self.late:  # as cells were named before there were late rewards
            del parts["late"]
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    @property
    def id(self) -> str:
        """Name of the cell's file: a hash of its key."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:20]

    def __repr__(self) -> str:
        late = f", late={self.late}" if self.late else ""
        return (
            f"Cell({in_words(self.learner)} on {in_words(self.game)}, k={self.k}, "
            f"horizon={self.horizon}, replication={self.replication}, seed={self.seed}{late})"
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
    setting = build(
        cell.game,
        cell.k,
        horizon=cell.horizon,
        replication=cell.replication,
        seed=cell.seed,
    )
    rng = stream(cell.seed, cell.replication, "learner")
    noise = stream(cell.seed, cell.replication, "environment")
    if isinstance(setting, Rehearsal):
        made = cell.learner, setting.m, cell.k, cell.horizon, rng, setting.world
        learner, in_full = build_learner(*made), cell.replication == 1
        return rehearse(setting, learner, cell.horizon, cell.late, noise, in_full)
    learner = build_learner(cell.learner, setting.game.m, cell.k, cell.horizon, rng)
    record = play(setting, learner, cell.horizon, cell.late, noise)
    reference = stream(cell.seed, cell.replication, "reference")
    return record | {"fair_reward": fair_reward(setting, learner, cell.horizon, reference)}


def play(
    setting: Setting, learner: Learner, horizon: int, late: int, noise: np.random.Generator
) -> dict[str, Any]:
    """Let a learner be told so many rewards of a game, and return the record of it."""
    game, k = setting.game, learner.k
    merit = np.maximum(setting.known.merit, 0.0)  # harm, or the noise of an estimate, counts as 0
    uncapped = k * merit / merit.sum()
    loss, regret_uncapped = FairnessLoss(uncapped, k), 0.0
    capped = learner.terms is None and uncapped.max() > 1.0

    def add(batch: Batch) -> None:
        nonlocal regret_uncapped
        regret_uncapped += loss.total(batch)

    run = simulate(
        learner,
        game,
        horizon + late,
        target=_due(merit, learner),
        seed=noise,
        late=late,
        checkpoints=[horizon + late],
        watch=add if capped else None,
    )
    regret = float(run.regret[-1])
    return {
        "m": game.m,
        "regret": regret,
        "regret_uncapped": regret_uncapped if capped else regret,
        "largest_due": float(uncapped.max()),
        "alignment": alignment(merit, run.selections),
        "queries": run.queries,
        "merit": setting.known.merit.tolist(),
        "selections": run.selections.tolist(),
        "reward": run.reward,
        "seconds": run.seconds,
        **_said(learner),
    }


def fair_reward(
    setting: Setting, learner: Learner, horizon: int, rng: np.random.Generator
) -> float | None:
    """Mean reward of sets drawn by the true fair policy, with the learner's sizes if it has any."""
    if not isinstance(learner, EvenHand):
        return None
    m, k = learner.m, learner.k
    policy = _due(np.maximum(setting.known.merit, 0.0), learner)
    fair = SetPlan(0, np.arange(m), k, policy, learner.sizes, np.zeros(k))
    rows = fair.draw(min(horizon, N_FAIR), rng)
    return float(setting.game.pull(rows.orders, rows.sizes, rng).mean())


def _due(merit: Floats, learner: Learner) -> Floats:
    """What arms of these merits are due, on the learner's terms."""
    if learner.m != len(merit):
        raise ValueError(
            "caps must be above 0 in experiments: a cap of 0 takes an arm out of the game, and the "
            "others' merits are then not those of the game; leave the arm out of the game"
        )
    return fair_policy(merit, learner.k, learner.terms)


def _said(learner: Learner) -> dict[str, list[float]]:
    """What a learner says of the arms, arm by arm, if it claims errors and the arms are few."""
    said = learner.estimate()
    if said.intervals is None or learner.m > MAX_KEPT_ARMS:
        return {}
    vectors = {
        "estimate": said.merit,
        "stderr": said.stderr,
        "marginals": learner.marginals,
        "low": said.intervals[:, 0],
        "high": said.intervals[:, 1],
    }
    return {name: vector.tolist() for name, vector in vectors.items()}

"""What is kept of a learner's run in a world that changes."""

import json
from typing import Any

import numpy as np

from evenhand.lab.worlds import Rehearsal
from evenhand.learners import Learner
from evenhand.simulation.loop import simulate
from evenhand.simulation.record import evenly_spaced

MAX_KEPT_ARMS = 100  # with more, what each arm was due and given is not kept, to save space


def rehearse(
    rehearsal: Rehearsal,
    learner: Learner,
    horizon: int,
    late: int,
    noise: np.random.Generator,
    in_full: bool,
) -> dict[str, Any]:
    """Let a learner be told so many rewards of a world, and return the record of it.

    In full, it holds what each arm was due and given over time.
    """
    total = horizon + late
    run = simulate(
        learner,
        rehearsal.world,
        total,
        target=rehearsal.due,
        seed=noise,
        late=late,
        checkpoints=evenly_spaced(total),
    )
    record: dict[str, Any] = {
        "m": rehearsal.world.m,
        "regret": float(run.regret[-1]),
        "regret_uncapped": float(run.regret[-1]),
        "largest_due": float(run.target.max()),
        "alignment": run.alignment,
        "queries": run.queries,
        "merit": run.target.tolist(),
        "selections": run.selections.tolist(),
        "reward": run.reward,
        "seconds": run.seconds,
        "marks": run.checkpoints.tolist(),
        "regret_curve": run.regret.tolist(),
        "changes": json.dumps([list(change) for change in run.changes]),
        "noticed": json.dumps(noticed(learner)),
    }
    if in_full and run.due_curve is not None and rehearsal.world.m <= MAX_KEPT_ARMS:
        record["due"] = run.due_curve.reshape(-1).tolist()
        record["given"] = run.given_curve.reshape(-1).tolist()  # type: ignore[union-attr]
    return record


def noticed(learner: Learner) -> list[list[Any]]:
    """Changes that the learner says it noticed: each as a list, its time first."""
    found = getattr(learner.estimate(), "changes", None) or ()
    return [[getattr(x, "tolist", lambda x=x: x)() for x in change] for change in found]

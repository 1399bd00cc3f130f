"""Compiling in advance what a learner may need later."""

from typing import TYPE_CHECKING

import numpy as np

from evenhand.designs import ConditionalPoisson
from evenhand.designs.warming import warm as warm_design
from evenhand.exchange import Batch
from evenhand.learners.arguments import arguments
from evenhand.policy import fill
from evenhand.typing import Floats

if TYPE_CHECKING:
    from evenhand.learners.learner import Learner


def warm(learner: "Learner") -> None:
    """Let a throw-away learner with the same options do all that there is to do."""
    kind = type(learner)
    given = arguments(kind, learner._config())
    for design in {ConditionalPoisson, *(x for x in given.values() if isinstance(x, type))}:
        warm_design(design)
    fill(np.array([3.0, 2.0, 1.0]), 1)  # a late phase may be the first to need it
    twin, batches = kind(**given, seed=0), list[Batch]()
    while not twin.done and len(batches) < 8:  # beyond each arm's first turn
        batches.append(twin.ask())
        if len(batches) > 2:
            twin.tell(batches[-1], _half_missing(twin, batches[-1]))
    twin = kind.restore(twin.snapshot())
    for batch in batches[:2]:  # late: drawn again, and told row by row
        for row in (batch.rows([i]) for i in range(min(2, batch.learns * len(batch.orders)))):
            twin.tell(row, _half_missing(twin, row))
    twin.estimate()


def _half_missing(learner: "Learner", batch: Batch) -> Floats:
    """Rewards of a batch of which every other one is missing."""
    rewards = np.full(batch.sizes.size, np.mean(learner.rewards))
    rewards[1::2] = np.nan
    return rewards

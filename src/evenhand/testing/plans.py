"""What holds for learners that publish plans; all checks do nothing for other learners."""

from typing import Any

import numpy as np

from evenhand.exchange import Plan, shelf
from evenhand.learners import ExchangeableLearner, Learner
from evenhand.testing.playing import (
    HORIZON,
    PHASE,
    M,
    Make,
    assert_same,
    made_learner,
    play,
    rewards_of,
    twin_of,
)


def plans_survive_as_bytes(make: Make) -> None:
    """A plan goes to bytes and back, and draws the same rows from the same generator."""
    learner = made_learner(make)
    if not isinstance(learner, ExchangeableLearner):
        return
    rng = np.random.default_rng(7)
    for until in range(PHASE, HORIZON, PHASE):
        play(learner, PHASE, until, rng)
        plan = learner.plan
        assert plan is not None, "plan must be there after the first ask"
        twin = Plan.from_bytes(plan.to_bytes())
        for n in (1, 40):
            one, other = (p.draw(n, np.random.default_rng(until)) for p in (plan, twin))
            for name, mine, theirs in zip(one._fields, one, other, strict=True):
                assert np.array_equal(mine, theirs), (
                    f"a plan read from bytes must draw the same rows, got other {name} for plan "
                    f"{plan.number}"
                )


def evidence_can_be_merged(make: Make) -> None:
    """Evidence absorbed in two parts and merged is evidence absorbed one after the other.

    Does nothing for learners without evidence either.
    """
    learner = made_learner(make)
    if not isinstance(learner, ExchangeableLearner) or learner.evidence is None:
        return
    rng = np.random.default_rng(3)
    play(learner, PHASE, 5 * PHASE, rng)
    twin: Any = twin_of(learner)
    fresh: Any = made_learner(make)
    assert learner.plan is not None, "plan must be there after the first ask"
    rows = learner.plan.draw(60, rng)
    rewards = rng.random(rows.sizes.shape)
    # evidence that depends on a forecast makes the one it can be merged with
    branch = getattr(twin.evidence, "branch", lambda: fresh.evidence)()
    for part, evidence in ((slice(0, 25), twin.evidence), (slice(25, None), branch)):
        evidence.absorb(rows.pick(part), rewards[part])
        learner.evidence.absorb(rows.pick(part), rewards[part])
    twin.evidence.merge(branch)
    merged = twin.snapshot()["arrays"]
    for name, array in learner.snapshot()["arrays"].items():
        assert np.allclose(merged[name], array, rtol=1e-12, atol=1e-12), (
            f"merged evidence must be that of all rewards, but {name} differs"
        )


def late_rows_are_drawn_again(make: Make) -> None:
    """Rows that have left memory are drawn again when they are told, to the same bits."""
    learner = made_learner(make)
    if not isinstance(learner, ExchangeableLearner):
        return
    twin = twin_of(learner)
    cached = shelf.CACHED_ROWS
    for one, rows in ((learner, cached), (twin, 0)):
        shelf.CACHED_ROWS = rows
        try:
            _tell_late(one)
        finally:
            shelf.CACHED_ROWS = cached
    assert_same(twin, learner, "rows drawn again when told late must be the same")


def _tell_late(learner: Learner) -> None:
    """Ask four batches, and tell them newest first."""
    rng, batches = np.random.default_rng(5), []
    while learner.queries < 4 * PHASE:
        batches.append(learner.ask(PHASE))
    for batch in reversed(batches):
        learner.tell(batch, rewards_of(batch, M, rng))

"""What holds for learners that publish plans; all checks do nothing for other learners."""

import numpy as np

from evenhand.exchange import Plan, shelf
from evenhand.learners import ExchangeableLearner
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
    play(learner, PHASE, HORIZON // 3, rng)
    twin = twin_of(learner)
    assert isinstance(twin, ExchangeableLearner)
    whole, parts, plan = learner.evidence, twin.evidence, learner.plan
    assert plan is not None
    assert parts is not None
    rows = plan.draw(60, rng)
    rewards = rng.random(rows.sizes.shape)
    other = parts.branch() if hasattr(parts, "branch") else type(parts)(M)  # type: ignore[call-arg]
    for evidence, part in ((parts, slice(0, 25)), (other, slice(25, None))):
        evidence.absorb(rows.pick(part), rewards[part])
        whole.absorb(rows.pick(part), rewards[part])
    parts.merge(other)
    assert np.allclose(learner.merit, twin.merit, rtol=1e-9, atol=1e-12, equal_nan=True), (
        f"merged evidence must give the merits of all rewards, got {twin.merit.tolist()} "
        f"instead of {learner.merit.tolist()}"
    )


def late_rows_are_drawn_again(make: Make) -> None:
    """Rows that have left memory are drawn again when they are told, to the same bits."""
    learner = made_learner(make)
    if not isinstance(learner, ExchangeableLearner):
        return
    twin, rng = twin_of(learner), np.random.default_rng(5)
    cached = shelf.CACHED_ROWS
    for one, rows in ((learner, cached), (twin, 0)):
        shelf.CACHED_ROWS = rows
        try:
            _tell_late(one)
        finally:
            shelf.CACHED_ROWS = cached
    assert_same(twin, learner, "rows drawn again when told late must be the same")
    play(learner, PHASE, HORIZON // 2, rng)


def _tell_late(learner: ExchangeableLearner[Plan]) -> None:
    """Ask four batches, and tell them newest first."""
    rng, batches = np.random.default_rng(5), []
    while learner.queries < 4 * PHASE:
        batches.append(learner.ask(PHASE))
    for batch in reversed(batches):
        learner.tell(batch, rewards_of(batch, M, rng))

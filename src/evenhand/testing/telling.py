"""What holds when a learner is told rewards."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.exchange import AlreadyTold, Batch, Expired
from evenhand.learners import Learner
from evenhand.testing.playing import (
    PHASE,
    K,
    M,
    Make,
    assert_same,
    digest,
    half,
    learning_batch,
    made_learner,
    rewards_of,
    twin_of,
)
from evenhand.testing.running import raises


def rows_are_told_once(make: Make) -> None:
    """Telling a row again raises ``AlreadyTold``, and changes nothing, other rows included."""
    learner = made_learner(make)
    batch = learning_batch(learner)
    if batch is None:
        return
    learner.tell(batch.rows([0]), half(batch)[:1])
    before = digest(learner)
    with raises(AlreadyTold, when="telling row 0 again"):
        learner.tell(batch, half(batch))
    assert digest(learner) == before, "a refused tell must change nothing"


def rewards_may_come_late_in_any_order_and_parts(make: Make) -> None:
    """Rewards told at the end, row by row, backwards, give the merits of rewards told in order."""
    late = made_learner(make)
    ready = twin_of(late)  # takes the same receipts
    told, rng = [], np.random.default_rng(0)
    while late.queries < 200:
        batch = late.ask(30)
        ready.ask(30)
        told.append((batch, rewards_of(batch, M, rng)))
    for batch, rewards in reversed(told):
        for row in reversed(range(len(batch.orders))):
            late.tell(batch.rows([row]), rewards[[row]])
    for batch, rewards in told:
        ready.tell(batch, rewards)
    assert np.allclose(late.merit, ready.merit, rtol=1e-12, atol=1e-12, equal_nan=True), (
        f"merits must not depend on the order of rewards, got {late.merit.tolist()} for late ones, "
        f"and {ready.merit.tolist()} for the same in order"
    )
    assert late.ledger.n_open == 0, f"all rows were told, got {late.ledger.n_open} still open"


def rewards_are_taken_in_every_form(make: Make) -> None:
    """A matrix (n, s), all rewards in one row, and a number for a single query are the same."""
    one = made_learner(make)
    other, single = twin_of(one), twin_of(one)
    batch = learning_batch(one)
    if batch is None:
        return
    rewards = rewards_of(batch, M, np.random.default_rng(1))
    for learner in (other, single):
        learner.ask(PHASE)
    one.tell(batch, rewards)
    other.tell(batch, rewards.reshape(-1).tolist())
    assert_same(one, other, "rewards in the order of batch.sets() must do as a matrix")
    if batch.sizes.shape[1] == 1:
        for row in range(len(batch.orders)):
            single.tell(batch.rows([row]), float(rewards[row, 0]))
        same = np.allclose(one.merit, single.merit, rtol=1e-9, equal_nan=True)
        assert same, "single rewards told as numbers must do as a matrix"


def receipts_survive_json(make: Make) -> None:
    """A batch goes through JSON and can still be told."""
    learner = made_learner(make)
    batch = learner.ask(PHASE)
    again = Batch.from_dict(json.loads(json.dumps(batch.to_dict())))
    assert again.to_dict() == batch.to_dict(), "a batch read from JSON must be the same"
    learner.tell(again, half(batch))


def only_owner_and_index_are_trusted(make: Make) -> None:
    """Changed arms, sizes and times in a receipt have no effect; wrong row numbers are refused."""
    learner = made_learner(make)
    twin = twin_of(learner)
    batch = learning_batch(learner)
    if batch is None:
        return
    twin.ask(PHASE)
    (n, s), before = batch.sizes.shape, digest(learner)
    for index, what in [
        (np.full(n, learner.ledger.next + 7), "a row that was never asked"),
        (np.append(batch.index, batch.index[0]), "a row twice"),
        (np.full(n, -1), "row -1"),
    ]:
        with raises(ValueError, when=f"a receipt for {what}"):
            learner.tell(replace(batch, index=index), np.full((len(index), s), 0.5))
        assert digest(learner) == before, f"a refused receipt for {what} must change nothing"
    changed = replace(
        batch,
        orders=np.zeros_like(batch.orders),
        sizes=np.ones_like(batch.sizes),
        times=np.full(n, 9),
        exposure=None,
    )
    learner.tell(changed, half(batch))
    twin.tell(batch, half(batch))
    assert_same(learner, twin, "arms, sizes and times changed in a receipt must have no effect")


def missing_rewards_are_skipped(make: Make) -> None:
    """Rows whose rewards are all nan are closed for good, and teach nothing."""
    learner = made_learner(make)
    batch = learning_batch(learner)
    if batch is None:
        return
    before = digest(learner)
    learner.tell(batch, np.full(batch.sizes.shape, np.nan))
    after = digest(learner)
    changed = [name for name in after if after[name] != before.get(name)]
    learnt = [name for name in changed if not name.startswith(("ledger", "plans"))]
    assert not learnt, f"missing rewards must teach nothing, but {', '.join(learnt)} changed"
    assert learner.ledger.n_open == 0, f"{learner.ledger.n_open} rows told as missing are open"
    with raises(AlreadyTold, when="telling a row that was told as missing"):
        learner.tell(batch, half(batch))


def what_does_not_belong_is_refused(make: Make) -> None:
    """Invalid rewards, other learners' batches and objects that are no batch are refused."""
    learner, other = made_learner(make), made_learner(make)
    batch, foreign = learner.ask(PHASE), other.ask(PHASE)
    good, before = half(batch), digest(learner)
    place = tuple(np.argwhere(batch.sizes > 0)[0])

    def one_of(value: float) -> Any:
        rewards = good.copy()
        rewards[place] = value
        return rewards

    for wrong, rewards, what in [
        (batch, one_of(1.3), "a reward of 1.3"),
        (batch, one_of(-0.1), "a reward of -0.1"),
        (batch, one_of(np.inf), "an infinite reward"),
        (batch, good[:, :0], "too few rewards"),
        (batch, "high", "rewards that are text"),
        (batch, [["0.5"] * batch.sizes.shape[1]] * len(good), "numbers as text"),
        (batch, [[0.5], [0.5, 0.5]], "ragged rewards"),
        (foreign, half(foreign), "a batch of another learner"),
        ("batch", good, "a batch that is none"),
    ]:
        with raises(ValueError, TypeError, when=f"tell with {what}"):
            learner.tell(wrong, rewards)  # type: ignore[arg-type]
        assert digest(learner) == before, f"tell with {what} must change nothing"
    learner.tell(batch.rows([]), np.empty((0, batch.sizes.shape[1])))
    assert digest(learner) == before, "telling no rows must change nothing"


def rows_expire(make: Make) -> None:
    """Rows older than the ledger keeps raise ``Expired``, and change nothing."""
    learner = made_learner(make)
    batch = learning_batch(learner)
    if batch is None:
        return
    learner.ledger.keep = 2
    while learner.ledger.first <= batch.index[0]:
        if not learner.ask(PHASE).learns:
            return
    before = digest(learner)
    with raises(Expired, when="telling an expired row"):
        learner.tell(batch.rows([0]), half(batch)[:1])
    assert digest(learner) == before, "a refused tell must change nothing"


def threads_leave_the_books_in_order(make: Make) -> None:
    """Threads that ask and tell at the same time get different rows, all counted."""
    learner = made_learner(make)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda seed: _work(learner, seed), range(2)))
    finally:
        sys.setswitchinterval(interval)
    batches = [batch for part in parts for batch in part]
    rows = np.sort(np.concatenate([batch.index for batch in batches]))
    assert np.array_equal(rows, np.arange(len(rows))), "each row must go to one thread alone"
    asked = sum(batch.queries for batch in batches)
    assert learner.queries == asked, f"{asked} queries were asked, got {learner.queries} counted"
    assert learner.ledger.n_open == 0, f"all rows were told, got {learner.ledger.n_open} open"
    assert_same(twin_of(learner), learner, "a learner that threads used must be restored the same")


def _work(learner: Learner, seed: int) -> list[Batch]:
    rng, batches = np.random.default_rng(seed), []
    for _ in range(12):
        batches.append(learner.ask(2 * K))
        learner.tell(batches[-1], rewards_of(batches[-1], M, rng))
    return batches


def rewards_matter(make: Make) -> None:
    """Other rewards lead to another state. Does nothing where none are wanted."""
    one = made_learner(make)
    other = twin_of(one)
    batch = learning_batch(one)
    if batch is None:
        return
    other.ask(PHASE)
    one.tell(batch, np.zeros(batch.sizes.shape))
    other.tell(batch, np.ones(batch.sizes.shape))
    assert digest(one) != digest(other), "rewards of 0 and of 1 must not be the same to a learner"

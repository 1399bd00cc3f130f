"""After ``warm`` a learner compiles nothing more, whatever it is asked and told."""

import numpy as np
import pytest

from evenhand.learners import EvenHand, IWKSVFair
from evenhand.policy import Group, Terms
from evenhand.subsets.combinations import all_sets
from evenhand.typing import KERNELS
from tests.contracts import LEARNERS

HORIZON = 3000


def signatures():
    return {(k.py_func.__qualname__, s) for k in KERNELS for s in k.signatures}


def forget():
    """As in a new process: kernels have to be read from disk or compiled again."""
    all_sets.cache_clear()
    for kernel in KERNELS:
        kernel._reset_overloads()


def live(learner, queries, seed=1):
    """Ask in pieces of many sizes; tell late, in part, with gaps, in other orders, and restore."""
    rng, out = np.random.default_rng(seed), []
    worth = rng.uniform(size=learner.m) ** 4  # a few arms get nearly all
    while learner.queries < queries and not learner.done:
        batch = learner.ask(int(rng.choice([learner.k, 2 * learner.k, 50, 1000])))
        if batch.learns:
            out.append(batch)
        if len(out) > 3 or rng.random() < 0.3:
            for late in out[::-1]:
                members = np.where(late.orders >= 0, worth[late.orders], 0.0)
                totals = np.pad(np.maximum.accumulate(members, axis=1), ((0, 0), (1, 0)))
                rewards = np.asfortranarray(np.take_along_axis(totals, late.sizes, axis=1))
                rewards[rng.random(rewards.shape) < 0.1] = np.nan
                half = len(rewards) // 2
                learner.tell(late.rows(np.arange(half)), rewards[:half])
                learner.tell(late.rows(np.arange(half, len(rewards))[::-1]), rewards[half:][::-1])
            out = []
            learner.estimate()
        if rng.random() < 0.1:
            learner = type(learner).restore(learner.snapshot())
    return learner


def sizes_of(learner):
    return learner.queries, learner.asked.sum(), learner.ledger.next, repr(learner.snapshot())


@pytest.mark.filterwarnings("ignore:limit=")
@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_is_compiled_after_warm(name):
    forget()
    learner = LEARNERS[name](9, 3, HORIZON, 1)
    learner.warm()
    before = signatures()
    live(learner, HORIZON)
    assert signatures() == before


@pytest.mark.parametrize("kind", [EvenHand, IWKSVFair])
def test_nothing_is_compiled_after_warm_with_many_arms(kind):
    forget()
    options = {} if kind is EvenHand else {"horizon": 40_000, "eta": 0.1}
    learner = kind(300, 30, seed=1, **options)
    learner.warm()
    before = signatures()
    live(learner, 20_000)
    assert signatures() == before


@pytest.mark.parametrize("name", ["even_hand", "full_sets"])
def test_nothing_is_compiled_when_terms_change(name):
    forget()
    learner = LEARNERS[name](9, 3, HORIZON, 1)
    learner.warm()
    before = signatures()
    local = Group([0, 1, 2], floor=0.5)
    learner.change_terms(Terms(caps={5: 0.1}, groups={"local": local}, unit="shares"))
    live(learner, 300)
    assert signatures() == before


def test_without_warm_kernels_are_compiled_later():
    forget()
    learner = EvenHand(9, 3, seed=1)
    before = signatures()
    live(learner, 300)
    assert signatures() > before


@pytest.mark.parametrize("name", LEARNERS)
def test_warm_leaves_the_learner_alone(name):
    one, other = (LEARNERS[name](9, 3, HORIZON, 1) for _ in range(2))
    first = [learner.ask(30) for learner in (one, other)]
    state = sizes_of(one)
    one.warm()
    assert sizes_of(one) == state
    for learner, batch in zip((one, other), first, strict=True):
        learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    np.testing.assert_array_equal(one.ask(30).orders, other.ask(30).orders)

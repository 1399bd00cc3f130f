"""What all checks of learners share: small learners, play, and comparison of what they know."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.exchange import Batch
from evenhand.games import NoisyOr
from evenhand.learners import Learner
from evenhand.typing import Floats

M, K, HORIZON = 6, 3, 600
PHASE = 36  # queries per ask: whole rounds, be they of 2 or of k queries
Make = Callable[[int, int, int, int], Learner]  # of m, k, horizon and seed


def made_learner(make: Make, seed: int = 4, k: int = K) -> Learner:
    """Make a small learner."""
    learner = make(M, k, HORIZON, seed)
    assert isinstance(learner, Learner), (
        f"a learner must derive from evenhand.learners.Learner, got {type(learner).__name__}"
    )
    return learner


def rewards_of(batch: Batch, m: int, rng: np.random.Generator) -> Floats:
    """Rewards of a batch in a game of arms between poor and good."""
    return NoisyOr(np.linspace(0.1, 0.9, m)).pull(batch.orders, batch.sizes, rng)


def play(learner: Learner, limit: int, until: int, rng: np.random.Generator) -> None:
    """Ask and tell until so many queries have been asked."""
    while learner.queries < until:
        batch = learner.ask(min(limit, until - learner.queries))
        if batch.learns:
            learner.tell(batch, rewards_of(batch, learner.m, rng))


def learning_batch(learner: Learner) -> Batch | None:
    """Ask some queries; None for a learner that learns nothing from them."""
    batch = learner.ask(PHASE)
    return batch if batch.learns else None


def half(batch: Batch) -> Floats:
    """A reward of 0.5 for every query."""
    return np.full(batch.sizes.shape, 0.5)


def twin_of(learner: Learner) -> Learner:
    """Return a learner restored from this one's snapshot, as another process would read it."""
    snapshot = learner.snapshot()
    arrays = {name: array.copy() for name, array in snapshot.pop("arrays").items()}
    return type(learner).restore({**json.loads(json.dumps(snapshot)), "arrays": arrays})


def digest(learner: Learner) -> dict[str, Any]:
    """All of a learner's state by name, comparable bit for bit, but for whose batches it takes."""
    snapshot = learner.snapshot()
    arrays = snapshot.pop("arrays")
    plain = {name: x for name, x in snapshot.items() if name not in ("owner", "checksum")}
    return {
        **{name: json.dumps(x, sort_keys=True) for name, x in plain.items() if name != "values"},
        **{name: repr(x) for name, x in snapshot["values"].items()},
        **{name: (x.dtype.str, x.shape, x.tobytes()) for name, x in arrays.items()},
    }


def assert_same(one: Learner, other: Learner, what: str) -> None:
    """Compare two learners bit for bit."""
    mine, theirs = digest(one), digest(other)
    names = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
    assert not names, f"{what}, but {', '.join(names)} differ in the snapshots"

"""Changes to a running experiment: each a named call with JSON arguments, kept in the log."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.learners import EvenHand
from evenhand.learners.prior import Prior

if TYPE_CHECKING:
    from evenhand.service.replica import Replica

Change = Callable[..., Any]


def _expire(replica: "Replica", before: int) -> None:
    """Give up all rows of epochs before this one: they can be told no more."""
    gone = [epoch for epoch in replica.epochs if epoch < before]
    if not gone:
        return
    first, n = replica.epochs[max(gone)]
    for epoch in gone:
        del replica.epochs[epoch]
    if replica.learns:
        replica.learner.ledger.expire_before(first + n)


def _learn(
    replica: "Replica", sets: list[list[int]], rewards: list[float | None], chances: list[float]
) -> None:
    """Learn from sets that were shown before, given by the ids of their arms."""
    learner = _even_hand(replica, "learn")
    columns = [learner.roster.columns(np.array(s, np.int64)).tolist() for s in sets]
    learner.learn(columns, [np.nan if y is None else y for y in rewards], chances)


def _prior(replica: "Replica", merit: list[float], stderr: list[float | None] | float) -> None:
    """Believe merits beforehand, one per arm; None in ``stderr`` where nothing is known."""
    learner = _even_hand(replica, "prior")
    errors = np.inf if stderr is None else stderr
    if isinstance(errors, list):
        errors = [np.inf if x is None else x for x in errors]
    learner.prior = Prior.of((merit, errors), learner.m)


def _even_hand(replica: "Replica", call: str) -> EvenHand:
    if not isinstance(replica.learner, EvenHand):
        raise ValueError(
            f"{call} needs the learner even-hand, got {replica.learner.name}; "
            "make another experiment for it"
        )
    return replica.learner


CHANGES: dict[str, Change] = {"expire": _expire, "learn": _learn, "prior": _prior}

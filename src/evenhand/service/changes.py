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


def _prior(replica: "Replica", merit: dict[str, float], stderr: dict[str, float | None]) -> None:
    """Believe merits beforehand, by id of arm; None or no entry where nothing is known."""
    learner = _even_hand(replica, "prior")
    believed, errors = np.zeros(learner.m), np.full(learner.m, np.inf)
    columns = learner.roster.columns(np.array([int(arm) for arm in merit], np.int64))
    believed[columns] = list(merit.values())
    errors[columns] = [np.inf if x is None else x for x in stderr.values()]
    learner.prior = Prior.of((believed, errors), learner.m)


def _even_hand(replica: "Replica", call: str) -> EvenHand:
    if not isinstance(replica.learner, EvenHand):
        raise ValueError(
            f"{call} needs the learner even-hand, got {replica.learner.name}; "
            "make another experiment for it"
        )
    return replica.learner


CHANGES: dict[str, Change] = {"expire": _expire, "learn": _learn, "prior": _prior}

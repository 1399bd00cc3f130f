"""Changes to a running experiment: each a named call with JSON arguments, kept in the log.

Arms are given by their ids, which JSON wants as strings where they are keys.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evenhand.learners import EvenHand
from evenhand.learners.prior import Prior
from evenhand.learners.termed import TermedLearner
from evenhand.policy import Terms

if TYPE_CHECKING:
    from evenhand.service.replica import Replica

Change = Callable[..., Any]
ByArm = dict[str, float] | float | None


def _add(replica: "Replica", n: int) -> list[int]:
    """Let so many arms join; return their ids."""

    def join() -> list[int]:
        return cast(list[int], replica.learner.add(n).tolist())

    ids = _with_other_arms(replica, join)
    replica.tally.grow(replica.learner.roster.next_id)
    return ids


def _retire(replica: "Replica", arms: list[int]) -> None:
    """Let arms leave for good."""
    _with_other_arms(replica, lambda: replica.learner.retire(arms))


def _pause(replica: "Replica", arms: list[int]) -> None:
    """Do not show arms for a while."""
    _with_other_arms(replica, lambda: replica.learner.pause(arms))


def _resume(replica: "Replica", arms: list[int]) -> None:
    """Show paused arms again."""
    _with_other_arms(replica, lambda: replica.learner.resume(arms))


def _with_other_arms(replica: "Replica", act: Callable[[], Any]) -> Any:
    """Change the arms; in shadow mode, the new ones have even shares too."""
    before = replica.shadow
    if before is None:
        return act()
    learner = _termed(replica, "shadow")
    learner.change_terms(None)
    answer = act()
    learner.change_terms(_even(learner.m))
    return answer


def _terms(replica: "Replica", terms: dict[str, Any] | None) -> None:
    """Keep to other terms, or to none."""
    _refuse_in_shadow(replica)
    _termed(replica, "terms").change_terms(Terms.of(None if terms is None else by_id(terms)))


def _shares(replica: "Replica", shares: dict[str, float]) -> None:
    """Give arms fixed shares, whatever they bring; terms of None end it."""
    _refuse_in_shadow(replica)
    fixed = {int(arm): share for arm, share in shares.items()}
    learner = _termed(replica, "shares")
    missing = set(learner.roster.ids.tolist()) - fixed.keys()
    if missing or abs(sum(fixed.values()) - 1.0) > 1e-9:
        raise ValueError(
            "shares must give every arm one and sum to 1, "
            f"got {len(fixed)} for {learner.m} arms with the sum {sum(fixed.values()):g}"
        )
    learner.change_terms(Terms(floors=fixed, caps=fixed, unit="shares"))


def _shadow(replica: "Replica", on: bool) -> None:
    """Show all arms alike and learn; or show by merit again, on the terms there were."""
    learner = _termed(replica, "shadow")
    if on == (replica.shadow is not None):
        return
    if on:
        before = None if learner.terms is None else learner.terms.to_json()
        learner.change_terms(_even(learner.m))
        replica.shadow = {"terms": before}
    else:
        assert replica.shadow is not None
        learner.change_terms(Terms.of(replica.shadow["terms"]))
        replica.shadow = None


def _even(m: int) -> Terms:
    return Terms(floors=1.0 / m, caps=1.0 / m, unit="shares")


def by_id(terms: dict[str, Any]) -> dict[str, Any]:
    """Return terms with numbers for ids."""
    said = dict(terms)
    for name in ("floors", "caps"):
        if isinstance(said.get(name), dict):
            given = said[name].items()
            said[name] = {arm if arm == "*" else int(arm): x for arm, x in given}
    return said


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
    """Learn from sets that were shown before."""
    learner = _even_hand(replica, "learn")
    learner.learn(sets, [np.nan if y is None else y for y in rewards], chances)


def _prior(replica: "Replica", merit: dict[str, float], stderr: dict[str, float | None]) -> None:
    """Believe merits beforehand; None or no entry where nothing is known."""
    learner = _even_hand(replica, "prior")
    believed, errors = np.zeros(learner.m), np.full(learner.m, np.inf)
    columns = learner.roster.columns(np.array([int(arm) for arm in merit], np.int64))
    believed[columns] = list(merit.values())
    errors[columns] = [np.inf if x is None else x for x in stderr.values()]
    learner.prior = Prior.of((believed, errors), learner.m)


def _even_hand(replica: "Replica", call: str) -> EvenHand:
    if not isinstance(replica.learner, EvenHand):
        raise ValueError(_not_by(replica, call, "even-hand"))
    return replica.learner


def _termed(replica: "Replica", call: str) -> TermedLearner[Any]:
    if not isinstance(replica.learner, TermedLearner):
        raise ValueError(_not_by(replica, call, "even-hand or full-sets"))
    return replica.learner


def _not_by(replica: "Replica", call: str, whose: str) -> str:
    return f"{call} needs the learner {whose}, got {replica.learner.name}; make a new experiment"


def _refuse_in_shadow(replica: "Replica") -> None:
    if replica.shadow is not None:
        raise ValueError("shadow mode must be off to change terms or shares, but it is on")


CHANGES: dict[str, Change] = {
    "add": _add,
    "retire": _retire,
    "pause": _pause,
    "resume": _resume,
    "terms": _terms,
    "shares": _shares,
    "shadow": _shadow,
    "learn": _learn,
    "prior": _prior,
    "expire": _expire,
}

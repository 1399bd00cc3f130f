"""How a learner gives account of its arms: :class:`~evenhand.account.Account`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.account import Account
from evenhand.policy import fair_policy
from evenhand.typing import Floats, Ints

if TYPE_CHECKING:
    from evenhand.learners.learner import Learner


class Counted(NamedTuple):
    """How many rewards evidence rests on.

    Attributes
    ----------
    told
        Rewards absorbed.
    alone, company
        (m,) those of each arm alone and of larger sets with it; None where all are of one kind.
    since
        (m,) how many had been absorbed when what is remembered of each arm began.
    """

    told: int
    alone: Ints | None
    company: Ints
    since: Ints | None = None


def account_of(learner: "Learner") -> Account:
    """All that is known about a learner's arms now; for :meth:`Learner.account`."""
    roster, found = learner.roster, learner.estimate()
    paused = np.array(sorted(roster.paused), np.int64)
    arms = np.sort(np.append(roster.ids, paused))
    here, away = np.searchsorted(arms, roster.ids), np.searchsorted(arms, paused)

    def spread(column: Any, absent: float) -> Any:
        """A column of all arms from one of those on the roster."""
        values = np.asarray(column)
        every = np.full((len(arms), *values.shape[1:]), absent, values.dtype)
        every[here] = values
        return every

    merit, stderr = spread(found.merit, np.nan), spread(found.stderr, np.nan)
    merit[away], stderr[away] = learner._set_aside()
    more = {
        name: spread(x, ABSENT.get(name, np.nan)) if name in COLUMNS and x is not None else x
        for name, x in learner._background().items()
    }
    if "caps" in more:
        more["caps"][np.isin(arms, list(learner.barred))] = 0.0
    joined = spread(roster.joined, 0)
    joined[away] = [roster.paused[arm] for arm in paused.tolist()]
    intervals = None if found.intervals is None else spread(found.intervals, np.nan)
    return Account(
        learner=learner.name,
        k=learner.k,
        queries=learner.queries,
        rewards=learner.rewards,
        arms=arms,
        names=_names(learner, arms),
        paused=~np.isin(arms, roster.ids),
        joined=joined,
        due=spread(learner.marginals, 0.0),
        given=_given(learner, arms),
        by_merit=spread(_called_for(found.merit, learner.k), 0.0),
        merit=merit,
        stderr=stderr,
        asked=learner.selections[arms],
        last=learner._last[arms],
        intervals=intervals,
        **{"told": None, **more},
    )


ABSENT = {"alone": 0, "company": 0, "since": 0, "group": -1, "without_terms": 0.0}
COLUMNS = (*ABSENT, "settled", "trust", "floors", "caps")  # of what learners say in the background


def _names(learner: "Learner", arms: Ints) -> tuple[str, ...] | None:
    roster = learner.roster
    if roster.names is None:
        return None
    called = {arm: name for name, arm in roster.former.items()}
    called |= dict(zip(roster.ids.tolist(), roster.names, strict=True))
    return tuple(called[arm] for arm in arms.tolist())


def _given(learner: "Learner", arms: Ints) -> Floats:
    """Marginals (n,) that arms have had: their part of all places handed out while they were there.

    A set of r arms counts r times, one of each place.
    """
    total = learner.selections.sum()
    places = np.where(np.isin(arms, learner.roster.ids), total, 0) - learner._missed[arms]
    nothing = np.full(len(arms), np.nan)
    return learner.k * np.divide(learner.selections[arms], places, where=places > 0, out=nothing)


def _called_for(merit: Floats, k: int) -> Floats:
    """What merits alone call for; nan where none is known above 0."""
    positive = np.maximum(np.nan_to_num(merit), 0.0)
    return fair_policy(positive, k) if positive.any() else np.full(len(merit), np.nan)


def own_part(merit: Floats, variance: Floats) -> Floats:
    """How far an arm's own rewards decide a posterior mean (m,), in [0, 1].

    One less posterior over prior variance; the prior variance by the law of total variance.
    """
    known = np.isfinite(variance)
    if not known.any():
        return np.zeros(len(merit))
    prior = max(float(np.var(merit[known]) + variance[known].mean()), 1e-300)
    return np.clip(1.0 - variance / prior, 0.0, 1.0)


def part_after_shrinking(value: Floats, variance: Floats) -> Floats:
    """The same for an estimate without bias that a policy shrinks to the mean of all arms."""
    known = np.isfinite(variance)
    if not known.any():
        return np.zeros(len(value))
    apart = (value[known] - value[known].mean()) ** 2
    between = max(float((apart - variance[known]).mean()), 0.0)
    return np.where(known, between / np.maximum(between + variance, 1e-300), 0.0)

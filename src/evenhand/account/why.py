"""Why an arm has the share it has: the numbers, and the same in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from evenhand.account.account import Account, Group, Noticed
from evenhand.account.words import Paragraph, paragraphs


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """Why an arm has the share it has; ``str`` gives it in words.

    Numbers that are not known are None. Those of the account mean what they mean there.

    Attributes
    ----------
    arm, name
        Id, and name, or None.
    share
        What it is due now, of all places; ``due`` over k.
    even
        Share that every arm would have if all had the same.
    group_due
        What the arms of its group are due together, in marginals.
    average, rank, of
        Mean merit of the arms that are shown, how many of them have a larger one and one more, and
        how many of them there are whose merit is known.
    near
        How many of them differ from it by less than two standard errors.
    mean_reward, mean_reward_with_it
        Mean of all rewards told, and of those of sets with it.
    paragraphs
        The same in words, by topic.
    """

    arm: int
    name: str | None
    learner: str
    k: int
    queries: int
    told: int | None
    rewards: tuple[float, float]
    paused: bool
    due: float
    share: float
    even: float
    given: float | None
    by_merit: float | None
    without_terms: float | None
    floor: float | None
    cap: float | None
    group: Group | None
    group_due: float | None
    power: float
    agreed: tuple[int, ...]
    shadow: bool
    merit: float | None
    stderr: float | None
    interval: tuple[float, float] | None
    average: float | None
    rank: int | None
    of: int
    near: int | None
    settled: float | None
    trust: float | None
    asked: int
    last: int | None
    joined: int
    alone: int | None
    company: int | None
    since: int | None
    sizes: tuple[float, ...] | None
    mean_reward: float | None
    mean_reward_with_it: float | None
    changes: tuple[Noticed, ...] | None

    @property
    def paragraphs(self) -> list[Paragraph]:
        """What there is to say, by topic."""
        return paragraphs(self)

    @property
    def text(self) -> str:
        """All of it in words, a line per topic."""
        return "\n".join(f"{about}: {words}" for about, words in self.paragraphs)

    def to_json(self) -> dict[str, Any]:
        """The numbers and the text, fit for JSON."""
        numbers = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return numbers | {"text": self.text}

    def __str__(self) -> str:
        called = f"arm {self.arm}" if self.name is None else self.name
        return f"{called}\n{self.text}"

    __repr__ = __str__


def explain(account: Account, arm: int | str) -> Why:
    """Say why an arm, given by id or name, has the share it has.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=4, k=2, names=["ada", "bob", "cy", "dee"], seed=1)
    >>> print(explain(learner.account(), "bob"))  # doctest: +ELLIPSIS
    bob
    Share: It is due 25 % of all places: it is in 50 % of the full sets of 2. If all 4 arms had the
    same, each would have 25 %.
    ...
    """
    a = account.column(arm)

    def entry(column: Any) -> Any:
        """The arm's entry of a column, None where it is not known."""
        if column is None:
            return None
        value = column[a].item()
        return None if isinstance(value, float) and not np.isfinite(value) else value

    m, k, shown = account.m, account.k, ~account.paused
    known = account.merit[shown & ~np.isnan(account.merit)]
    merit, group = entry(account.merit), entry(account.group)
    grouped = group is not None and group >= 0
    ranked = merit is not None and not account.paused[a]
    interval = None if account.intervals is None else account.intervals[a]
    with_it = entry(account.shown)
    return Why(
        arm=int(account.arms[a]),
        name=None if account.names is None else account.names[a],
        learner=account.learner,
        k=k,
        queries=account.queries,
        told=account.told,
        rewards=account.rewards,
        paused=bool(account.paused[a]),
        due=float(account.due[a]),
        share=float(account.due[a]) / k,
        even=1.0 / m,
        given=entry(account.given),
        by_merit=entry(account.by_merit),
        without_terms=entry(account.without_terms),
        floor=entry(account.floors),
        cap=entry(account.caps),
        group=account.groups[group] if grouped else None,
        group_due=float(account.due[account.group == group].sum()) if grouped else None,
        power=account.power,
        agreed=account.agreed,
        shadow=account.shadow,
        merit=merit,
        stderr=entry(account.stderr),
        interval=None
        if interval is None or np.isnan(interval).any()
        else (float(interval[0]), float(interval[1])),
        average=float(known.mean()) if len(known) else None,
        rank=1 + int(np.count_nonzero(known > merit)) if ranked else None,
        of=len(known),
        near=_near(account, a) if ranked else None,
        settled=entry(account.settled),
        trust=entry(account.trust),
        asked=int(account.asked[a]),
        last=int(account.last[a]) if account.last[a] >= 0 else None,
        joined=int(account.joined[a]),
        alone=entry(account.alone),
        company=entry(account.company),
        since=entry(account.since),
        sizes=None if account.sizes is None else tuple(account.sizes.tolist()),
        mean_reward=None
        if account.total is None or not account.told
        else account.total / account.told,
        mean_reward_with_it=entry(account.brought) / with_it if with_it else None,
        changes=None
        if account.changes is None
        else tuple(one for one in account.changes if one.arm == account.arms[a]),
    )


def _near(account: Account, a: int) -> int | None:
    """How many arms that are shown differ from one by less than two standard errors."""
    error = np.hypot(account.stderr, account.stderr[a])
    if np.isnan(error[a]):
        return None
    close = np.abs(account.merit - account.merit[a]) < 2.0 * error  # false where not known
    return int(np.count_nonzero(close & ~account.paused)) - 1


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = value._asdict() if hasattr(value, "_asdict") else None
        plain = {n: _plain(x) for n, x in fields.items()} if fields else [_plain(x) for x in value]
        return plain
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

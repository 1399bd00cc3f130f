"""All that is known about the arms of a learner at one moment, as one value.

Web workers read accounts, and they do not load the compiler: nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.display import span

if TYPE_CHECKING:
    from evenhand.typing import Bools, Floats, Ints

DIGITS = 7  # of numbers in JSON


class Noticed(NamedTuple):
    """A change that was noticed: after how many queries, whose, and whether the arm alone."""

    queries: int
    arm: int
    alone: bool


class Group(NamedTuple):
    """A group of the terms: its name, and floor and cap of its total in marginals."""

    name: str
    floor: float
    cap: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Account:
    """All that is known about the arms of a learner at one moment.

    Columns have an entry per arm, in the order of their ids, paused arms included. Numbers that are
    not known are nan, columns of which nothing is known None. What arms are due, given and held to
    is in marginals: chances to be in a set of k, which sum to k; over k they are shares of all
    places.

    Attributes
    ----------
    learner
        Its name, such as ``"even-hand"``.
    k
        The most arms in a set.
    queries, told
        Queries asked, and rewards that were taken in, None where nobody counts them.
    rewards
        Smallest and largest possible reward.
    arms, names
        (n,) ids, and names, or None where arms have none.
    paused
        (n,) which arms are not shown for now; those that the terms give nothing are among them.
    joined
        (n,) how many queries had been asked when each joined.
    due, given
        (n,) what each arm gets now, and what it was given on average while it was there.
    by_merit
        (n,) what the estimated merits alone call for.
    without_terms
        (n,) what the learner would give now if there were no terms; None where there are none.
    merit, stderr, intervals
        (n,), (n,) and (n, 2) estimated merits, standard errors, 95 % intervals valid at any time.
    settled
        (n,) in [0, 1], how far an arm's own rewards decide its estimate, and not what all arms have
        in common.
    trust
        (n,) how far merits rest on means that are right for any game instead of a model.
    asked, last
        (n,) queries with each arm, and the number of the last one, -1 where that is not known.
    alone, company, since
        (n,) rewards remembered of each arm alone and of larger sets with it; and how many rewards
        had been told when what is remembered of it began.
    shown, brought
        (n,) told sets with each arm, and the sum of their rewards.
    total
        Sum of all rewards told.
    floors, caps, group
        (n,) what the terms say of each arm, in marginals, and the number of its group, -1 for none.
    groups, power
        The terms' groups, and the power of merit that shares follow.
    agreed
        After how many queries terms were changed, each time.
    shadow
        Whether all arms are shown alike for now, whatever they bring.
    sizes
        (k,) shares of queries of 1, ..., k arms.
    mixing
        Share of all places that are in sets drawn uniformly.
    diagnostics
        Other single numbers that a learner reports about itself, by name.
    changes
        Changes noticed, the latest hundred, oldest first; None where nobody looks out for any.
    """

    learner: str
    k: int
    queries: int
    told: int | None
    rewards: tuple[float, float]
    arms: Ints
    names: tuple[str, ...] | None
    paused: Bools
    joined: Ints
    due: Floats
    given: Floats
    by_merit: Floats
    merit: Floats
    stderr: Floats
    asked: Ints
    last: Ints
    without_terms: Floats | None = None
    intervals: Floats | None = None
    settled: Floats | None = None
    trust: Floats | None = None
    alone: Ints | None = None
    company: Ints | None = None
    since: Ints | None = None
    shown: Ints | None = None
    brought: Floats | None = None
    total: float | None = None
    floors: Floats | None = None
    caps: Floats | None = None
    group: Ints | None = None
    groups: tuple[Group, ...] = ()
    power: float = 1.0
    agreed: tuple[int, ...] = ()
    shadow: bool = False
    sizes: Floats | None = None
    mixing: float | None = None
    diagnostics: Mapping[str, float] | None = None
    changes: tuple[Noticed, ...] | None = None

    @property
    def m(self) -> int:
        """Number of arms that are shown."""
        return int(np.count_nonzero(~self.paused))

    def column(self, arm: int | str) -> int:
        """Return the place of an arm, given by id or name."""
        if isinstance(arm, str):
            if self.names is None:
                raise ValueError(f"arm must be an id, as arms have no names, got {arm!r}")
            if arm in self.names:
                return self.names.index(arm)
            some = ", ".join(map(repr, self.names[:3]))
        else:
            at = int(np.searchsorted(self.arms, arm))
            if at < len(self.arms) and self.arms[at] == arm:
                return at
            some = ", ".join(map(str, self.arms[:3].tolist()))
        raise ValueError(
            f"arm must be one of the {len(self.arms)} that are there, such as {some}, got {arm!r}"
        )

    def label(self, column: int) -> str:
        """What the arm of a column is called."""
        return f"arm {self.arms[column]}" if self.names is None else self.names[column]

    def named(self, names: Mapping[int, str]) -> Account:
        """Return the account with names for all its arms, by id."""
        return replace(self, names=tuple(names[arm] for arm in self.arms.tolist()))

    def to_json(self) -> dict[str, Any]:
        """All of it, fit for JSON; numbers have seven digits.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> account = EvenHand(m=3, k=2, seed=1).account()
        >>> Account.from_json(account.to_json()).due.round(3)
        array([0.667, 0.667, 0.667])
        """
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Account:
        """Make the account that gave this; other entries beside its own are left aside."""
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        missing = [name for name in ("k", "arms", "due", "merit") if name not in known]
        if missing:
            raise ValueError(f"data must come from Account.to_json, but {missing[0]!r} is missing")
        for name, kind in KINDS.items():
            if known.get(name) is not None:
                known[name] = np.array(known[name], kind)  # None becomes nan
        known["names"] = known["names"] and tuple(known["names"])
        known["rewards"] = tuple(known["rewards"])
        known["groups"] = tuple(
            Group(name, floor, np.inf if cap is None else cap)
            for name, floor, cap in known["groups"]
        )
        known["agreed"] = tuple(known.get("agreed", ()))
        if known["changes"] is not None:
            known["changes"] = tuple(Noticed(*one) for one in known["changes"])
        return cls(**known)

    def __repr__(self) -> str:
        seen = self.merit[~np.isnan(self.merit)]
        shown = f"{self.learner!r}, m={self.m}, k={self.k}, queries={self.queries}"
        return f"Account({shown}, told={self.told}, merit={span(seen)})"


KINDS: dict[str, type] = {
    **dict.fromkeys(("arms", "joined", "asked", "last", "alone", "company"), np.int64),
    **dict.fromkeys(("since", "shown", "group"), np.int64),
    **dict.fromkeys(("due", "given", "by_merit", "without_terms", "merit", "stderr"), np.float64),
    **dict.fromkeys(("intervals", "settled", "trust", "brought", "floors", "caps"), np.float64),
    "sizes": np.float64,
    "paused": np.bool_,
}


def _plain(value: Any) -> Any:
    """A value fit for JSON, None where a number is not known or has no end."""
    if isinstance(value, np.ndarray):
        if value.dtype != np.float64:
            return value.tolist()
        return _without_nan(_to_digits(value).tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _to_digits(vector: Floats) -> Floats:
    """Numbers to a few digits, which take a third of the room."""
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = DIGITS - 1 - np.floor(np.log10(np.abs(vector)))
    scale = 10.0 ** np.clip(np.nan_to_num(powers, posinf=0.0, neginf=0.0), -280.0, 280.0)
    rounded: Floats = np.rint(vector * scale) / scale
    return rounded


def _without_nan(values: list[Any]) -> list[Any]:
    if values and isinstance(values[0], list):
        return [_without_nan(row) for row in values]
    return [x if x - x == 0.0 else None for x in values]

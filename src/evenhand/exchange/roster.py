"""Which arms there are."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer
from evenhand.typing import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """The arms that can be shown, in the order of the columns of every array about them.

    Attributes
    ----------
    ids
        (m,) the arm in each column. Ids are ascending, and no other arm ever gets one again.
    names
        A name per column, or None where arms have none.
    joined
        (m,) number of queries that had been asked when each arm joined.
    next_id
        Id of the next arm to join.
    paused
        When each paused arm had joined, by id: arms that will be back.
    former
        Ids of arms without a column, by name: paused ones, and those that have left, which have
        their id again if they come back.

    Examples
    --------
    >>> roster = Roster.of(3, names=["ada", "bob", "cy"]).retire([1]).add(["dee"], joined=100)
    >>> roster.ids, roster.names, roster.columns([3])
    (array([0, 2, 3]), ('ada', 'cy', 'dee'), array([2]))
    >>> roster.pause(["cy"]).add(["bob"], joined=200).names
    ('ada', 'bob', 'dee')
    """

    ids: Ints
    names: tuple[str, ...] | None
    joined: Ints
    next_id: int
    paused: Mapping[int, int] = field(default_factory=dict)
    former: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, m: int, names: Iterable[str] | None = None) -> "Roster":
        """Return the roster of arms 0..m-1, all there from the start."""
        m = check_integer("m", m, 1)
        return cls(np.arange(m), check_names(names, m), np.zeros(m, np.int64), m)

    @property
    def m(self) -> int:
        """Number of arms that can be shown."""
        return len(self.ids)

    @property
    def original(self) -> bool:
        """Whether arms are numbered 0..m-1, as at the start, and nobody has ever left."""
        return self.next_id == self.m

    def add(self, names: Sequence[str] | int, joined: int) -> "Roster":
        """Return the roster with newcomers: their names, or how many if arms have none.

        A name that was here before has its old id.
        """
        names = [names] if isinstance(names, str) else names
        given = tuple(names) if isinstance(names, Sequence) else None
        new = check_integer("names", names, 1) if given is None else len(given)
        if (given is None) != (self.names is None):
            raise ValueError(
                "the arms have no names: pass how many arms to add, not names"
                if self.names is None
                else f"the arms have names: pass a list of new names, got names={names!r}"
            )
        if new == 0:
            raise ValueError("names must hold at least one new name, got none")
        there = next((name for name in given or () if name in (self.names or ())), None)
        if there is not None:
            raise ValueError(f"names must be new, but {there!r} is there already")
        check_names(given and (*(self.names or ()), *given), self.m + new)
        known = [self.former.get(name) for name in given or ()] or [None] * new
        away = next((arm for arm in known if arm in self.paused), None)
        if away is not None:
            name = next(n for n, arm in self.former.items() if arm == away)
            raise ValueError(f"names must be new, but {name!r} is paused: resume it")
        fresh = count(self.next_id)
        ids = np.array([next(fresh) if arm is None else arm for arm in known], np.int64)
        since = np.full(new, check_integer("joined", joined, 0))
        return self._insert(ids, given, since, next(fresh))

    def retire(self, arms: Any) -> "Roster":
        """Return the roster without these arms, given by id or name; paused ones may be among."""
        ids = self.find(arms)
        rest = replace(self, paused={a: t for a, t in self.paused.items() if a not in ids})
        return rest._without(np.array([a for a in ids if a not in self.paused], np.int64))

    def pause(self, arms: Any) -> "Roster":
        """Return the roster without these arms, given by id or name, which will be back."""
        ids = self.find(arms)
        already = [arm for arm in ids if arm in self.paused]
        if already:
            who = self.label(already[0])
            raise ValueError(f"arms must be present, but {who!r} is paused already")
        columns = self.columns(ids)
        away = zip(self.ids[columns].tolist(), self.joined[columns].tolist(), strict=True)
        return replace(self, paused={**self.paused, **dict(away)})._without(self.ids[columns])

    def resume(self, arms: Any) -> "Roster":
        """Return the roster with these arms, given by id or name, which were paused."""
        ids = sorted(self.find(arms))
        wrong = [arm for arm in ids if arm not in self.paused]
        if wrong:
            raise ValueError(
                f"arms must be paused ones, got {self.label(wrong[0])!r}, which is not"
            )
        called = {arm: name for name, arm in self.former.items()}
        names = tuple(called[arm] for arm in ids) if self.names is not None else None
        since = np.array([self.paused[arm] for arm in ids])
        rest = replace(self, paused={a: t for a, t in self.paused.items() if a not in ids})
        return rest._insert(np.array(ids, np.int64), names, since, self.next_id)

    def _insert(
        self, ids: Ints, names: tuple[str, ...] | None, since: Ints, next_id: int
    ) -> "Roster":
        every = np.append(self.ids, ids)
        order = np.argsort(every)
        former = {name: arm for name, arm in self.former.items() if name not in (names or ())}
        if names is not None:
            names = tuple(np.array((*(self.names or ()), *names), object)[order])
        joined = np.append(self.joined, since)[order]
        return Roster(every[order], names, joined, next_id, self.paused, former)

    def _without(self, ids: Ints) -> "Roster":
        gone = self.columns(ids)
        stays = np.ones(self.m, np.bool_)
        stays[gone] = False
        names, former = self.names, dict(self.former)
        if names is not None:
            former |= {names[column]: int(self.ids[column]) for column in gone}
            names = tuple(np.array(names, object)[stays])
        kept = self.ids[stays], names, self.joined[stays]
        return Roster(*kept, self.next_id, self.paused, former)

    def find(self, arms: Any) -> list[int]:
        """Return ids of arms given by id or name: one, or a list of them."""
        given = [arms] if isinstance(arms, str) or not np.iterable(arms) else list(arms)
        if not given:
            raise ValueError("arms must name at least one arm, got none")
        if all(isinstance(arm, str) for arm in given):
            if self.names is None:
                raise ValueError(f"arms must be given by id, as they have no names, got {arms!r}")
            known = dict(zip(self.names, self.ids.tolist(), strict=True))
            known |= {name: arm for name, arm in self.former.items() if arm in self.paused}
            missing = [name for name in given if name not in known]
            found = [known.get(name, -1) for name in given]
        else:
            found = _as_ids(given, arms)
            missing = [arm for arm in found if not (arm in self.paused or np.any(self.ids == arm))]
        if missing:
            raise ValueError(f"arms must be on the roster, got {missing[0]!r}, which is not")
        if len(set(found)) < len(found):
            raise ValueError(f"arms must be different, got {arms!r}")
        return found

    def label(self, arm: int) -> str | int:
        """Return an arm's name, if it has one, or its id."""
        for name, known in self.former.items():
            if known == arm:
                return name
        column = int(self.places(np.array(arm)))
        return arm if self.names is None or column < 0 else self.names[column]

    def columns(self, ids: ArrayLike) -> Ints:
        """Return the columns of these arms."""
        wanted = as_integers("ids", ids)
        places = self.places(wanted)
        if np.any(places < 0):
            raise ValueError(
                f"ids must be of arms present, got {wanted[places < 0].reshape(-1)[0]}"
            )
        return places

    def places(self, ids: Ints) -> Ints:
        """Return the columns of arms, -1 for those without one."""
        if self.m == 0:
            return np.full(np.shape(ids), -1)
        found = np.minimum(np.searchsorted(self.ids, ids), self.m - 1)
        return np.where(self.ids[found] == ids, found, -1)

    @property
    def names_by_id(self) -> tuple[str, ...] | None:
        """Names of all ids so far, empty for arms without a column."""
        if self.names is None or self.original:
            return self.names
        every = np.full(self.next_id, "", object)
        every[self.ids] = self.names
        return tuple(every)

    def to_json(self) -> dict[str, Any] | None:
        """All but the names in columns, as JSON; None for an original one."""
        if self.original and not self.joined.any():
            return None
        return {
            "ids": self.ids.tolist(),
            "joined": self.joined.tolist(),
            "next": self.next_id,
            "paused": [list(pair) for pair in self.paused.items()],
            "former": dict(self.former),
        }

    @classmethod
    def from_json(cls, data: Any, names: tuple[str, ...] | None, m: int) -> "Roster":
        """Make the roster that gave this, refusing anything else."""
        if data is None:
            return cls.of(m, names)
        ids, joined = as_integers("ids", data["ids"]), as_integers("joined", data["joined"])
        following = check_integer("next", data["next"], 1)
        paused = {
            check_integer("paused", a, 0): check_integer("paused", t, 0) for a, t in data["paused"]
        }
        former = {str(name): check_integer("former", a, 0) for name, a in data["former"].items()}
        used = [*ids.tolist(), *paused]
        good = (
            ids.shape == joined.shape == (m,)
            and bool(np.all(np.diff(ids, prepend=-1) > 0))
            and joined.min(initial=0) >= 0
            and len(set(used)) == len(used)
            and max([*used, *former.values()]) < following
            and not set(former.values()) & set(ids.tolist())
            and not set(former) & set(names or ())
            and len(set(former.values())) == len(former)
            and (set(paused) <= set(former.values()) if names is not None else not former)
        )
        if not good:
            raise ValueError("roster must hold ascending ids, and each arm once")
        return cls(ids, names, joined, following, paused, former)


def _as_ids(given: list[Any], arms: Any) -> list[int]:
    """Return ids as integers."""
    try:
        ids: list[int] = as_integers("arms", given).tolist()
        return ids
    except (TypeError, ValueError):
        raise TypeError(f"arms must be names or ids, one or a list of them, got {arms!r}") from None


def check_names(names: Any, m: int) -> tuple[str, ...] | None:
    """Return m different names, or None where there are none."""
    if names is None:
        return None
    # a set has no order, in which names could belong to arms
    names = (
        names if isinstance(names, str | Set) or not isinstance(names, Iterable) else tuple(names)
    )
    if not isinstance(names, tuple) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"names must be a list of non-empty strings, one per arm, got {names!r}")
    if len(names) != m:
        raise ValueError(f"names must hold one name per arm, m={m}, got {len(names)}")
    if len(set(names)) < m:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"names must be different, got {twice!r} twice")
    return names

"""Terms: least and largest shares of arms and groups of arms, and a power of merit."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_number
from evenhand.policy.feasible import UNITS, check_arms, check_sums, in_words
from evenhand.policy.named import OTHERS, Arm, check_arm, per_arm, places, short, spread
from evenhand.policy.projection import Bounds, project
from evenhand.typing import Floats, Ints

POWERS = (0.25, 4.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Arms that have a floor, a cap or both together.

    Examples
    --------
    >>> Group(["ada", "bob"], floor=0.2)
    Group(arms=('ada', 'bob'), floor=0.2, cap=None)
    """

    arms: Sequence[Arm]
    floor: float = 0.0
    cap: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.arms, str) or not isinstance(self.arms, Iterable):
            raise TypeError(f"arms must be a list of ids or names, got {self.arms!r}")
        arms = tuple(check_arm("arms", arm) for arm in self.arms)
        if not arms:
            raise ValueError("arms must hold an arm at least, got none")
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "floor", check_number("floor", self.floor, 0.0, np.inf))
        if self.cap is not None:
            object.__setattr__(self, "cap", check_number("cap", self.cap, 0.0, np.inf))
            if self.cap < self.floor:
                raise ValueError(
                    f"cap must be at least the floor, got cap={self.cap:g} and "
                    f"floor={self.floor:g} of the group of {', '.join(map(str, arms[:3]))}"
                )


@dataclass(frozen=True, init=False, repr=False)
class Terms:
    r"""What shares must satisfy besides following merit: floors, caps, groups, a power of merit.

    Marginals are the nearest to :math:`\max(\phi_a, 0)^{power}` that the terms allow, in the sense
    of the Kullback-Leibler divergence: in proportion to that wherever no floor or cap is felt. An
    arm with a cap of 0 is not shown at all: it has no merit, and nobody else's merit counts sets
    with it.

    Terms hold for the *chances* of every single query, so also on average over any stretch of
    queries. What cannot be had is that they hold in every single set: an arm is either in a set or
    not, and a floor of 0.3 means in three of ten.

    Parameters
    ----------
    floors, caps
        Least and most per arm: a number for all arms; a vector, one number for each of the arms
        0, 1, 2, ...; or a mapping by id or name, in which ``"*"`` stands for all others. Arms that
        are not mentioned have none.
    groups
        Floors and caps of the total of several arms, by name of the group:
        :class:`Group`, or a mapping with ``arms``, ``floor`` and ``cap``. No arm is in two.
    power
        Shares follow merit to this power, 0.25 to 4: below 1 they are more alike than merits,
        above 1 less.
    unit
        What floors and caps are numbers of, always to be said: ``"shares"``, of all slots, which
        sum to 1; or ``"marginals"``, chances to be among the k of a full set, which sum to k.

    Examples
    --------
    >>> import evenhand
    >>> merit = [0.6, 0.2, 0.1, 0.1]
    >>> evenhand.fair_policy(merit, k=2).round(3)
    array([1.  , 0.5 , 0.25, 0.25])
    >>> evenhand.fair_policy(merit, 2, Terms(floors=0.15, caps=0.4, unit="shares")).round(3)
    array([0.8, 0.6, 0.3, 0.3])
    >>> local = Group([2, 3], floor=1.2)
    >>> evenhand.fair_policy(merit, 2, Terms(groups={"local": local}, unit="marginals")).round(3)
    array([0.6, 0.2, 0.6, 0.6])
    """

    floors: Mapping[Arm, float]
    caps: Mapping[Arm, float]
    groups: Mapping[str, Group]
    power: float
    unit: Literal["shares", "marginals"] | None

    def __init__(
        self,
        floors: float | ArrayLike | Mapping[Any, float] | None = None,
        caps: float | ArrayLike | Mapping[Any, float] | None = None,
        groups: Mapping[str, Any] | None = None,
        power: float = 1.0,
        unit: Literal["shares", "marginals"] | None = None,
    ) -> None:
        made = {
            "floors": per_arm("floors", floors),
            "caps": per_arm("caps", caps),
            "groups": _groups(groups),
            "power": check_number("power", power, *POWERS),
            "unit": unit,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if unit not in (*UNITS, None) or (unit is None and (self.floors or self.caps or groups)):
            raise ValueError(
                "unit must say what floors and caps are numbers of, 'shares' of all slots (they "
                f"sum to 1) or 'marginals', chances to be in a full set (sum k), got {unit!r}"
            )
        for arm, floor in self.floors.items():
            _check_reach("floors", arm, floor, 1.0)
        for arm, cap in self.caps.items():
            _check_reach("caps", arm, cap, 1.0)
        for name, group in self.groups.items():
            if self.unit == "shares" and group.floor > 1.0:
                raise ValueError(
                    f"the floor of group {name!r} must lie in [0, 1], being a share of all slots, "
                    f"got {group.floor:g}"
                )

    @classmethod
    def of(cls, given: "Terms | Mapping[str, Any] | None") -> "Terms | None":
        """Return terms as they are, or those of a mapping, such as that of :meth:`to_json`."""
        if given is None or isinstance(given, Terms):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"terms must be Terms(...), got {given!r}")
        known = ("floors", "caps", "groups", "power", "unit")
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f"terms must give some of {', '.join(known)}, got {unknown[0]!r}")
        data = dict(given)
        for name in ("floors", "caps"):
            pairs = data.get(name)
            if isinstance(pairs, list) and all(isinstance(pair, list) for pair in pairs):
                data[name] = {arm: number for arm, number in pairs}
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Return the terms as JSON, of which :meth:`of` makes the same terms.

        Examples
        --------
        >>> terms = Terms(floors={"ada": 0.1}, unit="shares")
        >>> Terms.of(terms.to_json()) == terms
        True
        """
        groups = {
            name: {"arms": list(group.arms), "floor": group.floor, "cap": group.cap}
            for name, group in self.groups.items()
        }
        return {
            "floors": [[arm, number] for arm, number in self.floors.items()],
            "caps": [[arm, number] for arm, number in self.caps.items()],
            "groups": groups,
            "power": self.power,
            "unit": self.unit,
        }

    def check_known(self, ids: Ints, names: Sequence[str] | None = None) -> None:
        """Refuse terms that mention arms which are not there: mostly a slip of the pen."""
        known = {*ids.tolist(), *(names or ())}
        mentioned: dict[str, Iterable[Arm]] = {"floors": self.floors, "caps": self.caps}
        mentioned |= {f"group {name!r}": group.arms for name, group in self.groups.items()}
        for where, arms in mentioned.items():
            if unknown := [arm for arm in arms if arm not in known and arm != OTHERS]:
                what = "names" if isinstance(unknown[0], str) else "ids"
                some = ", ".join(map(repr, [x for x in known if type(x) is type(unknown[0])][:3]))
                raise ValueError(
                    f"{where} must be of arms that are there, got {unknown[0]!r}; "
                    + (f"their {what} are {some}, ..." if some else "these arms have no names")
                )

    def bounds(
        self,
        k: int,
        ids: Ints,
        names: Sequence[str] | None = None,
        paused: Iterable[int] = (),
    ) -> Bounds:
        """Return the terms for the arms at hand, in marginals, refusing what cannot be satisfied.

        Arms that the terms mention and that are not there are left out; those that are there and
        not mentioned, such as newcomers, have what is said of ``"*"`` and no group.

        Parameters
        ----------
        k
            Arms in a full set.
        ids, names
            Of the arms at hand, column by column.
        paused
            Ids of arms that are not shown for now, as with a cap of 0; their floors are waived.
        """
        m, factor, columns = len(ids), in_words(self.unit, k)[1], places(ids, names)
        low, said = spread(self.floors, 0.0, columns, m)
        high, _ = spread(self.caps, 1.0, columns, m)
        group = np.full(m, -1)
        for g, (name, one) in enumerate(self.groups.items()):
            members = [columns[arm] for arm in one.arms if arm in columns]
            if (group[members] >= 0).any():
                other = list(self.groups)[int(group[members].max())]
                raise _in_two(list(one.arms), other, name)
            group[members] = g
        floors = np.array([one.floor for one in self.groups.values()])
        caps = np.array([math.inf if x.cap is None else x.cap for x in self.groups.values()])
        low, high = factor * low, np.minimum(factor * high, 1.0)
        bounds = Bounds(low, high, group, factor * floors, factor * caps)
        gone = np.isin(ids, list(paused))
        out = gone | (high == 0.0) | np.isin(group, np.flatnonzero(caps == 0.0))
        low[gone | (out & ~said)] = 0.0  # what is said of all does not bring back an arm
        check_arms(bounds, out, ids, names, k, self.unit)
        high[out] = 0.0
        check_sums(bounds, self.groups, k, self.unit)
        return bounds

    def policy(
        self, merit: Floats, k: int, ids: Ints | None = None, names: Sequence[str] | None = None
    ) -> Floats:
        """Marginals (m,) that the terms make of merits, those below 0 counted as 0."""
        m, k = check_budget(len(merit), k)
        ids = np.arange(m) if ids is None else ids
        return project(self.scores(merit), self.bounds(k, ids, names), k)

    def scores(self, merit: Floats) -> Floats:
        """Merits to the power, those below 0 counted as 0; over the largest, so none overflows."""
        positive = np.maximum(merit, 0.0)
        top = positive.max()
        if not top > 0.0:
            return positive
        powered = np.maximum((positive / top) ** self.power, np.finfo(float).tiny)
        return np.where(positive > 0.0, powered, 0.0)

    def __repr__(self) -> str:
        shown = [f"{name}={short(x)}" for name in ("floors", "caps") if (x := getattr(self, name))]
        if self.groups:
            shown.append(f"groups={{{', '.join(map(repr, self.groups))}}}")
        shown += [f"power={self.power:g}"] if self.power != 1.0 else []
        shown += [f"unit={self.unit!r}"] if self.unit else []
        return f"Terms({', '.join(shown)})"


def _groups(given: Any) -> dict[str, Group]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"groups must be a mapping from names to groups, got {given!r}")
    made = {n: one if isinstance(one, Group) else Group(**one) for n, one in given.items()}
    home: dict[Arm, str] = {}
    for name, group in made.items():
        for arm in group.arms:
            if arm in home:
                raise _in_two(arm, home[arm], name)
            home[arm] = name
    return made


def _in_two(arms: Any, one: str, other: str) -> ValueError:
    return ValueError(
        f"groups must not share arms, got {arms!r} in {one!r} and {other!r}; choose one of them"
    )


def _check_reach(name: str, arm: Arm, number: float, most: float) -> None:
    if number > most:
        of = "" if arm == OTHERS else f" for arm {arm!r}"
        raise ValueError(
            f"{name} must lie in [0, 1], got {number:g}{of}: an arm is in a set once or not at "
            "all. Terms are about chances, and cannot ask for more than being in every set"
        )

"""Which arms there are."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer
from evenhand.typing import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """The arms present, in the order of the columns of every array about them.

    Attributes
    ----------
    ids
        (m,) the arm in each column. Ids are ascending and never reused.
    names
        A name per column, or None where arms have none.
    joined
        (m,) number of queries that had been asked when each arm joined.
    next_id
        Id of the next arm to join.

    Examples
    --------
    >>> roster = Roster.of(3, names=["ada", "bob", "cy"]).retire([1]).add(["dee"], joined=100)
    >>> roster.ids, roster.names, roster.columns([3])
    (array([0, 2, 3]), ('ada', 'cy', 'dee'), array([2]))
    """

    ids: Ints
    names: tuple[str, ...] | None
    joined: Ints
    next_id: int

    @classmethod
    def of(cls, m: int, names: Iterable[str] | None = None) -> "Roster":
        """Return the roster of arms 0..m-1, all there from the start."""
        m = check_integer("m", m, 1)
        return cls(np.arange(m), check_names(names, m), np.zeros(m, np.int64), m)

    @property
    def m(self) -> int:
        """Number of arms present."""
        return len(self.ids)

    def add(self, names: Sequence[str] | int, joined: int) -> "Roster":
        """Return the roster with newcomers: their names, or how many if arms have none."""
        if isinstance(names, str):
            raise TypeError(f"names must be a list of names or a number of arms, got {names!r}")
        given = tuple(names) if isinstance(names, Sequence) else None
        new = check_integer("names", names, 1) if given is None else len(given)
        together = None
        if self.names is not None:
            together = check_names((*self.names, *(given or ())), self.m + new)
        elif given is not None:
            raise ValueError("the arms have no names: pass how many arms to add, not names")
        ids = np.append(self.ids, self.next_id + np.arange(new))
        since = np.append(self.joined, np.full(new, check_integer("joined", joined, 0)))
        return Roster(ids, together, since, self.next_id + new)

    def retire(self, ids: ArrayLike) -> "Roster":
        """Return the roster without these arms."""
        stays = np.ones(self.m, np.bool_)
        stays[self.columns(ids)] = False
        names = self.names and tuple(np.array(self.names, object)[stays])
        return Roster(self.ids[stays], names, self.joined[stays], self.next_id)

    def columns(self, ids: ArrayLike) -> Ints:
        """Return the columns of these arms."""
        wanted = as_integers("ids", ids)
        missing = wanted[~np.isin(wanted, self.ids)]
        if missing.size:
            raise ValueError(f"ids must be of arms present, got {missing.reshape(-1)[0]}")
        return np.searchsorted(self.ids, wanted)


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

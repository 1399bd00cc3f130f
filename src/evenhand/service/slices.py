"""Which arms a page shows: searched, sorted and cut on the server."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.service.visits import Visit

PAGE = 25  # arms of a page
ASCENDING = ("name",)  # columns that begin with the smallest


class Slice(NamedTuple):
    """Places of the arms to show, and what links around them need."""

    places: list[int]
    found: int  # arms that fit the search
    number: int
    pages: int
    sort: str
    falling: bool
    q: str

    @property
    def first(self) -> int:
        """Which arm of those found is the first here, from 1."""
        return min(self.found, (self.number - 1) * PAGE + 1)

    @property
    def last(self) -> int:
        """Which arm of those found is the last here."""
        return min(self.found, self.number * PAGE)


class Sorting(NamedTuple):
    """A column's heading: where it leads, and how the column is sorted now."""

    href: str
    state: str


def cut(visit: Visit, names: Sequence[str], columns: dict[str, np.ndarray], default: str) -> Slice:
    """Search names, sort by a column and cut out a page, as the query of a visit says."""
    q = visit.asked.get("q", "")[:200]
    there = np.arange(len(names))
    if q:
        wanted = q.casefold()
        there = np.array([i for i, n in enumerate(names) if wanted in n.casefold()], np.int64)
    sort = visit.asked.get("sort", default)
    sort = sort if sort in columns or sort == "name" else default
    falling = visit.asked.get("order", "up" if sort in ASCENDING else "down") == "down"
    if sort == "name":
        listed = [names[i].casefold() for i in there.tolist()]
        order = np.array(sorted(range(len(there)), key=listed.__getitem__), np.int64)
        order = order[::-1] if falling else order
    else:
        values = columns[sort][there].astype(float)
        values = np.where(np.isnan(values), -np.inf if falling else np.inf, values)
        order = np.argsort(-values if falling else values, kind="stable")
    pages = max(1, -(-len(there) // PAGE))
    number = visit.whole("page", 1, pages)
    places = there[order][(number - 1) * PAGE : number * PAGE]
    return Slice(places.tolist(), len(there), number, pages, sort, falling, q)


def headings(visit: Visit, here: Slice, columns: Sequence[str]) -> dict[str, Sorting]:
    """Return links that sort by columns; the column sorted by turns round."""
    made = {}
    for column in columns:
        now = column == here.sort
        falling = not here.falling if now else column not in ASCENDING
        query = visit.asked_again(sort=column, order="down" if falling else "up", page=None)
        state = ("descending" if here.falling else "ascending") if now else ""
        made[column] = Sorting(f"?{query}#arms", state)
    return made


def pager(visit: Visit) -> Callable[[int], str]:
    """Return what makes links to pages."""

    def link(page: int) -> str:
        return f"?{visit.asked_again(page=page)}#arms"

    return link


def entry(column: Any, i: int) -> Any:
    """An entry of a column, None where it is not known."""
    if column is None:
        return None
    value = column[i].item()
    return None if isinstance(value, float) and not np.isfinite(value) else value

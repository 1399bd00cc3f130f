"""Points over time: few numbers per experiment, and shares and merits per arm; old ones thinned.

Web workers read them, and do not load the compiler: nothing here imports it.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.service.database import Connection

if TYPE_CHECKING:
    from evenhand.typing import Floats

BLOCK = 32  # arms of a row: few enough for SQLite to keep it in one piece
ARM = np.dtype([("due", "<f4"), ("given", "<f8"), ("merit", "<f4"), ("stderr", "<f4")])
"""Per arm: marginal due, sum of what was given so far, merit and its error; nan where unknown."""
TIERS = ((600.0, 60.0), (86400.0, 3600.0), (90 * 86400.0, 86400.0))
"""From this age on, in seconds, one point is kept per so many seconds."""
MOST = 120  # points of a chart


class Point(NamedTuple):
    """What was known at a time."""

    at: float
    queries: int
    numbers: dict[str, Any]


def write(
    c: Connection, experiment: int, at: float, numbers: dict[str, Any], arms: np.ndarray
) -> None:
    """Write a point, inside a transaction; ``arms`` has an entry of :data:`ARM` per id."""
    c.execute(
        "insert into stats(exp, at, queries, data) values(?,?,?,?) on conflict do nothing",
        (experiment, at, numbers["queries"], json.dumps(numbers)),
    )
    c.many(
        "insert into traces(exp, block, at, data) values(?,?,?,?) on conflict do nothing",
        [
            (experiment, start // BLOCK, at, arms[start : start + BLOCK].tobytes())
            for start in range(0, len(arms), BLOCK)
        ],
    )


def by_id(n: int, ids: np.ndarray, given: "Floats", **columns: "Floats") -> np.ndarray:
    """Return entries per id, for so many ids, of columns that have some of them."""
    arms = np.full(n, np.nan, ARM)
    arms["given"] = given
    for name, column in columns.items():
        arms[name][ids] = column
    return arms


def superfluous(times: Sequence[float], now: float) -> list[float]:
    """Return which of ascending times to drop: the oldest of each stretch is kept, and the newest.

    Examples
    --------
    >>> superfluous([0.0, 10.0, 50.0, 70.0, 1990.0, 2000.0], now=2000.0)
    [10.0, 50.0]
    """
    drop, last = [], None
    for at in times:
        width = max([width for age, width in TIERS if now - at >= age], default=None)
        stretch = None if width is None else (width, at // width)
        if stretch is not None and stretch == last:
            drop.append(at)
        last = stretch
    return [at for at in drop if at != times[-1]]


def thin(c: Connection, experiment: int, now: float) -> int:
    """Delete points that are too close for their age, inside a transaction; return how many."""
    times = [
        at for (at,) in c.execute("select at from stats where exp=? order by at", (experiment,))
    ]
    drop = superfluous(times, now)
    for at in drop:
        c.execute("delete from stats where exp=? and at=?", (experiment, at))
    if drop:
        blocks = c.execute(
            "select max(block) from traces where exp=? and at=?", (experiment, times[-1])
        )[0][0]
        keys = [(experiment, b, at) for at in drop for b in range((blocks or 0) + 1)]
        c.many("delete from traces where exp=? and block=? and at=?", keys)
    return len(drop)


def points(c: Connection, experiment: int, since: float, most: int = MOST) -> list[Point]:
    """Return points of a stretch of time up to now, evenly thinned, oldest first."""
    times = [
        at
        for (at,) in c.execute(
            "select at from stats where exp=? and at>=? order by at", (experiment, since)
        )
    ]
    chosen = spaced(times, most)
    if not chosen:
        return []
    found = c.execute(
        f"select at, queries, data from stats where exp=? and at in ({_marks(chosen)}) order by at",
        (experiment, *chosen),
    )
    return [Point(at, queries, json.loads(data)) for at, queries, data in found]


def point_before(c: Connection, experiment: int, at: float) -> Point | None:
    """Return the newest point that is not younger than a time, or the oldest there is."""
    for which in ("and at<=? order by at desc", "and at>? order by at"):
        found = c.execute(
            f"select at, queries, data from stats where exp=? {which} limit 1", (experiment, at)
        )
        if found:
            return Point(found[0][0], found[0][1], json.loads(found[0][2]))
    return None


def traces(
    c: Connection, experiment: int, arms: Iterable[int], times: Sequence[float]
) -> dict[int, np.ndarray]:
    """Return the entries of arms at times; nan where there is none."""
    wanted = list(arms)
    found = {arm: np.full(len(times), np.nan, ARM) for arm in wanted}
    place = {at: i for i, at in enumerate(times)}
    for block in sorted({arm // BLOCK for arm in wanted}):
        rows = c.execute(
            f"select at, data from traces where exp=? and block=? and at in ({_marks(times)})",
            (experiment, block, *times),
        )
        inside = [arm for arm in wanted if arm // BLOCK == block]
        for at, data in rows:
            entries = np.frombuffer(data, ARM)
            for arm in inside:
                if arm % BLOCK < len(entries):
                    found[arm][place[at]] = entries[arm % BLOCK]
    return found


def all_arms(c: Connection, experiment: int, at: float, n: int) -> np.ndarray:
    """Return the entries of the ids below n at a point; nan where there is none."""
    found = np.full(n, np.nan, ARM)
    for start in range(0, n, BLOCK):
        rows = c.execute(
            "select data from traces where exp=? and block=? and at=?",
            (experiment, start // BLOCK, at),
        )
        entries = np.frombuffer(rows[0][0], ARM)[: n - start] if rows else found[:0]
        found[start : start + len(entries)] = entries
    return found


def spaced(times: Sequence[float], most: int) -> list[float]:
    """Return at most so many of ascending times, evenly spaced in time, the last among them.

    Examples
    --------
    >>> spaced([0.0, 1.0, 2.0, 3.0, 100.0], 3)
    [0.0, 3.0, 100.0]
    """
    if len(times) <= most:
        return list(times)
    at = np.asarray(times)
    wanted = np.linspace(at[0], at[-1], most)
    chosen = np.unique(np.clip(np.searchsorted(at, wanted, "right") - 1, 0, len(at) - 1))
    return at[chosen].tolist()


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))

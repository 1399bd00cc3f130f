"""Rewards as they come in: the first of a row stands, and each gets a word."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from evenhand.service.database import Connection, PostgreSQLConnection

ACCEPTED = "accepted"  # durable, will be counted
DUPLICATE = "duplicate"  # told before with the same reward
CONFLICT = "conflict"  # told before with another reward, which stands
UNKNOWN = "unknown"  # no id of this experiment
REFUSED = "refused"  # a reward outside the range
EXPIRED = "expired"  # too late: the row was given up, or has its default reward
UNWANTED = "not wanted"  # nothing is learnt from this row
NOTED = "noted"  # of a row that was shown
PART = 100  # rows of a statement


class Told(NamedTuple):
    """A reward; None if it will never come."""

    experiment: int
    epoch: int
    row: int
    reward: float | None


def record(c: Connection, told: Sequence[Told]) -> list[str]:
    """Write rewards, inside a transaction, and return a word for each."""
    experiments = {one.experiment for one in told}
    c.share(experiments)  # no epoch expires between this look and the commit
    marks = ",".join("?" * len(experiments))
    oldest: dict[int, int] = dict(
        c.execute(f"select id, oldest from experiments where id in ({marks})", list(experiments))
    )
    fresh = [one for one in told if one.epoch >= oldest[one.experiment]]
    new = _insert(c, fresh)
    kept = _kept(c, [one for one in told if one[:3] not in new])
    words = []
    for one in told:
        place = one[:3]
        if place in new:
            new.discard(place)  # a second time in the same batch
            kept[place] = (one.reward, 0)
            words.append(ACCEPTED)
        elif place not in kept:
            words.append(EXPIRED)
        else:
            reward, by_default = kept[place]
            same = DUPLICATE if reward == one.reward else CONFLICT
            words.append(EXPIRED if by_default else same)
    return words


Place = tuple[int, int, int]


def _insert(c: Connection, told: Sequence[Told]) -> set[Place]:
    """Insert rewards of rows that have none; return those rows."""
    if isinstance(c, PostgreSQLConnection):
        columns = [list(column) for column in zip(*told, strict=True)] or [[], [], [], []]
        found = c.execute(
            "insert into tells(exp, epoch, row, reward, at) "
            f"select *, {c.now} from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::float8[]) "
            "on conflict do nothing returning exp, epoch, row",
            columns,
        )
        return {(x, e, r) for x, e, r in found}
    there = _kept(c, told)  # nobody writes meanwhile: one transaction does at a time
    new = {one[:3]: one for one in reversed(told) if one[:3] not in there}
    for part in batched(list(new.values())):
        marks = ",".join([f"(?,?,?,?,{c.now})"] * len(part))
        c.execute(f"insert into tells(exp, epoch, row, reward, at) values{marks}", [*chain(*part)])
    return set(new)


def _kept(c: Connection, told: Sequence[Told]) -> dict[Place, tuple[float | None, int]]:
    """Return the rewards that stand for rows, and whether they are default ones."""
    found = {}
    for part in batched([*{one[:3] for one in told}]):
        marks = ",".join(["(?,?,?)"] * len(part))
        for *place, reward, by_default in c.execute(
            f"with w(exp, epoch, row) as (values{marks}) "
            "select t.exp, t.epoch, t.row, t.reward, t.by_default from w "
            "join tells t on t.exp=w.exp and t.epoch=w.epoch and t.row=w.row",
            [*chain(*part)],
        ):
            found[tuple(place)] = (reward, by_default)
    return found


def batched(rows: list[Any]) -> Iterator[list[Any]]:
    """Rows in parts for one statement each."""
    for start in range(0, len(rows), PART):
        yield rows[start : start + PART]

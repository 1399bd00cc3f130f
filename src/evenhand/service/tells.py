"""Rewards as they come in: the first of a row stands, and each gets a word."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from evenhand.service.database import Connection, Row

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
    """Write rewards, inside a transaction, and return a word for each.

    No epoch expires between the look whether it has and the commit: SQLite has one writer at a
    time, and PostgreSQL's function takes a lock.
    """
    if c.arrays:
        return _words(c, told, c.execute(RECORD, _columns(told)))
    words = []
    for part in batched(list(told)):
        try:
            c.execute(*_all_or_none(c, part))
            words += [ACCEPTED] * len(part)
        except sqlite3.IntegrityError:
            words += _words(c, part, c.execute(*_new_ones(c, part)))
    return words


def record_alone(c: Connection, told: Sequence[Told]) -> list[str]:
    """Write rewards as a transaction of their own; return a word for each when that is durable.

    This comes most, so it is one trip to the database if it can be.
    """
    if c.arrays:
        return _words(c, told, c.alone(RECORD, _columns(told)))
    if len(told) <= PART:
        with suppress(sqlite3.IntegrityError):
            c.alone(*_all_or_none(c, told))
            return [ACCEPTED] * len(told)
    with c.transaction():
        return record(c, told)


Place = tuple[int, int, int]
RECORD = "select * from record_tells(?::bigint[], ?::bigint[], ?::bigint[], ?::float8[])"


def _columns(told: Sequence[Told]) -> list[Any]:
    """Return rewards by column, the first of each row."""
    return [list(column) for column in zip(*_first(told), strict=True)] or [[], [], [], []]


def _first(told: Sequence[Told]) -> list[Told]:
    """Return the first reward of each row."""
    return list({one[:3]: one for one in reversed(told)}.values())


def _all_or_none(c: Connection, told: Sequence[Told]) -> tuple[str, list[Any]]:
    """A statement that inserts rewards if no row has one and no epoch has expired, else fails.

    It returns nothing, so SQLite does all of it, with the commit, in one step: a thread that asks
    it for row after row would wait each time for its turn among Python's threads.
    """
    return (
        f"{_given(told)} insert into tells(exp, epoch, row, reward, at) "
        f"select w.exp, case when w.epoch>=e.oldest then w.epoch end, w.row, w.reward, {c.now} "
        "from w left join experiments e on e.id=w.exp",  # no epoch: refused, as it may not be null
        [*chain(*told)],
    )


def _new_ones(c: Connection, told: Sequence[Told]) -> tuple[str, list[Any]]:
    """A statement that inserts the first reward of rows that have none, and returns those rows."""
    first = _first(told)
    return (
        f"{_given(first)} insert into tells(exp, epoch, row, reward, at) "
        f"select w.exp, w.epoch, w.row, w.reward, {c.now} "
        "from w join experiments e on e.id=w.exp where w.epoch>=e.oldest "
        "on conflict do nothing returning exp, epoch, row",
        [*chain(*first)],
    )


def _given(told: Sequence[Told]) -> str:
    """Rewards as a table ``w`` of a statement."""
    marks = ",".join(["(?,?,?,?)"] * len(told))
    return f"with w(exp, epoch, row, reward) as (values{marks})"


def _words(c: Connection, told: Sequence[Told], inserted: Iterable[Row]) -> list[str]:
    """Return a word for each reward, given the rows that had none before."""
    new = {(x, e, r) for x, e, r in inserted}
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

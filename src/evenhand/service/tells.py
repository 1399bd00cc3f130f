"""Rewards as they come in: the first of a row stands, and each gets a word."""

from collections.abc import Sequence
from typing import NamedTuple

from evenhand.service.database import Connection, PostgreSQLConnection

ACCEPTED = "accepted"  # durable, will be counted
DUPLICATE = "duplicate"  # told before with the same reward
CONFLICT = "conflict"  # told before with another reward, which stands
UNKNOWN = "unknown"  # no id of this experiment
REFUSED = "refused"  # a reward outside the range
EXPIRED = "expired"  # too late: the row was given up, or has its default reward
UNWANTED = "not wanted"  # nothing is learnt from this row
NOTED = "noted"  # of a row that was shown


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
    return {
        one[:3]
        for one in told
        if c.change(
            "insert into tells(exp, epoch, row, reward, at) "
            f"values(?,?,?,?,{c.now}) on conflict do nothing",
            one,
        )
    }


def _kept(c: Connection, told: Sequence[Told]) -> dict[Place, tuple[float | None, int]]:
    """Return the rewards that stand for rows, and whether they are default ones."""
    found = {}
    for place in {one[:3] for one in told}:
        for reward, by_default in c.execute(
            "select reward, by_default from tells where exp=? and epoch=? and row=?", place
        ):
            found[place] = (reward, by_default)
    return found

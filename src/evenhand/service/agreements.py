"""Terms and rosters by plan: what every published plan was made on, for those who look later.

A plan holds its arms and marginals; what it does not hold changes rarely and is written then.
"""

import json
import zlib
from typing import Any, NamedTuple

from evenhand.service.database import Connection

DAY = 86400.0


class Published(NamedTuple):
    """A plan as it was published, with the terms and the paused arms then."""

    number: int
    at: float
    n: int
    k: int
    arms: list[int]
    marginals: list[float]
    terms: dict[str, Any] | None
    paused: list[int]
    shadow: bool
    since: float  # when these terms and arms began


def write(c: Connection, experiment: int, epoch: int, agreed: dict[str, Any]) -> None:
    """Write what holds from an epoch on, inside a transaction."""
    c.execute(
        f"insert into agreements(exp, epoch, at, data) values(?,?,{c.now},?) "
        "on conflict(exp, epoch) do update set data=excluded.data",
        (experiment, epoch, zlib.compress(json.dumps(agreed).encode())),
    )


def known(c: Connection, experiment: int) -> bool:
    """Whether anything was written of an experiment."""
    return bool(c.execute("select 1 from agreements where exp=? limit 1", (experiment,)))


def at_epoch(c: Connection, experiment: int, epoch: int) -> tuple[float, dict[str, Any]] | None:
    """Return what held for an epoch, and since when."""
    found = c.execute(
        "select at, data from agreements where exp=? and epoch<=? order by epoch desc limit 1",
        (experiment, epoch),
    )
    return (found[0][0], json.loads(zlib.decompress(found[0][1]))) if found else None


def number_at(c: Connection, experiment: int, at: float) -> int | None:
    """Return the number of the plan in force at a time, by halving: times ascend with numbers."""
    ends = c.execute(
        "select min(number), max(number) from epochs where exp=? and plan is not null",
        (experiment,),
    )
    low, high = ends[0]
    if low is None:
        return None
    best = None
    while low <= high:
        found = c.execute(
            "select number, at from epochs where exp=? and number>=? and plan is not null "
            "order by number limit 1",
            (experiment, (low + high) // 2),
        )
        number, published = found[0]
        if published <= at:
            best, low = number, number + 1
        else:
            high = (low + high) // 2 - 1
    return best


def neighbours(c: Connection, experiment: int, number: int) -> tuple[int | None, int | None]:
    """Return the numbers of the plans kept before and after one."""
    before = c.execute(
        "select max(number) from epochs where exp=? and number<? and plan is not null",
        (experiment, number),
    )
    after = c.execute(
        "select min(number) from epochs where exp=? and number>? and plan is not null",
        (experiment, number),
    )
    return before[0][0], after[0][0]


def published(c: Connection, experiment: int, number: int) -> Published | None:
    """Return a plan as it was published."""
    from evenhand.exchange import Plan  # when needed: it loads the compiler

    found = c.execute(
        "select n, plan, at from epochs where exp=? and number=? and plan is not null",
        (experiment, number),
    )
    if not found:
        return None
    n, data, at = found[0]
    plan = Plan.from_bytes(bytes(data))
    since, agreed = at_epoch(c, experiment, number) or (at, {})
    return Published(
        number, at, n, plan.k, plan.arms.tolist(), plan.marginals.tolist(), agreed.get("terms"),
        agreed.get("paused", []), agreed.get("shadow", False), since,
    )  # fmt: skip


def of_replica(replica: Any) -> dict[str, Any]:
    """Return what a replica's plans are made on now, by ids."""
    learner = replica.learner
    return {
        "terms": learner.terms and learner.terms.to_json(),
        "paused": sorted(learner.roster.paused),
        "arms": learner.roster.ids.tolist(),
        "shadow": replica.shadow is not None,
    }

"""What the folder says about an experiment in a few numbers: for the overview and over time."""

from typing import Any

import numpy as np

from evenhand.account import Account
from evenhand.convergence import Nearness
from evenhand.service import history
from evenhand.service.seat import Seat

HOUR = 3600.0
ENOUGH = 100.0  # sets with an arm that chance alone would hardly halve
FRESH = 3.0  # seconds for which a worker's word about its traffic counts
SOME = 20  # arms named at most


def numbers(seat: Seat, account: Account, near: Nearness | None) -> dict[str, Any]:
    """Return all single numbers, fit for JSON."""
    there = ~account.paused
    gap = np.abs(account.given - account.due)[there]
    last = account.changes[-1]._asdict() if account.changes else None
    expired = seat.c.execute("select expired from experiments where id=?", (seat.experiment,))
    rate, unlearnt = seat.c.execute(
        f"select sum(case when at>{seat.c.now}-? then rate else 0 end), sum(unlearnt) from demand "
        "where exp=?",
        (FRESH, seat.experiment),
    )[0]
    return {
        "epoch": seat.replica.next,
        "queries": account.queries,
        "told": account.told,
        "total": account.total,
        "arms": account.m,
        "paused": int(account.paused.sum()),
        "shadow": account.shadow,
        "off": _rounded(0.5 * np.nansum(gap) / account.k if account.told else np.nan),
        "distance": None if near is None else _rounded(near.distance),
        "low": None if near is None else _rounded(near.low),
        "high": None if near is None else _rounded(near.high),
        "waiting": seat.waiting(),
        "expired": int(expired[0][0]),
        "rate": round(rate or 0.0, 3),
        "unlearnt": int(unlearnt or 0),
        "starving": seat.starving[:SOME],
        "starved": len(seat.starving),
        "noticed": len(account.changes or ()),
        "last": last,
    }


def starving(seat: Seat, account: Account, now: float) -> list[int]:
    """Return arms that got less than half of what they are due, of late, and not by chance.

    That is: since the point an hour ago, or the oldest, of what they were due then or are due now,
    whichever is less.
    """
    before = history.point_before(seat.c, seat.experiment, now - HOUR)
    if before is None:
        return []
    tally, ids = seat.replica.tally, account.arms
    old = history.all_arms(seat.c, seat.experiment, before.at, len(tally.given))[ids]
    rewards = account.told - before.numbers["told"]
    sizes = account.sizes
    size = account.k if sizes is None else float(sizes @ np.arange(1, len(sizes) + 1))
    got = tally.given[ids] - old["given"]
    want = np.minimum(account.due, np.nan_to_num(old["due"])) * rewards
    few = (got < 0.5 * want) & (want * size / account.k >= ENOUGH) & ~account.paused
    return ids[np.nan_to_num(few).astype(bool)].tolist()


def entries(seat: Seat, account: Account) -> np.ndarray:
    """Return what is kept per arm of a point."""
    given = seat.replica.tally.given
    return history.by_id(
        len(given), account.arms, given,
        due=account.due, merit=account.merit, stderr=account.stderr,
    )  # fmt: skip


def _rounded(x: float) -> float | None:
    return None if np.isnan(x) else round(float(x), 7)

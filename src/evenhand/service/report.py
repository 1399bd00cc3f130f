"""What the service says about the arms of an experiment: written by its folder, read by pages."""

import json
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.account import Account
from evenhand.convergence import Nearness, nearness
from evenhand.service import history, summary
from evenhand.service.seat import Seat

EVERY = 1.0  # seconds between reports, longer for many arms
SOON, LATER = 2.0, 60.0  # seconds between points over time: at first, and later on
THIN_EVERY = 600.0  # seconds between looks at points that have grown old


def reading(seat: Seat) -> Account:
    """All that is known now about the arms."""
    replica = seat.replica
    account, tally = replica.learner.account(), replica.tally
    there = tally.there[account.arms]
    return replace(
        account,
        told=tally.told,
        total=tally.total,
        given=np.divide(
            tally.given[account.arms], there, where=there > 0, out=np.full(len(there), np.nan)
        ),
        shown=tally.shown[account.arms].astype(np.int64),
        brought=tally.brought[account.arms],
        shadow=replica.shadow is not None,
    )


def write_if_due(seat: Seat, load: float = 0.0) -> None:
    """Write a report if the last is old, and now and then a point over time.

    ``load`` is what the reports of all experiments cost, in seconds: they come less often where
    they would take more than a tenth of the time.
    """
    now = time.monotonic()
    wait = max(EVERY, seat.replica.learner.m / 1000, 10.0 * load)
    if now - seat.reported < wait or seat.replica.seq == seat.told_of:
        return
    seat.reported, seat.told_of = now, seat.replica.seq
    began = time.process_time()
    account = reading(seat)
    near = nearness(account)
    with seat.proven() as c:
        at = c.clock()
        often = max(wait, min(LATER, max(SOON, (at - seat.created) / LATER)))
        new = now - seat.series >= often
        if new:
            seat.series, seat.starving = now, summary.starving(seat, account, at)
        numbers = summary.numbers(seat, account, near)
        if new:
            history.write(c, seat.experiment, at, numbers, summary.entries(seat, account))
        c.execute(
            "insert into latest(exp, at, data, summary) values(?,?,?,?) on conflict(exp) do "
            "update set at=excluded.at, data=excluded.data, summary=excluded.summary",
            (seat.experiment, at, _as_json(seat, account, near), json.dumps(numbers)),
        )
        if now - seat.thinned >= THIN_EVERY:
            seat.thinned = now
            history.thin(c, seat.experiment, at)
    seat.cost = time.process_time() - began


def load(seats: Iterable[Seat]) -> float:
    """Return what the reports of experiments cost that had one in the last minute, in seconds."""
    since = time.monotonic() - LATER
    return sum(seat.cost for seat in seats if seat.reported >= since)


def _as_json(seat: Seat, account: Account, near: Nearness | None) -> bytes:
    """Return the account, how far the log has come, and what may be truly due."""
    said: dict[str, Any] = {"seq": seat.replica.seq, "epoch": seat.replica.next - 1}
    if near is not None:
        ends = np.round(near.ends, 7).reshape(-1)  # one list is read sooner than many of two
        said["truly"] = np.where(np.isnan(ends), None, ends).tolist()  # type: ignore[call-overload]
    return json.dumps(said | account.to_json()).encode()

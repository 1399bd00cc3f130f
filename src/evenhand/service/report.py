"""What the service says about the arms of an experiment: written by its folder, read by pages."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.service.seat import Seat

EVERY = 1.0  # seconds between reports, longer for many arms
SERIES_EVERY = 60.0  # seconds between points of a series


def reading(seat: Seat) -> dict[str, Any]:
    """All that is known now: the account of the arms, and how far the log has come."""
    replica = seat.replica
    account, tally = replica.learner.account(), replica.tally
    there = tally.there[account.arms]
    account = replace(
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
    return {"seq": replica.seq, "epoch": replica.next - 1, **account.to_json()}


def write_if_due(seat: Seat) -> None:
    """Write a report if the last is old, and now and then a point of the series."""
    now = time.monotonic()
    wait = max(EVERY, seat.replica.learner.m / 1000)
    if now - seat.reported < wait or seat.replica.seq == seat.told_of:
        return
    seat.reported, seat.told_of = now, seat.replica.seq
    data = json.dumps(reading(seat)).encode()
    c = seat.c
    with seat.proven():
        c.execute(
            f"insert into latest(exp, at, data) values(?,{c.now},?) "
            "on conflict(exp) do update set at=excluded.at, data=excluded.data",
            (seat.experiment, data),
        )
        if now - seat.series >= SERIES_EVERY:
            seat.series = now
            c.execute(
                f"insert into stats(exp, at, data) values(?,{c.now},?) on conflict do nothing",
                (seat.experiment, data),
            )

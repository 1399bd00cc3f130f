"""What the service says about the arms of an experiment: written by its folder, read by pages."""

import json
import time
from typing import Any

import numpy as np

from evenhand.policy import fair_policy
from evenhand.service.seat import Seat

EVERY = 1.0  # seconds between reports, longer for many arms
SERIES_EVERY = 60.0  # seconds between points of a series


def reading(seat: Seat) -> dict[str, Any]:
    """All that is known now, by id of arm."""
    replica = seat.replica
    learner, tally, ids = replica.learner, replica.tally, replica.learner.roster.ids
    found = learner.estimate()
    plan = learner.plan
    due = learner.marginals if plan is None else plan.marginals
    return {
        "seq": replica.seq,
        "epoch": replica.next - 1,
        "queries": learner.queries,
        "told": tally.told,
        "total": tally.total,
        "arms": ids.tolist(),
        "due": _numbers(due),
        "given": _numbers(tally.given[ids] / max(1, tally.told)),
        "shown": _numbers(tally.shown[ids]),
        "brought": _numbers(tally.brought[ids]),
        "merit": _numbers(found.merit),
        "stderr": _numbers(found.stderr),
        "intervals": None if found.intervals is None else found.intervals.tolist(),
        "shadow": None if replica.shadow is None else _by_merit(found.merit, learner.k),
        "terms": learner.terms and learner.terms.to_json(),
        "diagnostics": _diagnostics(found.diagnostics),
    }


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


def _numbers(vector: Any) -> list[float | None]:
    """As JSON: None where there is no number."""
    return [None if np.isnan(x) else x for x in np.round(vector, 9).tolist()]


def _by_merit(merit: Any, k: int) -> list[float | None]:
    """What arms would be due if they were not all shown alike."""
    return _numbers(fair_policy(np.maximum(np.nan_to_num(merit), 0.0), k))


def _diagnostics(found: Any) -> Any:
    if found is None:
        return None
    return {
        name: _numbers(value.reshape(-1)) if isinstance(value, np.ndarray) else value
        for name, value in found._asdict().items()
        if name != "effective_sample_size"
    }

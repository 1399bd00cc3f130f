"""The newest report of an experiment, as pages use it; read again when there is a newer one."""

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evenhand.account import Account
from evenhand.service.database import Connection
from evenhand.service.worker import View, Worker

if TYPE_CHECKING:
    from evenhand.typing import Floats


@dataclass(slots=True)
class Standing:
    """A report: when, the account of the arms, what is truly due at least and at most, numbers."""

    at: float
    account: Account
    ends: "Floats | None"
    numbers: dict[str, Any]
    names: list[str] = field(default_factory=list)
    version: int = -1  # of the experiment, when the names were looked up


MOST = 50  # reports kept


async def standing(worker: Worker, view: View) -> Standing | None:
    """Return the newest report, or None if there is none yet."""
    reports = worker.reports
    kept = reports.get(view.id)
    found: Standing | None = await worker.reader.do(partial(read, experiment=view.id, kept=kept))
    if found is not None and found is not kept:
        reports[view.id] = found
        while len(reports) > MOST:
            reports.pop(next(iter(reports)))
    if found is not None and found.version != view.version:
        found.names = [view.called(arm) for arm in found.account.arms.tolist()]
        found.version = view.version
    return found


def read(c: Connection, experiment: int, kept: Standing | None = None) -> Standing | None:
    """Read the newest report if it is not the one that is kept."""
    when = c.execute("select at from latest where exp=?", (experiment,))
    if not when:
        return None
    if kept is not None and kept.at == when[0][0]:
        return kept
    at, data, numbers = c.execute(
        "select at, data, summary from latest where exp=?", (experiment,)
    )[0]
    said = msgspec.json.decode(bytes(data))
    ends = said.pop("truly", None)
    return Standing(
        at,
        Account.from_json(said),
        None if ends is None else np.array(ends, np.float64).reshape(-1, 2),
        json.loads(numbers or "{}"),
    )

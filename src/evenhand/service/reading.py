"""What can be read about an experiment."""

import json
from functools import partial
from typing import Any

from evenhand import account
from evenhand.service import exports, history
from evenhand.service.database import Connection
from evenhand.service.problems import Problem
from evenhand.service.requests import Answer, Request, answered
from evenhand.service.worker import View

DIAGNOSED = (
    *("at", "seq", "epoch", "queries", "told", "total", "mixing", "sizes", "diagnostics"),
    *("changes", "shadow", "by_merit"),
)


async def receipt(request: Request) -> Answer:
    """What is known about one row."""
    view = request.view
    found = view.signer.read(request.last)
    if found is None:
        raise Problem(404, f"id must be one that ask returned, got {request.last[:80]!r}")
    said: dict[str, Any] = {"id": request.last, "learns": found.learns, "epoch": found.epoch}
    if found.learns:
        row = partial(exports.one_row, experiment=view.id, epoch=found.epoch, row=found.row)
        arms, told = await request.worker.reader.do(row)
        said["arms"] = None if arms is None else [view.called(arm) for arm in arms]
        said["told"] = told
    return answered(said)


async def _latest(request: Request) -> dict[str, Any]:
    """Return the newest report of an experiment's folder."""
    view = request.view
    found = await request.worker.reader.do(partial(_read_latest, experiment=view.id))
    if found is None:
        raise Problem(404, "there is no report yet; try again in a second")
    return found


def _read_latest(c: Connection, experiment: int) -> dict[str, Any] | None:
    found = c.execute("select at, data from latest where exp=?", (experiment,))
    return {"at": found[0][0], **json.loads(bytes(found[0][1]))} if found else None


def _by_arm(view: View, said: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = {name: said[name] or [None] * len(said["arms"]) for name in names}
    return [
        {"arm": view.called(arm)} | {name: column[i] for name, column in columns.items()}
        for i, arm in enumerate(said["arms"])
    ]


async def policy(request: Request) -> Answer:
    """What each arm is due now, and what it was given so far."""
    said = await _latest(request)
    arms = _by_arm(request.view, said, ("due", "given", "shown", "paused"))
    return answered({"at": said["at"], "k": request.view.config["k"], "arms": arms})


async def merits(request: Request) -> Answer:
    """What each arm is estimated to bring."""
    said = await _latest(request)
    arms = _by_arm(request.view, said, ("merit", "stderr", "intervals"))
    return answered({"at": said["at"], "queries": said["queries"], "arms": arms})


async def diagnostics(request: Request) -> Answer:
    """How well the merits are founded."""
    said = await _latest(request)
    return answered({name: said[name] for name in DIAGNOSED})


async def explain(request: Request) -> Answer:
    """All about one arm: why it is shown as often as it is, in numbers and in words."""
    view, said = request.view, await _latest(request)
    number = view.columns.get(request.last)
    if number is None or number not in said["arms"]:
        raise Problem(404, f"arm must be the name of one present, got {request.last[:80]!r}")
    named = {arm: view.called(arm) for arm in said["arms"]}
    why = account.explain(account.Account.from_json(said).named(named), number).to_json()
    why.pop("name")
    return answered({"at": said["at"], **why, "arm": request.last})


async def series(request: Request) -> Answer:
    """Numbers over time, oldest first: up to a thousand points, evenly spaced."""
    read = partial(history.points, experiment=request.view.id, since=0.0, most=1000)
    found = await request.worker.reader.do(read)
    return answered({"points": [{"at": point.at, **point.numbers} for point in found]})


async def arm_series(request: Request) -> Answer:
    """One arm over time, oldest first: up to a thousand points, evenly spaced."""
    view = request.view
    number = view.columns.get(request.last)
    if number is None:
        raise Problem(404, f"arm must be the name of one present, got {request.last[:80]!r}")

    def read(c: Connection) -> list[dict[str, Any]]:
        points = history.points(c, view.id, 0.0, 1000)
        found = history.traces(c, view.id, [number], [point.at for point in points])[number]
        return [
            {"at": point.at, "told": point.numbers["told"]}
            | {
                name: None if x != x else x
                for name, x in zip(history.ARM.names or (), row, strict=True)
            }
            for point, row in zip(points, found.tolist(), strict=True)
        ]

    return answered({"arm": request.last, "points": await request.worker.reader.do(read)})


async def export_csv(request: Request) -> Answer:
    """All rewards told, as CSV."""
    return Answer(exports.csv(request.worker.reader, request.view), kind="text/csv")


async def export_parquet(request: Request) -> Answer:
    """All rewards told, as Parquet."""
    body = await exports.parquet(request.worker.reader, request.view)
    return Answer(body, kind="application/vnd.apache.parquet")


def folder_alive(c: Connection) -> bool:
    """Whether a folder has been at work in the last seconds."""
    return bool(c.execute(f"select 1 from demand where exp=0 and {c.recent('at', 5.0)}"))

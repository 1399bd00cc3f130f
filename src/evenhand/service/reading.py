"""What can be read about an experiment."""

import json
from functools import partial
from typing import Any

from evenhand.service import exports
from evenhand.service.database import Connection
from evenhand.service.problems import Problem
from evenhand.service.requests import Answer, Request, answered
from evenhand.service.worker import View


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
    arms = _by_arm(request.view, said, ("due", "given", "shown"))
    return answered({"at": said["at"], "k": request.view.config["k"], "arms": arms})


async def merits(request: Request) -> Answer:
    """What each arm is estimated to bring."""
    said = await _latest(request)
    arms = _by_arm(request.view, said, ("merit", "stderr", "intervals"))
    return answered({"at": said["at"], "queries": said["queries"], "arms": arms})


async def diagnostics(request: Request) -> Answer:
    """How well the merits are founded."""
    said = await _latest(request)
    found = {n: said[n] for n in ("at", "seq", "epoch", "queries", "told", "total", "diagnostics")}
    return answered(found)


async def explain(request: Request) -> Answer:
    """All about one arm: why it is shown as often as it is."""
    view, said = request.view, await _latest(request)
    number = view.columns.get(request.last)
    if number is None or number not in said["arms"]:
        raise Problem(404, f"arm must be the name of one present, got {request.last[:80]!r}")
    names = ("due", "given", "shown", "brought", "merit", "stderr", "intervals")
    arm = _by_arm(view, said, names)[said["arms"].index(number)]
    merits = [0.0 if x is None else max(x, 0.0) for x in said["merit"]]
    own = merits[said["arms"].index(number)]
    with_it = arm["brought"] / arm["shown"] if arm["shown"] else None
    return answered(
        {
            "at": said["at"],
            **arm,
            "share_of_merit": own / sum(merits) if sum(merits) > 0 else None,
            "mean_reward_with_it": with_it,
            "mean_reward": said["total"] / said["told"] if said["told"] else None,
            "rank": 1 + sum(x > own for x in merits),
            "of": len(merits),
        }
    )


async def series(request: Request) -> Answer:
    """Reports over time, oldest first: the newest thousand."""
    view = request.view
    found = await request.worker.reader.do(partial(exports.series, experiment=view.id))
    names = {str(arm): view.called(arm) for arm in view.names}
    return answered({"names": names, "points": found})


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

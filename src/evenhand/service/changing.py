"""Changes of a running experiment, asked for over HTTP and done by its folder."""

import asyncio
import json
from functools import partial
from typing import Any

from evenhand.service import messages
from evenhand.service.asking import open_view
from evenhand.service.audit import audit
from evenhand.service.database import Connection
from evenhand.service.experiments import terms_by_id
from evenhand.service.pace import PATIENCE
from evenhand.service.problems import Problem
from evenhand.service.requests import Answer, Request, answered, within
from evenhand.service.worker import View


async def change(request: Request) -> Answer:
    """Change a running experiment: a logged call on its learner."""
    view = open_view(request.view)
    call, arguments = _translated(view, messages.read(messages.Change, request.body))

    def write(c: Connection) -> int:
        row = c.execute(
            f"insert into changes(exp, call, arguments, key, at) values(?,?,?,?,{c.now}) "
            "returning id",
            (view.id, call, json.dumps(arguments), request.key.name),
        )
        audit(c, request.key, f"change {call}", view.id, {"change": row[0][0]})
        return int(row[0][0])

    number = await within(request.worker.committer.do(write))
    return await _outcome(request, view, number, PATIENCE)


async def change_outcome(request: Request) -> Answer:
    """What became of a change."""
    if not (request.last.isascii() and request.last.isdigit() and len(request.last) < 19):
        raise Problem(404, f"the change must be given by its number, got {request.last[:80]!r}")
    return await _outcome(request, request.view, int(request.last), 0.0)


async def _outcome(request: Request, view: View, number: int, patience: float) -> Answer:
    end = request.worker.loop.time() + patience
    read = partial(_read_change, experiment=view.id, number=number)
    while (said := await request.worker.reader.do(read)) is None:
        if request.worker.loop.time() >= end:
            return answered({"id": number, "done": False}, 202)
        await asyncio.sleep(0.02)
    await request.worker.poll()
    if "refused" in said:
        raise Problem(409, said["refused"])
    return answered({"id": number, "done": True, "seq": said["seq"]})


def _read_change(c: Connection, experiment: int, number: int) -> dict[str, Any] | None:
    found = c.execute("select answer from changes where exp=? and id=?", (experiment, number))
    if not found:
        raise Problem(404, f"there is no change {number} of this experiment")
    return None if found[0][0] is None else json.loads(found[0][0])


def _translated(view: View, asked: messages.Change) -> tuple[str, dict[str, Any]]:
    """Return a change with the ids of arms instead of their names."""
    if isinstance(asked, messages.Add):
        for name in asked.arms:
            if name in view.columns or name == "*":
                raise Problem(409, f"arms must have names that none here has, got {name!r}")
        if len(set(asked.arms)) < len(asked.arms):
            raise Problem(409, "arms must have different names")
        return "add", {"n": len(asked.arms), "names": asked.arms}
    if isinstance(asked, messages.Retire | messages.Pause | messages.Resume):
        return type(asked).__name__.lower(), {"arms": [arm_id(view, name) for name in asked.arms]}
    if isinstance(asked, messages.Agree):
        return "terms", {"terms": asked.terms and terms_by_id(asked.terms, partial(arm_id, view))}
    if isinstance(asked, messages.Fix):
        return "shares", {"shares": {str(arm_id(view, n)): x for n, x in asked.shares.items()}}
    if isinstance(asked, messages.Shadow):
        return "shadow", {"on": asked.on}
    if isinstance(asked, messages.Learn):
        sets = [[arm_id(view, name) for name in one] for one in asked.sets]
        return "learn", {"sets": sets, "rewards": asked.rewards, "chances": asked.chances}
    merit = {arm_id(view, name): x for name, x in asked.merit.items()}
    stderr = {arm_id(view, name): x for name, x in asked.stderr.items()}
    if merit.keys() != stderr.keys():
        raise Problem(409, "merit and stderr must be of the same arms")
    order = sorted(merit)
    return "prior", {"merit": {a: merit[a] for a in order}, "stderr": {a: stderr[a] for a in order}}


def arm_id(view: View, name: str) -> int:
    """Return the id of an arm."""
    if name not in view.columns:
        raise Problem(404, f"arms must be given by their names, got {name[:80]!r}")
    return view.columns[name]

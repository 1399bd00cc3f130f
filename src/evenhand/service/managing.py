"""Experiments and keys: made, paused, archived, revoked."""

import asyncio
import json
import time
from typing import Any

from evenhand.service import experiments, keys, messages
from evenhand.service.audit import audit
from evenhand.service.changing import arm_id
from evenhand.service.database import Connection
from evenhand.service.problems import Problem
from evenhand.service.receipts import new_secret
from evenhand.service.requests import Answer, Request, answered, within
from evenhand.service.worker import View


def _summary(view: View) -> dict[str, Any]:
    config = view.config
    return {
        "name": view.name,
        "learner": config["learner"],
        "arms": len(view.columns),
        "k": config["k"],
        "rewards": view.rewards,
        "created": view.created,
        "paused": view.paused,
        "archived": view.archived,
        "broken": view.broken,
    }


async def list_experiments(request: Request) -> Answer:
    """All experiments that the key may see."""
    only = request.key.experiment
    found = [v for v in request.worker.views.values() if only is None or v.id == only]
    return answered({"experiments": [_summary(view) for view in found]})


async def show(request: Request) -> Answer:
    """One experiment."""
    return answered(_summary(request.view))


async def create(request: Request) -> Answer:
    """Make an experiment."""
    new = messages.read(messages.New, request.body)
    try:
        ready = await asyncio.to_thread(experiments.prepare, new)

        def write(c: Connection) -> None:
            number = experiments.create(c, ready)
            audit(c, request.key, "create", number, {"name": new.name, "arms": len(new.arms)})

        await within(request.worker.committer.do(write))
    except experiments.Exists as error:
        raise Problem(409, str(error)) from None
    except (ValueError, TypeError) as error:
        raise Problem(422, str(error)) from None
    await request.worker.poll()
    return answered(_summary(request.worker.view(new.name)), 201)


async def _set(request: Request, action: str, assignments: str, values: tuple[Any, ...]) -> Answer:
    """Change columns of an experiment, with a line in the audit."""
    view = request.view

    def write(c: Connection) -> None:
        c.execute(
            f"update experiments set {assignments}, version=version+1 where id=?",
            (*values, view.id),
        )
        audit(c, request.key, action, view.id, {})

    await within(request.worker.committer.do(write))
    await request.worker.poll()
    return answered(_summary(view))


async def pause(request: Request) -> Answer:
    """Hand out no rows until resumed; rewards are still taken."""
    return await _set(request, "pause", "paused=?", (1,))


async def resume(request: Request) -> Answer:
    """Hand out rows again; a folder that could not go on tries again."""
    return await _set(request, "resume", "paused=?, broken=null", (0,))


async def archive(request: Request) -> Answer:
    """Close an experiment for good; what it holds stays readable."""
    return await _set(request, "archive", "archived=coalesce(archived, ?)", (time.time(),))


async def rotate(request: Request) -> Answer:
    """Sign receipts with a new secret; the one before is still known, older ones no more."""
    view = request.view
    found = await request.worker.reader.do(
        lambda c: c.execute("select secrets from experiments where id=?", (view.id,))
    )
    fresh = [new_secret(), *json.loads(found[0][0])][:2]
    return await _set(request, "rotate", "secrets=?", (json.dumps(fresh),))


async def erase(request: Request) -> Answer:
    """Forget the names of arms, for good."""
    view = request.view
    ids = [arm_id(view, name) for name in messages.read(messages.Erase, request.body).arms]

    def write(c: Connection) -> None:
        c.many("update arms set name=null where exp=? and id=?", [(view.id, arm) for arm in ids])
        c.execute("update changes set arguments='{}' where exp=? and done is not null", (view.id,))
        c.execute("delete from requests where exp=?", (view.id,))
        c.execute("update experiments set version=version+1 where id=?", (view.id,))
        audit(c, request.key, "erase", view.id, {"ids": ids})

    await within(request.worker.committer.do(write))
    await request.worker.poll()
    return answered(_summary(view))


async def list_keys(request: Request) -> Answer:
    """All keys that are not revoked, without the keys themselves."""
    rows = await request.worker.reader.do(keys.read)
    names = {view.id: view.name for view in request.worker.views.values()}
    found = [
        {"id": n, "name": name, "scopes": s.split(), "experiment": names.get(x), "expires": e}
        for n, name, _, s, x, e in rows
    ]
    return answered({"keys": found})


async def make_key(request: Request) -> Answer:
    """Make a key; it is shown this once."""
    new = messages.read(messages.NewKey, request.body)
    only = None if new.experiment is None else request.worker.view(new.experiment).id

    def write(c: Connection) -> tuple[int, str]:
        number, token = keys.issue(c, new.name, new.scopes, only, new.expires)
        audit(c, request.key, "key", only, {"id": number, "scopes": new.scopes})
        return number, token

    try:
        number, token = await within(request.worker.committer.do(write))
    except ValueError as error:
        raise Problem(409, str(error)) from None
    await request.worker.poll()
    return answered({"id": number, "key": token}, 201)


async def revoke_key(request: Request) -> Answer:
    """Revoke a key."""
    if not (request.last.isascii() and request.last.isdigit() and len(request.last) < 19):
        raise Problem(404, f"the key must be given by its number, got {request.last[:80]!r}")
    number = int(request.last)

    def write(c: Connection) -> int:
        done = c.change(
            f"update keys set revoked={c.now} where id=? and revoked is null", (number,)
        )
        if done:
            audit(c, request.key, "revoke", None, {"id": number})
        return done

    if not await within(request.worker.committer.do(write)):
        raise Problem(404, f"there is no key {number} to revoke")
    await request.worker.poll()
    return answered({"id": number, "revoked": True})

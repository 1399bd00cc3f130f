"""What the service does when asked: one function per route."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from evenhand.service import experiments, exports, keys, messages, tells
from evenhand.service.committer import Unavailable
from evenhand.service.database import Connection
from evenhand.service.keys import Key
from evenhand.service.pace import PATIENCE
from evenhand.service.problems import Problem
from evenhand.service.receipts import UNLEARNT, Receipt, new_secret
from evenhand.service.stock import Drawn
from evenhand.service.tells import Told
from evenhand.service.worker import View, Worker

JSON = "application/json"


@dataclass(slots=True)
class Request:
    """A request that was let in."""

    worker: Worker
    key: Key
    experiment: str  # as in the path, or ""
    last: str  # last part of the path, where it is a name
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def view(self) -> View:
        """The experiment of the path."""
        return self.worker.view(self.experiment)

    def header(self, name: bytes) -> str | None:
        """Return a header."""
        return next((v.decode("latin-1") for n, v in self.headers if n == name), None)


@dataclass(slots=True)
class Answer:
    """A body, whole or in parts, and what it is."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    kind: str = JSON


def answered(content: Any, status: int = 200) -> Answer:
    """Return content as JSON."""
    return Answer(msgspec.json.encode(content), status)


async def within(future: "asyncio.Future[Any]") -> Any:
    """Wait for the database, but not for ever; what it does later does no harm."""
    try:
        return await asyncio.wait_for(asyncio.shield(future), PATIENCE)
    except TimeoutError:
        raise Unavailable("the database takes too long") from None


# ---- ask and tell ----


async def ask(request: Request) -> Answer:
    """Which arms to show: one row or many."""
    view = _open(request.view)
    n = messages.read(messages.Ask, request.body).n if request.body else 1
    request.key.spend(n)
    twice = request.header(b"idempotency-key")
    if twice is not None:
        return await _ask_once(request, view, n, twice)
    drawn = await _draw(request.worker, view, n)
    if view.rewards.get("activation") == "ask":
        await within(_note_shown(request.worker, view, [d for d in drawn if d.learns]))
    return Answer(render(view, drawn))


async def _draw(worker: Worker, view: View, n: int) -> list[Drawn]:
    stock, drawn = view.stock, list[Drawn]()
    fresh = worker.fresh
    while len(drawn) < n:
        row = stock.take() if fresh else None
        if row is None:
            row = await stock.wait(worker.fresh)
            fresh = worker.fresh
        drawn.append(row)
    return drawn


def render(view: View, drawn: list[Drawn]) -> bytes:
    """Return rows as JSON, arms by name."""
    parts = []
    for epoch, row, arms, learns in drawn:
        code = view.signer.sign(epoch, row, "" if learns else UNLEARNT).encode()
        names = b",".join([view.encoded[arm] for arm in arms])
        parts.append(
            b'{"id":"%s","arms":[%s],"learns":%s}' % (code, names, b"true" if learns else b"false")
        )
    return b'{"decisions":[' + b",".join(parts) + b"]}"


async def _ask_once(request: Request, view: View, n: int, twice: str) -> Answer:
    """Answer a request that may be sent again with the same rows, whichever worker gets it."""
    if not 1 <= len(twice) <= 200:
        raise Problem(400, f"Idempotency-Key must have 1 to 200 characters, got {len(twice)}")
    drawn = await _draw(request.worker, view, n)
    answer, digest = render(view, drawn), hashlib.sha256(b"%d" % n).digest()
    learnt = [d for d in drawn if d.learns]
    waits = view.rewards.get("activation") == "ask"

    def keep(c: Connection) -> tuple[bytes, bytes]:
        new = c.change(
            "insert into requests(exp, key, digest, answer, at) "
            f"values(?,?,?,?,{c.now}) on conflict do nothing",
            (view.id, twice, digest, answer),
        )
        if new:
            if waits:
                _write_shown(c, view.id, learnt)
            return digest, answer
        found = c.execute(
            "select digest, answer from requests where exp=? and key=?", (view.id, twice)
        )
        return bytes(found[0][0]), bytes(found[0][1])

    before, kept = await within(request.worker.committer.do(keep))
    if before != digest:
        raise Problem(
            409, "Idempotency-Key must be new for another request: it was used with another n"
        )
    return Answer(kept)


async def tell(request: Request) -> Answer:
    """What came of rows: a word for each."""
    view = request.view
    given = messages.read(messages.Tell, request.body).tells
    request.key.spend(len(given))
    low, high = view.rewards["low"], view.rewards["high"]
    words, told = list[str](), list[Told]()
    for one in given:
        receipt, y = view.signer.read(one.id), one.reward
        if receipt is None:
            words.append(tells.UNKNOWN)
        elif not receipt.learns:
            words.append(tells.UNWANTED)
        elif y is not None and not low <= y <= high:
            words.append(tells.REFUSED)
        else:
            words.append("")
            told.append(Told(view.id, receipt.epoch, receipt.row, y))
    if told:
        found = iter(await within(request.worker.committer.tell(told)))
        words = [word or next(found) for word in words]
    return answered({"results": words})


async def shown(request: Request) -> Answer:
    """Which rows were really shown: from then on their window runs."""
    view = request.view
    given = messages.read(messages.Shown, request.body).ids
    request.key.spend(len(given))
    receipts = [view.signer.read(one) for one in given]
    wanted = view.rewards.get("activation") == "shown"
    noted = [r for r in receipts if r is not None and r.learns]
    if wanted and noted:
        await within(_note_shown(request.worker, view, noted))
    words = [
        tells.UNKNOWN if r is None else tells.NOTED if wanted and r.learns else tells.UNWANTED
        for r in receipts
    ]
    return answered({"results": words})


def _note_shown(
    worker: Worker, view: View, drawn: list[Drawn] | list[Receipt]
) -> "asyncio.Future[Any]":
    return worker.committer.do(partial(_write_shown, experiment=view.id, drawn=drawn))


def _write_shown(c: Connection, experiment: int, drawn: list[Any]) -> None:
    c.many(
        f"insert into shown(exp, epoch, row, at) values(?,?,?,{c.now}) on conflict do nothing",
        [(experiment, one.epoch, one.row) for one in drawn],
    )


def _open(view: View) -> View:
    """Refuse to hand out rows of an experiment that rests."""
    if view.archived:
        raise Problem(409, f"experiment {view.name} is archived; make a new one")
    if view.paused:
        raise Problem(409, f"experiment {view.name} is paused; POST .../resume first")
    return view


# ---- reading ----


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


# ---- experiments and keys ----


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
        raise Problem(409, str(error)) from None
    await request.worker.poll()
    return answered(_summary(request.worker.view(new.name)), 201)


async def change(request: Request) -> Answer:
    """Change a running experiment: a logged call on its learner."""
    view = _open(request.view)
    call, arguments = _translated(view, messages.read(messages.Change, request.body))

    def write(c: Connection) -> int:
        audit(c, request.key, f"change {call}", view.id, {})
        row = c.execute(
            f"insert into changes(exp, call, arguments, key, at) values(?,?,?,?,{c.now}) "
            "returning id",
            (view.id, call, json.dumps(arguments), request.key.name),
        )
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
        return type(asked).__name__.lower(), {"arms": [_arm(view, name) for name in asked.arms]}
    if isinstance(asked, messages.Agree):
        return "terms", {"terms": asked.terms and _terms(view, asked.terms)}
    if isinstance(asked, messages.Fix):
        return "shares", {"shares": {str(_arm(view, n)): x for n, x in asked.shares.items()}}
    if isinstance(asked, messages.Shadow):
        return "shadow", {"on": asked.on}
    if isinstance(asked, messages.Learn):
        sets = [[_arm(view, name) for name in one] for one in asked.sets]
        return "learn", {"sets": sets, "rewards": asked.rewards, "chances": asked.chances}
    merit = {_arm(view, name): x for name, x in asked.merit.items()}
    stderr = {_arm(view, name): x for name, x in asked.stderr.items()}
    if merit.keys() != stderr.keys():
        raise Problem(409, "merit and stderr must be of the same arms")
    order = sorted(merit)
    return "prior", {"merit": {a: merit[a] for a in order}, "stderr": {a: stderr[a] for a in order}}


def _terms(view: View, terms: messages.Terms) -> dict[str, Any]:
    """Return terms with ids instead of names."""
    said: dict[str, Any] = {"unit": terms.unit, "power": terms.power}
    for name in ("floors", "caps"):
        given = getattr(terms, name)
        if isinstance(given, dict):
            given = {n if n == "*" else str(_arm(view, n)): x for n, x in given.items()}
        said[name] = given
    groups = terms.groups or {}
    said["groups"] = {
        name: {"arms": [_arm(view, n) for n in g.arms], "floor": g.floor, "cap": g.cap}
        for name, g in groups.items()
    }
    return said


def _arm(view: View, name: str) -> int:
    if name not in view.columns:
        raise Problem(404, f"arms must be given by their names, got {name[:80]!r}")
    return view.columns[name]


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
    """Hand out rows again."""
    return await _set(request, "resume", "paused=?", (0,))


async def archive(request: Request) -> Answer:
    """Close an experiment for good; what it holds stays readable."""
    return await _set(request, "archive", "archived=coalesce(archived, ?)", (_now(request),))


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
    ids = [_arm(view, name) for name in messages.read(messages.Erase, request.body).arms]

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


def audit(c: Connection, key: Key, action: str, experiment: int | None, detail: Any) -> None:
    """Write who did what."""
    c.execute(
        f"insert into audit(at, key, action, exp, detail) values({c.now},?,?,?,?)",
        (f"{key.id} {key.name}", action, experiment, json.dumps(detail)),
    )


def _now(request: Request) -> float:
    import time

    return time.time()


def folder_alive(c: Connection) -> bool:
    """Whether a folder has been at work in the last seconds."""
    return bool(c.execute(f"select 1 from demand where exp=0 and at>{c.now}-5"))

"""Ask, tell and shown: what happens thousands of times per second."""

import asyncio
import hashlib
from functools import partial
from typing import Any

from evenhand.service import messages, tells
from evenhand.service.committer import Unavailable
from evenhand.service.database import Connection
from evenhand.service.problems import Problem
from evenhand.service.receipts import UNLEARNT, Receipt
from evenhand.service.requests import Answer, Request, answered, within
from evenhand.service.stock import Drawn
from evenhand.service.tells import Told
from evenhand.service.worker import View, Worker


async def ask(request: Request) -> Answer:
    """Which arms to show: one row or many."""
    view = open_view(request.view)
    n = messages.read(messages.Ask, request.body).n if request.body else 1
    request.key.spend(n)
    twice = request.header(b"idempotency-key")
    if twice is not None:
        return await _ask_once(request, view, n, twice)
    drawn = await _draw(request.worker, view, n)
    if view.rewards.get("activation") == "ask":
        await within(_note_shown(request.worker, view, [d for d in drawn if d.learns]))
    return Answer(await _rendered(request.worker, view, drawn))


async def _draw(worker: Worker, view: View, n: int) -> list[Drawn]:
    stock, fresh = view.stock, worker.fresh
    if n == 1 and fresh and (row := stock.take()):
        return [row]
    drawn = list[Drawn]()
    while len(drawn) < n:
        row = stock.take() if fresh else None
        if row is None:
            row = await stock.wait(worker.fresh, n - len(drawn))
            fresh = worker.fresh
        drawn.append(row)
    return drawn


async def _rendered(worker: Worker, view: View, drawn: list[Drawn]) -> bytes:
    try:
        return render(view, drawn)
    except KeyError:  # an arm that has just joined
        await worker.poll()
    try:
        return render(view, drawn)
    except KeyError:
        raise Unavailable("rows hold an arm that is not known here") from None


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
    """Answer a request that may be sent again with the same rows, whichever worker gets it.

    Only to the same key: others who guess what it sends must not get the receipts of its rows.
    """
    if not 1 <= len(twice) <= 200:
        raise Problem(400, f"Idempotency-Key must have 1 to 200 characters, got {len(twice)}")
    drawn = await _draw(request.worker, view, n)
    answer = await _rendered(request.worker, view, drawn)
    digest = hashlib.sha256(b"%d" % n).digest()
    own = f"{request.key.id}:{twice}"
    learnt = [d for d in drawn if d.learns]
    waits = view.rewards.get("activation") == "ask"

    def keep(c: Connection) -> tuple[bytes, bytes]:
        new = c.change(
            "insert into requests(exp, key, digest, answer, at) "
            f"values(?,?,?,?,{c.now}) on conflict do nothing",
            (view.id, own, digest, answer),
        )
        if new:
            if waits:
                _write_shown(c, view.id, learnt)
            return digest, answer
        found = c.execute(
            "select digest, answer from requests where exp=? and key=?", (view.id, own)
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
    if view.archived:
        raise Problem(409, f"experiment {view.name} is archived: no more rewards are taken")
    given = messages.read(messages.Tell, request.body).tells
    request.key.spend(len(given))
    words, told = sorted_out(view, given)
    if told:
        found = iter(await within(request.worker.committer.tell(told)))
        words = [word or next(found) for word in words]
    return answered({"results": words})


def sorted_out(view: View, given: list[messages.Reward]) -> tuple[list[str], list[Told]]:
    """Return a word for each reward, empty where the database has it, and those to record."""
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
    return words, told


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


def open_view(view: View) -> View:
    """Refuse to hand out rows of an experiment that rests."""
    if view.archived:
        raise Problem(409, f"experiment {view.name} is archived; make a new one")
    if view.paused:
        raise Problem(409, f"experiment {view.name} is paused; POST .../resume first")
    return view

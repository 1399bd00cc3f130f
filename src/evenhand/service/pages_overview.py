"""The overview: all experiments, how they stand, and what needs attention."""

import json
import time
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from evenhand.pages.words import number
from evenhand.service import history
from evenhand.service.database import Connection
from evenhand.service.reading import folder_alive
from evenhand.service.requests import Answer
from evenhand.service.visits import Visit
from evenhand.service.worker import View

HOUR, DAY = 3600.0, 86400.0
STALE = 60.0  # seconds after which a report is old, if there is traffic
FRESH = 3.0  # seconds for which a worker's word about its traffic counts
LITTLE = 0.01  # of answers that may teach nothing
FEW = 0.5  # of rows handed out that should be told
SOME = 200  # rows below which nothing is said about missing rewards
PAGE = 50  # experiments of a page


class Note(NamedTuple):
    """Something that a person should know: bad, warn or good; and in words."""

    kind: str
    words: str


class Facts(NamedTuple):
    """What is known about an experiment in a few numbers.

    ``numbers`` are those of the newest report, written at ``at``; ``before`` those of an hour ago;
    ``handed`` are rows handed out since then, ``unlearnt`` answers that taught nothing.
    """

    at: float | None
    numbers: dict[str, Any]
    before: history.Point | None
    handed: int
    rate: float
    unlearnt: int
    noticed_at: float | None
    folder: bool


async def overview(visit: Visit) -> Answer:
    """All experiments that the key may see."""
    key, now = visit.session.key, time.time()
    assert key is not None
    views = [v for v in visit.worker.views.values() if key.experiment in (None, v.id)]
    views.sort(key=lambda view: (view.archived, view.name))
    searched = visit.asked.get("q", "")
    views = [view for view in views if searched.casefold() in view.name]
    page = visit.whole("page", 1, max(1, -(-len(views) // PAGE)))
    some = views[(page - 1) * PAGE : page * PAGE]
    found = await visit.worker.reader.do(partial(facts, experiments=[v.id for v in some]))
    rows = [row(view, found[view.id], now) for view in some]
    return visit.page(
        "overview.html",
        rows=rows,
        total=len(views),
        q=searched,
        number=page,
        pages=max(1, -(-len(views) // PAGE)),
        attention=sum(any(n.kind != "good" for n in row["notes"]) for row in rows),
        link=lambda page: "/?" + visit.asked_again(page=page),
    )


def row(view: View, found: Facts, now: float) -> dict[str, Any]:
    """Return what the overview shows of one experiment."""
    said, before = found.numbers, found.before
    told, total = said.get("told", 0), said.get("total") or 0.0
    recent = told - before.numbers["told"] if before else 0
    return {
        "name": view.name,
        "href": f"/experiments/{quote(view.name, safe='')}",
        "state": state(view, found),
        "arms": said.get("arms", len(view.columns)),
        "k": view.config["k"],
        "rate": found.rate,
        "told": told,
        "reward": _ratio((total - before.numbers["total"]) if before and recent else total,
                         recent if before and recent else told),
        "off": said.get("off"),
        "distance": said.get("distance"),
        "notes": attention(view, found, now),
    }  # fmt: skip


def _ratio(x: float, n: float) -> float | None:
    return x / n if n else None


def state(view: View, found: Facts) -> Note:
    """Return the state of an experiment, in a word or two."""
    if view.archived:
        return Note("", "archived")
    if view.broken:
        return Note("bad", "broken")
    if view.paused:
        return Note("warn", "paused")
    if found.numbers.get("shadow"):
        return Note("warn", "shadow mode")
    if not found.folder:
        return Note("bad", "not learning")
    return Note("good", "running")


def attention(view: View, found: Facts, now: float) -> list[Note]:
    """Return what a person should look at, the worst first."""
    said, notes = found.numbers, list[Note]()
    if view.archived:
        return notes
    if view.broken:
        notes.append(
            Note("bad", f"Its folder cannot go on: {view.broken}. Resume makes it try again.")
        )
    if not found.folder:
        notes.append(Note("bad", "No folder is at work: arms are shown, but nothing is learnt."))
    elif found.at is not None and found.rate > 0.0 and now - found.at > STALE:
        notes.append(
            Note("warn", f"No report for {now - found.at:.0f} seconds, though rows are asked.")
        )
    answers = found.handed + found.unlearnt
    if found.unlearnt > LITTLE * answers:
        notes.append(
            Note("warn", f"{number(found.unlearnt)} of {number(answers)} answers of the last hour "
                 "taught nothing: rows had run out, or the database was away.")
        )  # fmt: skip
    if said.get("starved"):
        names = ", ".join(view.called(arm) for arm in said["starving"][:3])
        more = f" and {said['starved'] - 3} more" if said["starved"] > 3 else ""
        what = "gets" if said["starved"] == 1 else "get"
        notes.append(Note("warn", f"{names}{more} {what} less than half of what is due, of late."))
    if view.rewards["mode"] == "explicit":  # else the default comes when the window ends
        notes += _missing(found)
    if found.noticed_at is not None and now - found.noticed_at < DAY:
        last = said["last"]
        how = "alone" if last["alone"] else "together with others"
        notes.append(
            Note("warn", f"A change was noticed: {view.called(last['arm'])} brings something else "
                 f"{how}.")
        )  # fmt: skip
    if view.paused:
        notes.append(Note("warn", "Paused: no rows are handed out; rewards are still taken."))
    if not said.get("told") and not notes:
        notes.append(Note("good", "No rewards yet: all arms are shown alike until some come in."))
    return notes


def _missing(found: Facts) -> list[Note]:
    """Whether rewards stay away: rows handed out since an hour ago against rewards that came."""
    if found.before is None or found.handed < SOME:
        return []
    came = found.numbers["told"] - found.before.numbers["told"]
    if came >= FEW * found.handed:
        return []
    return [
        Note("warn", f"Rewards are missing: {number(found.handed)} rows were handed out in the "
             f"last hour, and {number(came)} rewards came.")
    ]  # fmt: skip


def facts(c: Connection, experiments: list[int]) -> dict[int, Facts]:
    """Read the numbers of experiments."""
    now, alive = c.clock(), folder_alive(c)
    rates: dict[int, float] = dict(
        c.execute(f"select exp, sum(rate) from demand where at>{c.now}-? group by exp", (FRESH,))
    )
    lost: dict[int, int] = dict(c.execute("select exp, sum(unlearnt) from demand group by exp"))
    found = {}
    for one in experiments:
        rows = c.execute("select at, summary from latest where exp=?", (one,))
        at, said = (rows[0][0], json.loads(rows[0][1] or "{}")) if rows else (None, {})
        before = history.point_before(c, one, now - HOUR)
        handed = 0 if before is None else c.execute(
            "select coalesce(sum(stop-first), 0) from leases where exp=? and epoch>=?",
            (one, before.numbers["epoch"]),
        )[0][0]  # fmt: skip
        noticed = None
        if said.get("last"):
            noticed = (
                c.execute(
                    "select min(at) from stats where exp=? and queries>=?",
                    (one, said["last"]["queries"]),
                )[0][0]
                or at
            )
        unlearnt = int(lost.get(one) or 0) - (before.numbers["unlearnt"] if before else 0)
        found[one] = Facts(
            at, said, before, int(handed), rates.get(one) or 0.0, max(0, unlearnt), noticed,
            alive,
        )  # fmt: skip
    return found

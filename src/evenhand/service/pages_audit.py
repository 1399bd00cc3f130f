"""Who changed what, and when."""

import csv
import io
import json
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from evenhand.service import happenings
from evenhand.service.database import Connection
from evenhand.service.requests import Answer
from evenhand.service.visits import Visit
from evenhand.service.worker import View

PAGE = 50  # lines of a page
MOST = 100_000  # lines of a file
WORDS: dict[str, str] = {
    "create": "made the experiment", "pause": "paused the experiment",
    "resume": "resumed the experiment", "archive": "archived the experiment",
    "rotate": "changed the secret of receipts", "erase": "erased names of arms",
    "key": "made a key", "revoke": "revoked a key", "log in": "logged in to the pages",
}  # fmt: skip


class Line(NamedTuple):
    """A line of the audit."""

    number: int
    at: float
    key: str
    experiment: str
    what: str
    outcome: str


async def of_experiment(visit: Visit) -> Answer:
    """What was done to one experiment."""
    return await _page(visit, visit.view)


async def everything(visit: Visit) -> Answer:
    """What was done to everything, keys included."""
    return await _page(visit, None)


async def export_experiment(visit: Visit) -> Answer:
    """The same as a file."""
    return await _export(visit, visit.view)


async def export_everything(visit: Visit) -> Answer:
    """The same as a file."""
    return await _export(visit, None)


async def _page(visit: Visit, view: View | None) -> Answer:
    number = visit.whole("page", 1, 10**9)
    read = partial(lines, view=view, views=_views(visit), first=(number - 1) * PAGE, n=PAGE)
    total, found = await visit.worker.reader.do(read)
    return visit.page(
        "audit.html",
        view=view,
        base="" if view is None else f"/experiments/{quote(view.name, safe='')}",
        lines=found,
        number=number,
        pages=max(1, -(-total // PAGE)),
        total=total,
        link=lambda page: "?" + visit.asked_again(page=page),
    )


async def _export(visit: Visit, view: View | None) -> Answer:
    read = partial(lines, view=view, views=_views(visit), first=0, n=MOST)
    _, found = await visit.worker.reader.do(read)
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    out.writerow(Line._fields)
    out.writerows([harmless(x) for x in line] for line in found)
    return as_file(file.getvalue(), "audit.csv")


def _views(visit: Visit) -> dict[int, View]:
    return {view.id: view for view in visit.worker.views.values()}


def harmless(x: Any) -> Any:
    """Return a field that a spreadsheet does not take for a formula."""
    return "'" + x if isinstance(x, str) and x[:1] in ("=", "+", "-", "@", "\t", "\r") else x


def as_file(text: str, name: str) -> Answer:
    """Return a file to be saved."""
    headers = [
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Answer(text.encode(), 200, "text/csv; charset=utf-8", headers)


def lines(
    c: Connection, view: View | None, views: dict[int, View], first: int, n: int
) -> tuple[int, list[Line]]:
    """Read lines of the audit, newest first, and how many there are in all."""
    which, values = ("", ()) if view is None else (" where exp=?", (view.id,))
    total = c.execute(f"select count(*) from audit{which}", values)[0][0]
    found = c.execute(
        f"select id, at, key, action, exp, detail from audit{which} order by id desc "
        "limit ? offset ?",
        (*values, n, first),
    )
    made = []
    for number, at, key, action, experiment, detail in found:
        said, of = json.loads(detail), views.get(experiment)
        what, outcome = str(WORDS.get(action, action)), ""
        if action.startswith("change ") and of is not None and "change" in said:
            what, outcome = _change(c, of, said["change"])
        elif action in ("key", "revoke"):
            what += f" (number {said.get('id')}" + (
                f", {' and '.join(said['scopes'])})" if "scopes" in said else ")"
            )
        elif action == "erase":
            what += f" ({len(said.get('ids', ()))})"
        name = of.name if of else ("" if experiment is None else f"number {experiment}")
        made.append(Line(number, at, key, name, what, outcome))
    return total, made


def _change(c: Connection, view: View, number: int) -> tuple[str, str]:
    """Say what a change was and what became of it."""
    found = c.execute(
        "select call, arguments, answer from changes where exp=? and id=?", (view.id, number)
    )
    if not found:
        return f"change {number}", ""
    call, arguments, answer = found[0]
    said, became = json.loads(arguments), json.loads(answer or "{}")
    ids = became.get("answer") if call == "add" else said.get("arms")
    what = happenings.in_words(view, call, said, ids)
    if "refused" in became:
        return what, f"refused: {became['refused']}"
    return what, "done" if became else "waiting"

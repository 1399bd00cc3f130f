"""Pages for people: who may see which, and what their forms do."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from evenhand.pages.render import KINDS, render, static_files, static_url
from evenhand.service import (
    managing,
    pages_actions,
    pages_arm,
    pages_audit,
    pages_experiment,
    pages_overview,
    pages_plans,
    sessions,
)
from evenhand.service.audit import audit
from evenhand.service.committer import Unavailable
from evenhand.service.problems import TITLES, Problem
from evenhand.service.requests import Answer, within
from evenhand.service.visits import HTML, Visit, see_other, shown
from evenhand.service.worker import Worker

FORM = 1 << 16  # bytes of a form
FIELDS = 50  # of a form or an address
SAFE = [
    (b"content-security-policy",
     b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
     b"object-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]  # fmt: skip
HERE = re.compile(r"/(?![/\\])[!-~]*")  # an address of this service: browsers drop tabs
FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")

Show = Callable[[Visit], Awaitable[Answer]]


class Page(NamedTuple):
    """What a path shows or does, and the scope that is needed."""

    show: Show
    scope: str
    method: str = "GET"


PAGES: dict[str, Page] = {
    "/": Page(pages_overview.overview, "read"),
    "/audit": Page(pages_audit.everything, "admin"),
    "/audit.csv": Page(pages_audit.export_everything, "admin"),
    "/experiments/*": Page(pages_experiment.experiment, "read"),
    "/experiments/*/arms/*": Page(pages_arm.arm, "read"),
    "/experiments/*/audit": Page(pages_audit.of_experiment, "read"),
    "/experiments/*/audit.csv": Page(pages_audit.export_experiment, "read"),
    "/experiments/*/plans": Page(pages_plans.plan, "read"),
    "/experiments/*/plan.csv": Page(pages_plans.export, "read"),
    "/experiments/*/recompute": Page(pages_plans.recompute, "read", "POST"),
    "/experiments/*/pause": Page(pages_actions.of_experiment(managing.pause), "admin", "POST"),
    "/experiments/*/resume": Page(pages_actions.of_experiment(managing.resume), "admin", "POST"),
    "/experiments/*/arm": Page(pages_actions.of_arm, "admin", "POST"),
}


NAMES = {*PAGES, "/login", "/logout", "/static", "page"}  # for counting


def is_page(path: bytes) -> bool:
    """Whether a path belongs to the pages, and not to the API."""
    first = path.split(b"/")[1] if path.startswith(b"/") else b"-"
    return first in (b"", b"login", b"logout", b"static", b"experiments", b"audit", b"audit.csv",
                     b"favicon.ico")  # fmt: skip


def placed(path: bytes) -> tuple[str, list[str]]:
    """Return the name of a page's path, with ``*`` for names in it, and those names."""
    parts = path.decode("ascii", "replace").split("/")
    if parts[1] != "experiments" or len(parts) > 5:
        return path.decode("ascii", "replace"), []
    named = []
    for place in (2, 4):
        if len(parts) > place:
            named.append(unquote(parts[place]))
            parts[place] = "*"
    return "/".join(parts), named


async def answer(
    worker: Worker, scope: Any, body: Callable[..., Awaitable[bytes]]
) -> tuple[Answer, str]:
    """Answer a request for a page; return the name of its path too."""
    path, name = scope["raw_path"], "page"
    if path.startswith((b"/static/", b"/favicon.ico")):
        return _static(path.decode("ascii", "replace")), "/static"
    headers = scope["headers"]
    session = sessions.Session("", None)
    try:
        session = await sessions.find(worker, headers)
        name, named = placed(path)
        asked = _fields(scope["query_string"])
        safe = sessions.behind_tls(scope["scheme"], headers)
        here = path.decode("ascii", "replace")
        visit = Visit(worker, session, named, asked, {}, headers, safe, here)
        if scope["method"] == "POST":
            visit.form |= _fields(await body(FORM))
            _check_form(visit)
        found = await _page(visit, name, scope["method"])
    except Problem as problem:
        found = _problem(session, problem)
    except Unavailable:
        found = _problem(session, Problem(503, "the database is away for a moment; try again"))
    if found.kind == HTML:
        found.headers += SAFE
    return found, name if name in NAMES else "page"


def _fields(data: bytes) -> dict[str, str]:
    """Read a query or a form."""
    try:
        return dict(parse_qsl(data.decode("utf-8", "replace"), max_num_fields=FIELDS))
    except ValueError:
        raise Problem(400, f"an address or a form may have {FIELDS} fields") from None


async def _page(visit: Visit, name: str, method: str) -> Answer:
    if name in ("/login", "/logout"):
        return await _log_in_or_out(visit, name, method)
    page = PAGES.get(name)
    if page is None:
        raise Problem(404, "there is no such page")
    if method != page.method:
        raise Problem(405, f"the method must be {page.method}, got {method}", allow=page.method)
    key = visit.session.key
    if key is None:
        there = visit.path + ("?" + visit.asked_again() if visit.asked else "")
        return see_other("/login" if method == "POST" else "/login?to=" + quote(there, safe=""))
    if visit.named:
        if visit.named[0] not in visit.worker.views:
            await visit.worker.look_again()
        view = visit.worker.views.get(visit.named[0])
        key.check(page.scope, view.id if view else None)
    else:
        key.check(page.scope, key.experiment if page.scope == "read" else None)
    return await page.show(visit)


def _check_form(visit: Visit) -> None:
    if not sessions.from_here(visit.headers) or not visit.session.check(visit.form.get("csrf", "")):
        raise Problem(
            403, "the form must come from a page of this service; load it again and retry"
        )


async def _log_in_or_out(visit: Visit, name: str, method: str) -> Answer:
    worker = visit.worker
    if name == "/logout":
        if method != "POST":
            raise Problem(405, f"the method must be POST, got {method}", allow="POST")
        await within(worker.committer.do(lambda c: None))  # the database is there
        await sessions.end(worker, visit.session)
        found = see_other("/login")
        found.headers.append(sessions.cookie("", visit.safe))
        return found
    to = visit.form.get("to") or visit.asked.get("to") or "/"
    to = to if HERE.fullmatch(to) else "/"
    wrong, status = "", 200
    if method == "POST":
        token = visit.form.get("key", "").strip()
        key = worker.keyring.by_token(token)
        if key is None:
            await worker.look_again()
            key = worker.keyring.by_token(token)
        if key is not None and key.valid:
            session = await sessions.begin(worker, key)
            await within(worker.committer.do(lambda c: audit(c, key, "log in", None, {})))
            found = see_other(to)
            found.headers.append(sessions.cookie(session.token, visit.safe))
            return found
        wrong, status = "This key is unknown, revoked or expired.", 401
    text = render(
        "login.html",
        **shown(sessions.Session("", None)),
        csrf=visit.session.csrf,
        to=to,
        wrong=wrong,
    )
    found = Answer(text.encode(), status, HTML)
    if visit.session.key is None:  # what the form's word follows from
        found.headers.append(sessions.cookie(visit.session.token, visit.safe))
    return found


def _problem(session: sessions.Session, problem: Problem) -> Answer:
    text = render(
        "problem.html", **shown(session), frame="service.html", title=TITLES[problem.status],
        detail=problem.detail, status=problem.status,
    )  # fmt: skip
    return Answer(text.encode(), problem.status, HTML, list(problem.headers))


def _static(path: str) -> Answer:
    name = "icon.svg" if path == "/favicon.ico" else path.rsplit("/", 1)[-1]
    content = static_files().get(name)
    if content is None or path not in (static_url(name), "/favicon.ico"):
        return Answer(b"not found", 404, "text/plain", list(SAFE))
    kind = KINDS.get(name.rsplit(".", 1)[-1], "text/plain")
    return Answer(content, 200, f"{kind}; charset=utf-8", [FOREVER, *SAFE])

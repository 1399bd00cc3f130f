"""The web application: raw ASGI, one table of routes."""

import contextlib
import functools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

from evenhand.service import asking, changing, keys, managing, messages, pages, reading
from evenhand.service.committer import Unavailable
from evenhand.service.metrics import Metrics
from evenhand.service.problems import Problem
from evenhand.service.requests import JSON, Answer, Request, answered
from evenhand.service.worker import Worker

Handler = Callable[[Request], Awaitable[Answer]]
BODY = 1 << 20  # bytes of a body
LARGE = 1 << 25  # of a new experiment or an import
OPEN = ("/healthz", "/readyz")  # to everybody
PLACES = 1000  # paths remembered
NEVER_CACHED = (b"cache-control", b"no-store")
AWAY = Problem(503, "the database is away for a moment; sending the same again is safe")
log = logging.getLogger(__name__)


class Route(NamedTuple):
    """What a path does, what it takes and who may use it."""

    handler: Handler
    scope: str
    body: Any = None
    status: int = 200
    limit: int = BODY
    kind: str = JSON


ROUTES: dict[str, dict[str, Route]] = {
    "/v1/experiments": {
        "GET": Route(managing.list_experiments, "read"),
        "POST": Route(managing.create, "admin", messages.New, 201, LARGE),
    },
    "/v1/experiments/*": {"GET": Route(managing.show, "read")},
    "/v1/experiments/*/ask": {"POST": Route(asking.ask, "ask", messages.Ask)},
    "/v1/experiments/*/tell": {"POST": Route(asking.tell, "ask", messages.Tell)},
    "/v1/experiments/*/shown": {"POST": Route(asking.shown, "ask", messages.Shown)},
    "/v1/experiments/*/receipts/*": {"GET": Route(reading.receipt, "ask")},
    "/v1/experiments/*/policy": {"GET": Route(reading.policy, "read")},
    "/v1/experiments/*/merits": {"GET": Route(reading.merits, "read")},
    "/v1/experiments/*/diagnostics": {"GET": Route(reading.diagnostics, "read")},
    "/v1/experiments/*/series": {"GET": Route(reading.series, "read")},
    "/v1/experiments/*/series/*": {"GET": Route(reading.arm_series, "read")},
    "/v1/experiments/*/explain/*": {"GET": Route(reading.explain, "read")},
    "/v1/experiments/*/export.csv": {"GET": Route(reading.export_csv, "read", kind="text/csv")},
    "/v1/experiments/*/export.parquet": {
        "GET": Route(reading.export_parquet, "read", kind="application/vnd.apache.parquet")
    },
    "/v1/experiments/*/changes": {
        "POST": Route(changing.change, "admin", messages.Change, limit=LARGE)
    },
    "/v1/experiments/*/changes/*": {"GET": Route(changing.change_outcome, "admin")},
    "/v1/experiments/*/pause": {"POST": Route(managing.pause, "admin")},
    "/v1/experiments/*/resume": {"POST": Route(managing.resume, "admin")},
    "/v1/experiments/*/archive": {"POST": Route(managing.archive, "admin")},
    "/v1/experiments/*/rotate": {"POST": Route(managing.rotate, "admin")},
    "/v1/experiments/*/erase": {"POST": Route(managing.erase, "admin", messages.Erase)},
    "/v1/keys": {
        "GET": Route(managing.list_keys, "admin"),
        "POST": Route(managing.make_key, "admin", messages.NewKey, 201),
    },
    "/v1/keys/*": {"DELETE": Route(managing.revoke_key, "admin")},
}


class App:
    """The application of one worker."""

    def __init__(self, worker: Worker, description: bytes) -> None:
        self.worker, self.metrics, self.description = worker, Metrics(), description
        self._places: dict[bytes, tuple[str, list[str]]] = {}  # of paths seen lately
        self.routes = ROUTES | {
            "/metrics": {"GET": Route(self._measured, "read", kind="text/plain; version=0.0.4")},
            "/openapi.json": {"GET": Route(self._described, "read")},
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        name, status = "none", 500
        headers: list[tuple[bytes, bytes]] = []
        try:
            path = scope["raw_path"]
            if path not in self._places:
                if len(self._places) >= PLACES:
                    self._places.clear()
                self._places[path] = ("page", []) if pages.is_page(path) else placed(path)
            name, parts = self._places[path]
            if name == "page":
                answer, name = await pages.answer(
                    self.worker, scope, functools.partial(_body, scope, receive)
                )
            else:
                answer = await self._answer(scope, receive, name, parts)
            status, body, kind, headers = answer.status, answer.body, answer.kind, answer.headers
        except Problem as problem:
            status, body, kind = problem.status, problem.body(), "application/problem+json"
            headers = problem.headers
        except Unavailable as error:
            log.warning("unavailable", extra={"route": name, "error": str(error)})
            status, body, kind = 503, AWAY.body(), "application/problem+json"
            headers = [(b"retry-after", b"1")]
        except Exception:
            log.exception("failed", extra={"route": name})
            body, kind = (
                Problem(500, "an error; the log says more").body(),
                "application/problem+json",
            )
        headers.append((b"content-type", kind.encode()))
        if pages.FOREVER not in headers:
            headers.append(NEVER_CACHED)
        if isinstance(body, bytes):
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
        else:
            await _stream(body, send)
        known = name in self.routes or name in OPEN or name in pages.NAMES  # else anybody could
        # make up more
        self.metrics.count(name if known else "none", status, time.perf_counter() - began)

    async def _answer(self, scope: Any, receive: Any, name: str, parts: list[str]) -> Answer:
        if name in OPEN:
            if scope["method"] != "GET":
                raise Problem(405, f"the method must be GET, got {scope['method']}", allow="GET")
            return await (self._healthy() if name == "/healthz" else self._ready())
        methods = self.routes.get(name)
        experiment = parts[0] if name.startswith("/v1/experiments/") else ""
        key = self.worker.keyring.find(scope["headers"])
        if key is None or (experiment and experiment not in self.worker.views):
            await self.worker.look_again()  # both may be new, made by another worker
            key = self.worker.keyring.find(scope["headers"])
        if key is None:
            raise keys.no_key()
        if methods is None:
            raise Problem(404, "there is nothing at this path; see /openapi.json")
        route = methods.get(scope["method"])
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise Problem(
                405, f"the method must be {allowed}, got {scope['method']}", allow=allowed
            )
        view = self.worker.views.get(experiment)
        if name != "/v1/experiments" or route.scope == "admin":
            key.check(route.scope, view.id if view else None)
        else:
            key.check(route.scope, key.experiment)
        body = await _body(scope, receive, route.limit)
        last = parts[-1] if parts else ""
        request = Request(self.worker, key, experiment, last, scope["headers"], body)
        return await route.handler(request)

    async def _live(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.worker.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.worker.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _healthy(self) -> Answer:
        """Whether this process answers."""
        return answered({"status": "ok"})

    async def _ready(self) -> Answer:
        """Whether asks and tells would be answered well."""
        if not self.worker.fresh:
            raise Problem(503, "the database is away", retry_after="1")
        if not await self.worker.reader.do(reading.folder_alive):
            raise Problem(503, "no folder is at work yet", retry_after="1")
        return answered({"status": "ready"})

    async def _measured(self, request: Request) -> Answer:
        """Counters and times of this worker, for Prometheus."""
        worker = self.worker
        own = {f'{{experiment="{v.name}"}}': v.stock for v in worker.views.values()}
        gauges: dict[str, dict[str, float]] = {
            "commits_total": {"": worker.committer.commits},
            "failed_commits_total": {"": worker.committer.failures},
            "seconds_since_look": {"": worker.loop.time() - worker.polled},
            "asked_rows_total": {label: s.asked for label, s in own.items()},
            "unlearnt_rows_total": {label: s.unlearnt for label, s in own.items()},
            "leased_rows": {label: len(s.rows) for label, s in own.items()},
            "rows_per_second": {label: s.rate for label, s in own.items()},
        }
        return Answer(self.metrics.text(gauges).encode(), kind="text/plain; version=0.0.4")

    async def _described(self, request: Request) -> Answer:
        """Describe the API."""
        return Answer(self.description)


def placed(path: bytes) -> tuple[str, list[str]]:
    """Return the name of a path in the table, with ``*`` for names in it, and those names."""
    parts = path.split(b"/")
    if len(parts) > 6 or len(path) > 4096:
        return "none", []
    if parts[1] != b"v1":
        return path.decode("ascii", "replace"), []
    named = []
    for place in (3, 5):
        if len(parts) > place:
            try:
                named.append(unquote(parts[place].decode("ascii"), errors="strict"))
            except UnicodeDecodeError:
                return "none", []
            parts[place] = b"*"
    return b"/".join(parts).decode("ascii", "replace"), named


async def _body(scope: Any, receive: Any, limit: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the request ended early")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise Problem(413, f"the body may have {limit} bytes; send it in parts")
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _stream(body: AsyncIterator[bytes], send: Any) -> None:
    with contextlib.suppress(Unavailable):  # the headers are out: an export that ends early
        async for part in body:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

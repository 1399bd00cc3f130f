"""The description of the API (OpenAPI 3.1), made from the table of routes."""

from typing import Any

import msgspec

from evenhand import __version__
from evenhand.service.problems import TITLES
from evenhand.service.web import ROUTES, Route

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "argument, rule, value and way out"},
    },
}
NAME = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"}
LAST = {"receipts": "id", "explain": "arm", "series": "arm", "changes": "change", "keys": "key"}


def description() -> bytes:
    """Return the description as JSON."""
    bodies = {r.body for methods in ROUTES.values() for r in methods.values() if r.body}
    order = sorted(bodies, key=str)
    schemas, components = msgspec.json.schema_components(
        order, ref_template="#/components/schemas/{name}"
    )
    found = dict(zip(order, schemas, strict=True))
    paths: dict[str, Any] = {}
    for path, methods in ROUTES.items():
        shown, parameters = _path(path)
        paths[shown] = {"parameters": parameters} if parameters else {}
        for method, route in methods.items():
            paths[shown][method.lower()] = _operation(route, found, shown)
    simple = {"200": {"description": "yes"}}
    for path, words in (
        ("/healthz", "Whether the process answers"),
        ("/readyz", "Whether it is ready"),
    ):
        answers = simple if path == "/healthz" else simple | {"503": _problem(503)}
        paths[path] = {"get": {"summary": words, "security": [], "responses": answers}}
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Evenhand",
            "version": __version__,
            "description": "Which arms now, and here is what came of it.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(whole)


def _path(path: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a path with its parameters named."""
    parts, parameters = path.split("/"), []
    for i, part in enumerate(parts):
        if part == "*":
            name = "experiment" if parts[i - 1] == "experiments" else LAST[parts[i - 1]]
            parts[i] = f"{{{name}}}"
            schema = NAME if name == "experiment" else {"type": "string", "minLength": 1}
            parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    return "/".join(parts), parameters


def _operation(route: Route, bodies: dict[Any, Any], path: str) -> dict[str, Any]:
    answers: dict[str, Any] = {
        str(route.status): {
            "description": (route.handler.__doc__ or "").strip(),
            "content": {route.kind: {}},
        }
    }
    statuses = [400, 401, 403, 413, 429, 503]
    statuses += [404] if "{" in path or route.body else []
    statuses += [409, 422] if route.body else []
    if path.endswith("/changes") or "/changes/" in path:
        answers["202"] = {"description": "accepted, not done yet", "content": {route.kind: {}}}
        statuses += [409, 422]
    if path.endswith("parquet"):
        statuses.append(409)
    answers |= {str(status): _problem(status) for status in sorted(set(statuses))}
    said: dict[str, Any] = {
        "summary": (route.handler.__doc__ or "").strip(),
        "description": f"Needs a key with the scope {route.scope}.",
        "operationId": route.handler.__name__,
        "responses": answers,
    }
    if route.body is not None:
        required = not path.endswith("/ask")
        said["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": bodies[route.body]}},
        }
    if path.endswith("/ask"):
        said["parameters"] = [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "The same value, sent with the same key, returns the same rows.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            }
        ]
    return said


def _problem(status: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": TITLES[status], "content": content}

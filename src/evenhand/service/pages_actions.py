"""What forms of pages do: the same calls as over the API, logged in the same way."""

import json
import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from evenhand.service import changing
from evenhand.service.problems import Problem
from evenhand.service.requests import Answer, Request
from evenhand.service.visits import Visit, see_other


def of_experiment(
    handler: Callable[[Request], Awaitable[Answer]],
) -> Callable[[Visit], Awaitable[Answer]]:
    """Return what a form does that calls a handler of the API without a body."""

    async def act(visit: Visit) -> Answer:
        await handler(_request(visit, b""))
        return see_other(f"/experiments/{quote(visit.view.name, safe='')}")

    return act


async def of_arm(visit: Visit) -> Answer:
    """Pause an arm, or show it again."""
    call, arm = visit.form.get("call", ""), visit.form.get("arm", "")
    if call not in ("pause", "resume") or not re.fullmatch(r"[0-9]{1,9}", arm):
        raise Problem(400, "the form must name an arm, and pause or resume")
    called = visit.view.called(int(arm))
    body = json.dumps({"call": call, "arms": [called]}).encode()
    await changing.change(_request(visit, body))
    return see_other(f"/experiments/{quote(visit.view.name, safe='')}/arms/{arm}")


def _request(visit: Visit, body: bytes) -> Request:
    key = visit.session.key
    assert key is not None  # or the page was not let in
    return Request(visit.worker, key, visit.named[0], "", visit.headers, body)

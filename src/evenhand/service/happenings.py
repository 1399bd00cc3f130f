"""What happened to an experiment, in words: changes asked for, and changes noticed."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.account import Account
from evenhand.pages.charts import Mark
from evenhand.pages.words import number, percent, plain
from evenhand.service.database import Connection
from evenhand.service.history import Point
from evenhand.service.worker import View

KINDS = {"add": "join", "retire": "leave", "pause": "pause", "resume": "join", "terms": "terms",
         "shares": "terms", "shadow": "terms"}  # fmt: skip
STATES = {"pause": "pause", "resume": "join", "archive": "leave", "create": "join"}
MOST = 200  # of the newest
NAMED = 5  # arms named in a line


def happened(c: Connection, view: View, since: float, arm: int | None = None) -> list[Mark]:
    """Return what was changed since a time, oldest first; of one arm, if one is given."""
    marks = []
    for call, arguments, key, at, answer in c.execute(
        "select call, arguments, key, done, answer from changes where exp=? and done>=? "
        "order by id desc limit ?",
        (view.id, since, MOST),
    ):
        said, answered = json.loads(arguments), json.loads(answer or "{}")
        if "refused" in answered:
            continue
        ids = answered.get("answer") if call == "add" else said.get("arms")
        if arm is None or _concerns(call, ids, arm):
            words = f"{in_words(view, call, said, ids)} (key {key})"
            marks.append(Mark(at, KINDS.get(call, "other"), words))
    for action, key, at in c.execute(
        "select action, key, at from audit where exp=? and at>=? order by id desc limit ?",
        (view.id, since, MOST),
    ):
        if arm is None and action in STATES:
            words = f"experiment: {action} (key {key.partition(' ')[2]})"
            marks.append(Mark(at, STATES[action], words))
    return sorted(marks)


def _concerns(call: str, ids: list[int] | None, arm: int) -> bool:
    return call in ("terms", "shares", "shadow") or arm in (ids or [])


def in_words(view: View, call: str, said: dict[str, Any], ids: list[int] | None) -> str:
    """Say what a change did."""
    names = _list(view, ids or [])
    if call == "terms":
        return "terms: " + terms_in_words(view, said["terms"]) if "terms" in said else "terms"
    sets = len(said.get("sets", ()))
    return {
        "add": f"{names} joined",
        "retire": f"{names} left",
        "pause": f"{names} paused",
        "resume": f"{names} shown again",
        "shares": "shares fixed for all arms",
        "shadow": "shadow mode " + ("on: all arms shown alike" if said.get("on") else "off"),
        "learn": f"history of {number(sets)} sets learnt",
        "prior": f"merits of {len(said.get('merit', ()))} arms believed beforehand",
    }.get(call, call)


def _list(view: View, ids: Sequence[int]) -> str:
    if not ids:
        return "arms"
    named = ", ".join(view.called(arm) for arm in ids[:NAMED])
    return named + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")


def terms_in_words(view: View, terms: dict[str, Any] | None) -> str:
    """Say what terms are, whether as they came in or as a plan had them."""
    if terms is None:
        return "none"
    parts, unit = [], terms.get("unit")
    for name, word in (("floors", "at least"), ("caps", "at most")):
        given = terms.get(name)
        if isinstance(given, int | float):
            given = {"*": given}
        elif isinstance(given, list) and not all(isinstance(x, list) for x in given):
            given = dict(enumerate(given))  # a number for each arm
        pairs = list(given.items() if isinstance(given, dict) else given or [])
        alone = len(pairs) == 1
        some = ", ".join(
            f"{plain(percent(x))} for {_arm(view, arm, alone)}" for arm, x in pairs[:NAMED]
        )
        more = f" and {len(pairs) - NAMED} more" if len(pairs) > NAMED else ""
        parts += [f"{word} {some}{more}"] if pairs else []
    for name, group in (terms.get("groups") or {}).items():
        ends = [f"at least {plain(percent(group['floor']))}"] if group.get("floor") else []
        ends += [f"at most {plain(percent(group['cap']))}"] if group.get("cap") is not None else []
        parts.append(f"group {name} ({len(group['arms'])} arms) {' and '.join(ends)}")
    if terms.get("power", 1.0) != 1.0:
        parts.append(f"shares follow merit to the power {terms['power']:g}")
    of = {"shares": "of all places", "marginals": "of full sets"}.get(unit or "")
    return ("; ".join(parts) or "none") + (f" ({of})" if parts and of else "")


def _arm(view: View, arm: Any, alone: bool) -> str:
    return ("every arm" if alone else "all others") if arm == "*" else view.called(int(arm))


def noticed(
    view: View, account: Account, points: Sequence[Point], arm: int | None = None
) -> list[Mark]:
    """Return the changes that the learner noticed, at the times of the points around them."""
    if not points:
        return []
    queries = np.array([point.queries for point in points])
    marks = []
    for change in account.changes or ():
        place = int(np.searchsorted(queries, change.queries))
        if arm in (None, change.arm) and 0 < place < len(points):
            how = "by itself" if change.alone else "together with others"
            words = f"noticed: {view.called(change.arm)} brings something else {how}"
            marks.append(Mark(points[place].at, "change", words))
    return marks

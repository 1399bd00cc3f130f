"""Why an arm has the share it has, and how that came about."""

import time
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import numpy as np

from evenhand.account import explain
from evenhand.pages.charts import Mark, TimeChart, time_chart
from evenhand.service import happenings, history, pages_experiment
from evenhand.service.database import Connection
from evenhand.service.pages_experiment import WINDOWS
from evenhand.service.problems import Problem
from evenhand.service.requests import Answer
from evenhand.service.standing import standing
from evenhand.service.visits import Visit
from evenhand.service.worker import View

STRETCHES = 40  # over which what was given is averaged


async def arm(visit: Visit) -> Answer:
    """Explain an arm's share to a person."""
    view, said = visit.view, visit.named[1]
    if not (said.isascii() and said.isdigit() and len(said) < 10 and int(said) in view.names):
        raise Problem(404, f"there must be an arm of that number, got {said[:20]!r}")
    number = int(said)
    window = visit.asked.get("window", "all")
    window = window if window in WINDOWS else "all"
    found = await standing(visit.worker, view)
    read = partial(past, view=view, number=number, since=time.time() - WINDOWS[window])
    points, entries, marks, dates = await visit.worker.reader.do(read)
    why = None
    if found is not None and number in found.account.arms:
        why = explain(replace(found.account, names=tuple(found.names)), number)
        marks = sorted(marks + happenings.noticed(view, found.account, points, number))
    return visit.page(
        "arm.html",
        view=view,
        base=f"/experiments/{quote(view.name, safe='')}",
        number=number,
        name=view.called(number),
        why=why,
        joined=dates[0],
        retired=dates[1],
        paused=bool(dates[2]),
        may_change=visit.may_change and dates[1] is None,
        csrf=visit.session.csrf,
        charts=charts(view.config["k"], points, entries, marks),
        window=window,
        windows=[(name, "?" + visit.asked_again(window=name) + "#time") for name in WINDOWS],
        numbers={} if why is None else pages_experiment.flat(why.to_json()),
    )


Past = tuple[list[history.Point], np.ndarray, list[Mark], tuple[float, float | None, int]]


def past(c: Connection, view: View, number: int, since: float) -> Past:
    """Read an arm's history."""
    points = history.points(c, view.id, max(since, 0.0))
    found = history.traces(c, view.id, [number], [point.at for point in points]) if points else {}
    dates = c.execute(
        "select joined, retired, paused from arms where exp=? and id=?", (view.id, number)
    )[0]
    marks = happenings.happened(c, view, max(since, 0.0), number)
    return points, found.get(number, np.zeros(0, history.ARM)), marks, dates


def charts(
    k: int, points: list[history.Point], entries: np.ndarray, marks: list[Mark]
) -> list[TimeChart]:
    """Return the share and the merit of an arm over time."""
    times = np.array([point.at for point in points])
    told = np.array([point.numbers["told"] for point in points], float)
    merit, error = entries["merit"].astype(float), entries["stderr"].astype(float)
    given = given_between(told, entries["given"]) / k
    return [
        time_chart("Share", times, [("due", entries["due"] / k), ("given around then", given)],
                   marks,
                   about="Of all places. What was given is averaged over some points, and still "
                   "moves by chance."),
        time_chart("Merit", times, [("merit", merit)], marks, "number",
                   about="What it adds to a set on average, with two standard errors.",
                   bands=[(merit - 2 * error, merit + 2 * error)]),
    ]  # fmt: skip


def given_between(told: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return what was given per reward around each point, from sums."""
    n = len(told)
    reach = max(1, n // STRETCHES)
    low, high = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach, n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (given[high] - given[low]) / (told[high] - told[low])
    found[~np.isfinite(found)] = np.nan
    return found

"""An experiment's page: due against given, what happened over time, how far it still is."""

import time
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from evenhand.account import figures as account_figures
from evenhand.pages import words
from evenhand.pages.charts import Mark, TimeChart, bars, time_chart
from evenhand.service import agreements, happenings, history, pages_overview, slices
from evenhand.service.database import Connection
from evenhand.service.history import Point
from evenhand.service.requests import Answer
from evenhand.service.slices import entry
from evenhand.service.standing import Standing, standing
from evenhand.service.visits import Visit
from evenhand.service.worker import View

WINDOWS = {"hour": 3600.0, "day": 86400.0, "week": 7 * 86400.0, "all": float("inf")}
LINES = 6  # arms drawn over time
COLUMNS = ("name", "due", "given", "gap", "merit", "stderr", "shown")
GOAL = 0.05  # of all exposure
NEAR, NINE = (words.plain(words.percent(x)) for x in (GOAL, 0.9))
FAR = 10 * 365.25 * 86400.0  # seconds: beyond that nothing is promised


class Row(NamedTuple):
    """An arm as the table shows it."""

    id: int
    name: str
    href: str
    due: float | None
    given: float | None
    gap_words: str
    merit: float | None
    stderr: float | None
    shown: float | None
    tags: list[pages_overview.Note]


class Past(NamedTuple):
    """What charts are drawn from."""

    points: list[Point]
    arms: dict[int, np.ndarray]
    marks: list[Mark]
    terms: dict[str, Any] | None


async def experiment(visit: Visit) -> Answer:
    """How an experiment stands, arm by arm and over time."""
    view, now = visit.view, time.time()
    found = await standing(visit.worker, view)
    facts = (await visit.worker.reader.do(partial(pages_overview.facts, experiments=[view.id])))[
        view.id
    ]
    window = visit.asked.get("window", "day")
    window = window if window in WINDOWS else "day"
    frame = {
        "view": view,
        "base": f"/experiments/{quote(view.name, safe='')}",
        "state": pages_overview.state(view, facts),
        "notes": pages_overview.attention(view, facts, now),
        "may_change": visit.may_change,
        "window": window,
        "windows": [(name, "?" + visit.asked_again(window=name) + "#time") for name in WINDOWS],
        "visit": visit,
    }
    if found is None:
        return visit.page("experiment.html", found=None, **frame)
    table = arms_table(visit, view, found)
    chosen = [found.account.arms[i].item() for i in table["slice"].places[:LINES]]
    read = partial(past, view=view, since=now - WINDOWS[window], arms=chosen)
    before = await visit.worker.reader.do(read)
    marks = sorted(before.marks + happenings.noticed(view, found.account, before.points))
    return visit.page(
        "experiment.html",
        found=found,
        facts=figures(view, found, facts),
        convergence=convergence(found, facts, now),
        table=table,
        charts=charts(view, found.account.k, before, chosen, marks),
        sizes=account_figures.sizes(found.account),
        diagnostics=account_figures.diagnostics(found.account),
        terms=happenings.terms_in_words(view, before.terms),
        **frame,
    )


def past(c: Connection, view: View, since: float, arms: list[int]) -> Past:
    """Read what charts of some arms need."""
    points = history.points(c, view.id, max(since, 0.0))
    found = history.traces(c, view.id, arms, [point.at for point in points]) if points else {}
    agreed = agreements.at_epoch(c, view.id, 2**62)
    terms = agreed[1]["terms"] if agreed else None
    return Past(points, found, happenings.happened(c, view, max(since, 0.0)), terms)


def arms_table(visit: Visit, view: View, found: Standing) -> dict[str, Any]:
    """Return the slice of arms that is shown, as rows with bars."""
    account, k = found.account, found.account.k
    columns = {"due": account.due, "given": account.given, "gap": account.given - account.due,
               "merit": account.merit, "stderr": account.stderr,
               "shown": account.asked if account.shown is None else account.shown}  # fmt: skip
    names, ends = found.names, found.ends
    here = slices.cut(visit, names, columns, "due")
    rows, lows, highs = [], [], []

    def share(column: Any, i: int) -> float | None:
        x = entry(column, i)
        return None if x is None else x / k

    for i in here.places:
        due, given = share(account.due, i), share(account.given, i)
        rows.append(
            Row(
                int(account.arms[i]), names[i],
                f"/experiments/{quote(view.name, safe='')}/arms/{account.arms[i]}",
                due, given, account_figures.gap_in_words(due, given), entry(account.merit, i),
                entry(account.stderr, i), entry(columns["shown"], i), tags(found, i),
            )
        )  # fmt: skip
        lows.append(None if ends is None else share(ends[:, 0], i))
        highs.append(None if ends is None else share(ends[:, 1], i))
    drawn, top = bars([row.due for row in rows], [row.given for row in rows], lows, highs)
    return {
        "rows": rows, "bars": drawn, "top": top, "slice": here,
        "sorting": slices.headings(visit, here, COLUMNS), "link": slices.pager(visit),
    }  # fmt: skip


def tags(found: Standing, i: int) -> list[pages_overview.Note]:
    """Return words that stand beside an arm's name."""
    made, account = [], found.account
    if account.paused[i]:
        made.append(pages_overview.Note("", "paused"))
    elif np.isnan(account.merit[i]):
        made.append(pages_overview.Note("", "not seen yet"))
    if int(account.arms[i]) in found.numbers.get("starving", ()):
        made.append(pages_overview.Note("warn", "starving"))
    return made


def figures(view: View, found: Standing, facts: pages_overview.Facts) -> list[dict[str, str]]:
    """Return the numbers at the top: what, how much, and how to read it."""
    said, row = found.numbers, pages_overview.row(view, facts, found.at)
    made = [
        {"name": "given is off due by", "value": words.percent(said.get("off")),
         "about": "of all places handed out so far"},
        {"name": "mean reward", "value": words.number(row["reward"]), "about": "in the last hour"},
        {"name": "asked", "value": words.rate(facts.rate), "about": "rows, right now"},
        {"name": "rewards told", "value": words.number(said.get("told")),
         "about": f"{words.number(said.get('waiting'))} rows still out"},
        {"name": "given up", "value": words.number(said.get("expired")),
         "about": "rows never told, and too old now"},
        {"name": "arms", "value": words.number(said.get("arms")),
         "about": f"{view.config['k']} at a time; {words.number(said.get('paused'))} paused"},
    ]  # fmt: skip
    if view.rewards["mode"] == "window":
        made[3]["about"] = "untold rows get the default when their window ends"
    return made


def convergence(found: Standing, facts: pages_overview.Facts, now: float) -> list[str]:
    """Say how far shares are from what is truly due, and when they will be near."""
    said = found.numbers
    if said.get("distance") is None:
        return ["How far shares are from what is truly due cannot be said yet: standard errors "
                "are not known for two arms or more."]  # fmt: skip
    distance, low, high = said["distance"], said["low"], said["high"]
    what = "The shares that merits would get" if said.get("shadow") else "The shares in force"
    told = [
        f"{what} are about {words.percent(distance)} of all exposure away from what "
        f"is truly due; between {words.percent(low)} and {words.percent(high)} with a chance of "
        f"{NINE}, if the standard errors are right and what arms bring stays the same."
    ]
    if distance <= GOAL:
        return [*told, f"That is within {NEAR}."]
    before = facts.before
    seconds = now - before.at if before else 0.0
    rate = (said["told"] - before.numbers["told"]) / seconds if before and seconds > 0 else 0.0
    if rate <= 0.0:
        return [*told, f"No rewards come in now, so it will not get within {NEAR}."]
    waits = [wait(x, said["told"], rate) for x in (distance, low, high)]
    if waits[0] > FAR:
        return [*told, f"At {words.rate(rate)} it takes more than ten years to get within "
                f"{NEAR}: more traffic or fewer arms would help."]  # fmt: skip
    return [
        *told,
        f"At {words.rate(rate)}, as in the last hour, it will be within {NEAR} in about "
        f"{words.span(waits[0])} (between {words.span(waits[1])} and {words.span(waits[2])}), if "
        "nothing changes: errors shrink with the root of the number of rewards.",
    ]


def wait(distance: float, told: int, rate: float) -> float:
    """Seconds until shares are near, errors falling as 1/√n."""
    return max(0.0, told * ((distance / GOAL) ** 2 - 1.0)) / rate


def charts(
    view: View, k: int, before: Past, chosen: list[int], marks: list[Mark]
) -> list[TimeChart]:
    """Return the charts over time."""
    points = before.points
    times = np.array([point.at for point in points])

    def column(name: str) -> np.ndarray:
        return np.array([point.numbers.get(name) for point in points], float)

    told, total = column("told"), column("total")
    with np.errstate(divide="ignore", invalid="ignore"):
        reward = np.diff(total, prepend=np.nan) / np.diff(told, prepend=np.nan)
        per_second = np.diff(told, prepend=np.nan) / np.diff(times, prepend=np.nan)
    reward[~np.isfinite(reward)] = np.nan
    lines = [(view.called(arm), before.arms[arm]) for arm in chosen] if points else []
    which = f"The first {len(chosen)} arms of the table above." if len(chosen) > 1 else ""
    return [
        time_chart("Shares due", times, [(n, a["due"] / k) for n, a in lines], marks,
                   about=f"{which} Of all places."),
        time_chart("Merits", times, [(n, a["merit"]) for n, a in lines], marks, "number",
                   about=f"{which} What an arm adds to a set on average, as estimated then."),
        time_chart("Distance", times,
                   [("due now from truly due, estimated", column("distance")),
                    ("given so far from due now", column("off"))], marks,
                   about="Of all exposure; the band holds the estimate with a chance of 90 %.",
                   bands=[(column("low"), column("high"))]),
        time_chart("Mean reward", times, [("mean reward", reward)], marks, "number",
                   about="Of the rewards that came between two points."),
        time_chart("Traffic", times,
                   [("rewards per second", per_second), ("rows asked per second", column("rate"))],
                   marks, "number"),
        time_chart("Rows out", times,
                   [("not told yet", column("waiting")), ("given up, in all", column("expired"))],
                   marks, "number"),
    ]  # fmt: skip


def flat(said: dict[str, Any]) -> dict[str, str]:
    """Return numbers by name, as a table shows them; text is left out."""
    made = {}
    for name, x in said.items():
        if isinstance(x, bool) or x is None:
            made[name] = {True: "yes", False: "no", None: words.NOTHING}[x]
        elif isinstance(x, int | float):
            made[name] = words.number(x)
        elif isinstance(x, list) and all(isinstance(y, int | float) for y in x):
            made[name] = ", ".join(words.number(y) for y in x) or words.NOTHING
        elif isinstance(x, str) and name != "text":
            made[name] = x
    return {name.replace("_", " "): x for name, x in made.items()}

"""The page that a demonstration leaves behind."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evenhand.account import Account
from evenhand.demo.rivals import Outcome
from evenhand.demo.run import Demo, Point
from evenhand.demo.shop import FLOOR, JOINS, LEAVES, PLACES, SELLERS
from evenhand.files import replacing
from evenhand.pages.charts import Mark, TimeChart, time_chart
from evenhand.pages.words import number, percent
from evenhand.portrait import Table, page

LEARNERS = {  # of the rules
    "Evenhand": "even-hand",
    "uniform": "urs",
    "most reward": "etcg",
    "the paper's learner": "iw-ksvfair",
}
WINDOW = 5  # points over which purchases are averaged


def write_page(path: Path, account: Account, demo: Demo, outcomes: Sequence[Outcome]) -> None:
    """Write a page of what the service knows, and beside it what is true."""
    end = demo.points[-1]
    lead = (
        f"A simulated shop: {number(end.queries)} visits, {SELLERS} sellers for {PLACES} places, "
        f"a floor of {percent(FLOOR)} of all places for everyone. Some sellers follow the season, "
        f"one joins after {number(JOINS)} visits, one leaves after {number(LEAVES)}. The service "
        "sees nothing but whether a visitor bought something."
    )
    tables = [_beside(outcomes)] if outcomes else []
    note = (
        f"What the service cannot know: at the end {percent(end.off)} of all places were not where "
        "they were truly due. Its own estimate takes sellers to be as they were on average since "
        "it last noticed a change, and the season moves on."
    )
    text = page(account, "evenhand demo", lead, charts(demo), tables, [note])
    with replacing(path) as file:
        file.write(text.encode())


def _beside(outcomes: Sequence[Outcome]) -> Table:
    about = (
        "Evenhand as it has just run, and three other rules simulated in the same shop for as many "
        "visits. In the last third of them: what part of all places was not where it was truly "
        "due, and what the worst-served seller got of what it was due. Bought is the part of "
        "all visits with a purchase. Evenhand goes on when a seller joins or leaves; the others "
        "are made anew. The paper's learner shows one to six sellers, the others mostly six."
    )
    rows = [
        [one.name, percent(one.off), percent(one.worst), percent(one.bought)] for one in outcomes
    ]
    columns = ("rule", "misplaced", "worst", "bought")
    notes = [f"{one.name}: {one.words}" for one in outcomes]
    learners = [LEARNERS[one.name] for one in outcomes]
    return Table("Beside other rules", about, columns, rows, notes, learners)


def charts(demo: Demo) -> list[TimeChart]:
    """What happened over time, with who joined and left."""
    points = [p for p in demo.points if p.queries]
    times = [p.at for p in points]
    word = {"join": "joined", "leave": "left"}
    marks = [Mark(at, what, f"{name} {word[what]}") for at, what, name in demo.events]
    arms = _chosen(demo)
    names = [demo.shop.names[arm] for arm in arms]
    in_force, due = (
        list(zip(names, np.array([getattr(p, which)[arms] for p in points]).T, strict=True))
        for which in ("shares", "due")
    )
    return [
        time_chart(
            "Off what is truly due", times, [("misplaced", [p.off for p in points])], marks,
            about="Part of all places that the shares in force put where they are not due.",
        ),
        time_chart(
            "Visits with a purchase", times, [("purchases", _purchases(points))], marks,
            about=f"Over the last {WINDOW} looks.",
        ),
        time_chart("Shares in force", times, in_force, marks, about="Of some sellers."),
        time_chart("Truly due", times, due, marks, about="To the same; the service cannot see it."),
    ]  # fmt: skip


def _chosen(demo: Demo) -> list[int]:
    """Sellers worth a line: who comes, who goes, two of the season, the best and a middling one."""
    names, due = demo.shop.names, demo.points[-1].due
    first = [SELLERS, demo.shop.leaver, names.index("summer 1"), names.index("winter 1")]
    rest = [arm for arm in np.argsort(-due).tolist() if arm not in first and due[arm] > 0.0]
    return [*first, rest[0], rest[len(rest) // 2]]


def _purchases(points: Sequence[Point]) -> list[float]:
    """Purchases per visit, over a few points."""
    found = [float("nan")] * min(WINDOW, len(points))
    for before, now in zip(points, points[WINDOW:], strict=False):
        visits = now.queries - before.queries
        found.append((now.bought - before.bought) / visits if visits else float("nan"))
    return found

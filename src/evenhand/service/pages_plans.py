"""Plans as they were published: shares, terms and arms of any past day, and whether they follow."""

import calendar
import csv
import io
import time
from functools import partial
from urllib.parse import quote

import numpy as np

from evenhand.pages.charts import bars
from evenhand.service import agreements, happenings, slices
from evenhand.service.agreements import Published
from evenhand.service.database import Connection
from evenhand.service.pages_audit import as_file, harmless
from evenhand.service.problems import Problem
from evenhand.service.recompute import Verdict, elsewhere
from evenhand.service.requests import Answer
from evenhand.service.visits import Visit
from evenhand.service.worker import View

Around = tuple[int | None, int | None]


async def plan(visit: Visit) -> Answer:
    """A plan as it was published: the newest, one by its number, or that in force at a time."""
    return await _page(visit, None)


async def _page(visit: Visit, said: Verdict | None) -> Answer:
    view = visit.view
    found, around = await visit.worker.reader.do(partial(_read, view=view, visit=visit))
    base = f"/experiments/{quote(view.name, safe='')}"
    if found is None:
        return visit.page("plan.html", view=view, base=base, found=None)
    names = [view.called(arm) for arm in found.arms]
    shares = np.array(found.marginals) / found.k
    here = slices.cut(visit, names, {"due": shares}, "due")
    rows = [(names[i], float(shares[i]), found.marginals[i]) for i in here.places]
    nothing = [None] * len(rows)
    drawn, top = bars(nothing, [share for _, share, _ in rows], nothing, nothing)
    return visit.page(
        "plan.html",
        view=view,
        base=base,
        found=found,
        rows=rows,
        bars=drawn,
        top=top,
        slice=here,
        sorting=slices.headings(visit, here, ("name", "due")),
        link=slices.pager(visit),
        before=around[0],
        after=around[1],
        terms=happenings.terms_in_words(view, found.terms),
        paused=[view.called(arm) for arm in found.paused],
        day=time.strftime("%Y-%m-%d", time.gmtime(found.at)),
        clock=time.strftime("%H:%M:%S", time.gmtime(found.at)),
        csrf=visit.session.csrf,
        said=said,
    )


def _read(c: Connection, view: View, visit: Visit) -> tuple[Published | None, Around]:
    number = _wanted(c, view, visit)
    found = None if number is None else agreements.published(c, view.id, number)
    return found, (None, None) if found is None else agreements.neighbours(c, view.id, found.number)


def _wanted(c: Connection, view: View, visit: Visit) -> int | None:
    """Return which plan is asked for."""
    if "number" in visit.asked:
        return visit.whole("number", 1) if visit.asked["number"] != "0" else 0
    if "day" not in visit.asked:
        return agreements.number_at(c, view.id, float("inf"))
    at = moment(visit.asked["day"], visit.asked.get("clock", ""))
    number = agreements.number_at(c, view.id, at)
    if number is None:
        raise Problem(404, "there was no plan yet at that time; the oldest one kept is younger")
    return number


def moment(day: str, clock: str) -> float:
    """Read a day and a time of the clock, in UTC; a day alone means its end.

    Examples
    --------
    >>> moment("1970-01-02", "00:01"), moment("1970-01-01", "")
    (86460.999, 86399.999)
    """
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"):
        try:
            return calendar.timegm(time.strptime(f"{day} {clock or '23:59:59'}", form)) + 0.999
        except ValueError:
            continue
    raise Problem(400, f"the day must be like 2026-01-31 and the time like 14:30, got {day[:20]!r}")


async def export(visit: Visit) -> Answer:
    """A plan as a file."""
    view = visit.view
    found, _ = await visit.worker.reader.do(partial(_read, view=view, visit=visit))
    if found is None:
        raise Problem(404, "there is no such plan")
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("plan", "published_at", "arm_id", "arm", "marginal", "share_of_places"))
    for arm, marginal in zip(found.arms, found.marginals, strict=True):
        name = harmless(view.called(arm))
        out.writerow((found.number, f"{found.at:.3f}", arm, name, marginal, marginal / found.k))
    return as_file(file.getvalue(), f"plan-{found.number}.csv")


async def recompute(visit: Visit) -> Answer:
    """Follow the log again up to a plan, and compare."""
    number = visit.form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) < 17):
        raise Problem(400, "the form must name a plan by its number")
    visit.asked |= {"number": number}
    url, name = visit.worker.source.url, visit.view.name
    return await _page(visit, await elsewhere(url, name, int(number)))

"""The page itself: one file with everything in it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand import __version__
from evenhand.account import Account, explain, figures
from evenhand.convergence import nearness
from evenhand.learners import Learner
from evenhand.pages.charts import TimeChart, bars
from evenhand.pages.render import render
from evenhand.pages.words import number, percent
from evenhand.palette import LEARNERS

MOST = 300  # arms of a page, each with its reasons
KINDS = {
    "even-hand": "EvenHand",
    "full-sets": "FullSets",
    "iw-ksvfair": "IWKSVFair",
    "urs": "URS, all arms alike",
}


class Table(NamedTuple):
    """A table that a page shows besides: title, what it says, columns, rows of words, notes.

    Rows may be those of learners, whose names say how to mark them.
    """

    title: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    learners: Sequence[str] = ()

    @property
    def signs(self) -> list[tuple[str, str]]:
        """Marker and name of each row's learner."""
        return [(LEARNERS[name].sign, name) for name in self.learners]


def page(
    source: Learner | Account,
    title: str = "",
    lead: str = "",
    charts: Sequence[TimeChart] = (),
    tables: Sequence[Table] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a page about a learner, as HTML that needs nothing else.

    It shows what every arm is due against what it was given, how far that still is from what is
    truly due, what happened, how it is learnt, and why every arm has its share. Of more than 300
    arms it shows those with the largest and the smallest shares and those furthest from due.

    Parameters
    ----------
    source
        A learner, or its account.
    title, lead
        What stands at the top.
    charts, tables
        What else to show; charts must have the same marks.
    notes
        What else there is to say about how far it is.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> text = page(EvenHand(m=4, k=2, names=["ada", "bob", "cy", "<u>"], seed=1))
    >>> text.startswith("<!doctype html>"), "&lt;u&gt;" in text, "<u>" in text
    (True, True, False)
    """
    if not isinstance(source, Learner | Account):
        raise TypeError(f"source must be a learner or an account, got {type(source).__name__}")
    account = source if isinstance(source, Account) else source.account()
    kind = KINDS.get(account.learner, account.learner)
    where = figures.chosen(account, MOST)
    near = nearness(account)
    return render(
        "learner.html",
        alone=True,
        title=title or f"{kind}, {number(account.m)} arms",
        lead=lead or f"{kind} after {number(account.queries)} queries.",
        version=f"Evenhand {__version__}",
        account=account,
        facts=_facts(account, near),
        convergence=[_how_far(near), *notes],
        table=_arms(account, where, near),
        whys=[(account.label(i), explain(account, int(account.arms[i]))) for i in where],
        happenings=figures.happenings(account),
        sizes=figures.sizes(account),
        diagnostics=figures.diagnostics(account),
        charts=charts,
        tables=tables,
    )


def _facts(account: Account, near: Any) -> list[dict[str, str]]:
    paused = int(account.paused.sum())
    made = [
        ("given is off due by", percent(figures.off_due(account)), "of all places so far"),
        (
            "shares are off truly due by",
            percent(near.distance) if near else percent(None),
            f"estimated, {percent(near.low)} to {percent(near.high)}"
            if near
            else "cannot be said yet",
        ),
        ("queries asked", number(account.queries), f"{number(account.told)} rewards counted"),
        ("arms", number(account.m), f"{account.k} at a time; {number(paused)} paused"),
    ]
    if account.total is not None and account.told:
        made.insert(2, ("mean reward", number(account.total / account.told), "of all told"))
    return [{"name": name, "value": value, "about": about} for name, value, about in made]


def _how_far(near: Any) -> str:
    if near is None:
        return (
            "How far shares are from what is truly due cannot be said: standard errors are not "
            "known for two arms or more."
        )
    return (
        f"The shares in force are about {percent(near.distance)} of all exposure away from what is "
        f"truly due; between {percent(near.low)} and {percent(near.high)} with a chance of 90 %, "
        "if the standard errors are right."
    )


def _arms(account: Account, where: Any, near: Any) -> dict[str, Any]:
    """Rows of arms with their bars."""
    k = account.k
    rewards: Any = account.shown
    if rewards is None and account.company is not None:
        rewards = account.company + (0 if account.alone is None else account.alone)
        rewards = np.where(account.paused, np.nan, rewards)  # of those it is not said

    def entry(column: Any, i: int) -> float | None:
        value = None if column is None else float(column[i])
        return None if value is None or not np.isfinite(value) else value

    rows: list[dict[str, Any]] = [
        {
            "id": int(account.arms[i]),
            "name": account.label(i),
            "href": f"#why-{account.arms[i]}",
            "due": entry(account.due / k, i),
            "given": entry(account.given / k, i),
            "merit": entry(account.merit, i),
            "stderr": entry(account.stderr, i),
            "shown": entry(rewards, i)
            if account.shown is not None or not account.paused[i]
            else None,
            "tags": _tags(account, i),
        }
        for i in where
    ]
    for row in rows:
        row["gap_words"] = figures.gap_in_words(row["due"], row["given"])
    ends = np.full((len(account.arms), 2), np.nan) if near is None else near.ends
    lows, highs = ([entry(column / k, i) for i in where] for column in ends.T)
    drawn, top = bars([row["due"] for row in rows], [row["given"] for row in rows], lows, highs)
    return {"rows": rows, "bars": drawn, "top": top}


def _tags(account: Account, i: int) -> list[figures.Tag]:
    if account.paused[i]:
        return [figures.Tag("", "paused")]
    if account.settled is not None and not account.settled[i] >= 0.5:
        return [figures.Tag("", "little seen")]
    return []

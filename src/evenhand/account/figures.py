"""What an account shows, as a page needs it: numbers with their words, no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.account.account import Account
from evenhand.pages.words import NOTHING, number, percent

if TYPE_CHECKING:
    from evenhand.typing import Ints


class Tag(NamedTuple):
    """A word that stands beside an arm's name, and its kind: bad, warn, good or none."""

    kind: str
    words: str


def sizes(account: Account) -> list[tuple[int, str, float]]:
    """How many arms queries show: the number, their share in words, and the width of a bar."""
    shares = account.sizes
    if shares is None or np.count_nonzero(shares) < 2:
        return [(account.k, percent(1.0), 100.0)]
    top = float(shares.max())
    return [
        (r, percent(float(x)), round(100.0 * float(x) / top, 2)) for r, x in enumerate(shares, 1)
    ]


def diagnostics(account: Account) -> dict[str, Any]:
    """How well it all is founded: in words, and as numbers."""
    said, numbers = [], dict(account.diagnostics or {})
    if account.settled is not None:
        own = int((account.settled[~account.paused] >= 0.5).sum())
        said.append(
            f"For {number(own)} of {number(account.m)} arms their own rewards decide their merit; "
            "that of the others still rests mostly on what arms have in common."
        )
    if account.mixing is not None:
        said.append(
            f"{percent(account.mixing)} of all places are in sets drawn uniformly, so that "
            "no arm goes out of sight; shares stay as they are due all the same."
        )
    if account.trust is not None and np.isfinite(account.trust).any():
        said.append(
            f"Merits rest for {percent(float(np.nanmedian(account.trust)))} (in the middle) on "
            "means that are right for any game, and for the rest on a model of how arms overlap, "
            "which errs less while rewards are few."
        )
    if "curvature" in numbers:
        gamma = numbers["curvature"]
        how = "hardly overlap" if gamma < 0.2 else "overlap in part" if gamma < 0.7 else "overlap"
        said.append(f"In the model, what arms bring together seems to {how}.")
    if account.changes is not None:
        n = len(account.changes)
        noticed = f"{n} change{'' if n == 1 else 's'} noticed so far."
        said.append(noticed if n else "No change of what arms bring was noticed.")
    if "half_life" in numbers:
        said.append(
            "Most arms change little by little: what was told counts half after "
            f"{number(round(numbers['half_life']))} rewards."
        )
    table = {
        "learner": account.learner,
        "queries asked": number(account.queries),
        "rewards counted": number(account.told),
        "places in uniform sets": percent(account.mixing),
    }
    table |= {name.replace("_", " "): number(x) for name, x in numbers.items()}
    return {"said": said, "table": table}


def gap_in_words(due: float | None, given: float | None) -> str:
    r"""How far given is above or below due, in points of percent; nothing for who is due nothing.

    Examples
    --------
    >>> gap_in_words(0.02, 0.05), gap_in_words(None, 0.02)
    ('+3.0\xa0%', '–')
    """
    if due is None or given is None or due == 0.0:
        return NOTHING
    gap = given - due
    sign = "+" if gap > 0 else "\u2212" if gap < 0 else "±"
    return f"{sign}{percent(abs(gap))}"


def off_due(account: Account) -> float | None:
    """Share of all places given so far that would have to move to be where they are due now."""
    known = np.isfinite(account.given) & ~account.paused
    if not known.any():
        return None
    given, due = account.given[known], account.due[known]
    if not given.sum() > 0.0:
        return None
    return 0.5 * float(np.abs(given / given.sum() - due / due.sum()).sum())


def happenings(account: Account) -> list[tuple[int, str, str]]:
    """What happened to arms that are there, and to terms: when, in queries, to whom, and what."""
    found = [
        (int(joined), account.label(i), "joined")
        for i, joined in enumerate(account.joined.tolist())
        if joined > 0
    ]
    found += [(queries, "terms", "were changed") for queries in account.agreed]
    for queries, arm, alone in account.changes or ():
        if np.any(account.arms == arm):
            what = "was noticed to bring something else" + ("" if alone else " with others")
            found.append((queries, account.label(account.column(arm)), what))
    return sorted(found)


def chosen(account: Account, most: int) -> Ints:
    """Columns of the arms to show, by falling share: all, or a third each of three kinds.

    Those with the largest and the smallest shares, and those whose given is furthest from due.
    """
    n = len(account.arms)
    order = np.lexsort((account.arms, -account.due))
    if n <= most:
        return order
    gap = np.nan_to_num(np.abs(account.given - account.due))
    part = most // 3
    picked = set(order[:part].tolist()) | set(order[-part:].tolist())
    for column in np.lexsort((account.arms, -gap)).tolist():
        if len(picked) >= most:
            break
        picked.add(column)
    return order[np.isin(order, list(picked))]

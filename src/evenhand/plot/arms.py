"""Pictures of a learner, live or saved: what each arm is due, was given and is worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.account import Account
from evenhand.checks import check_integer
from evenhand.convergence import nearness
from evenhand.learners import Learner
from evenhand.palette import DUE, GIVEN
from evenhand.plot.axes import NORMAL_95, new_axes, own_look
from evenhand.storage import load
from evenhand.typing import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND, ROW = "#F0D3BF", 0.22  # colour of intervals, and inches per arm
Source = Learner | Account | str | Path


def portrait(source: Source, *, most: int = 40, ax: "Axes | None" = None) -> "Axes":
    """Draw what each arm is due against what it was given, as ``evenhand page`` does.

    A bar is the share of all places that an arm was given so far, a mark what it is due now, and
    behind it is a band where what is truly due lies with a chance of 95 %, if the standard errors
    are right. The title says how far the shares in force are from what is truly due.

    Parameters
    ----------
    source
        A learner, its account, or the file that it was saved to.
    most
        Arms drawn: of more than that, one half with the largest shares and one with the smallest.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> ax = portrait(EvenHand(m=4, k=2, names=["ada", "bob", "cy", "dee"], seed=1))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ada', 'bob', 'cy', 'dee']
    """
    account = _account(source)
    rows, near = _rows(account, account.due, most), nearness(account)
    ax, at, k = _tall(ax, len(rows)), np.arange(len(rows)), account.k
    if near is not None:
        low, high = near.ends[rows].T / k
        ax.barh(at, high - low, 0.9, low, color=BAND, label="truly due, 95 %")
    given = np.nan_to_num(account.given[rows] / k)
    ax.barh(at, given, 0.45, color=GIVEN[0], label="given so far")
    due = account.due[rows] / k
    ax.plot(due, at, "|", color=DUE[0], markersize=12, markeredgewidth=2.5, label="due now")
    _name(ax, account, rows)
    off = "" if near is None else f", about {near.distance:.1%} off truly due"
    ax.set_title(f"after {account.queries:,} queries{off}", loc="left", fontsize=10, pad=22)
    ax.set_xlabel("share of all places")
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g} %")
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlim(left=0)
    above = {"bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "ncols": 3}
    ax.legend(loc="lower left", frameon=False, fontsize=8, **above)
    return ax


def merits(source: Source, *, most: int = 40, ax: "Axes | None" = None) -> "Axes":
    """Draw estimated merits with 1.96 standard errors either way.

    Parameters
    ----------
    source, most, ax
        As for :func:`portrait`; arms are in the order of their merits.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=4, k=2, seed=1)
    >>> for _ in range(20):
    ...     batch = learner.ask()
    ...     learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    >>> merits(learner).get_xlabel()
    'merit, in the units of rewards'
    """
    account = _account(source)
    if not np.isfinite(account.merit).any():
        raise ValueError(
            f"source must have estimated a merit, got none from {account.learner}; tell it some "
            "rewards, or take a learner that estimates merits"
        )
    known = np.isfinite(account.merit)
    rows = _rows(account, np.where(known, account.merit, -np.inf), most)
    rows = rows[known[rows]]
    ax = _tall(ax, len(rows))
    at, error = np.arange(len(rows)), NORMAL_95 * np.nan_to_num(account.stderr[rows])
    style = own_look(account.learner).line(linestyle="none", markersize=4)
    ax.errorbar(account.merit[rows], at, xerr=error, **style)
    ax.axvline(0.0, color="#000000", linewidth=0.8)
    _name(ax, account, rows)
    word = "full-set value" if account.learner == "full-sets" else "merit"
    ax.set_title(f"after {account.queries:,} queries", loc="left", fontsize=10)
    ax.set_xlabel(f"{word}, in the units of rewards")
    return ax


def _account(source: Any) -> Account:
    if isinstance(source, str | Path):
        source = load(source)
    if isinstance(source, Learner):
        source = source.account()
    if not isinstance(source, Account):
        raise TypeError(
            "source must be a learner, its account or the file it was saved to, got "
            f"{type(source).__name__}"
        )
    return source


def _rows(account: Account, by: Floats, most: int) -> Ints:
    """Columns of the arms to draw, by falling numbers."""
    most = check_integer("most", most, 2)
    order = np.lexsort((account.arms, -by))
    if len(order) <= most:
        return order
    return np.append(order[: most - most // 2], order[-(most // 2) :])


def _tall(ax: "Axes | None", n: int) -> "Axes":
    ax = new_axes(ax, height=1.2 + ROW * n)
    ax.grid(visible=False, axis="y")
    return ax


def _name(ax: "Axes", account: Account, rows: Ints) -> None:
    """Write the arms beside their rows, the first one at the top."""
    names = [account.label(i) + (" (paused)" if account.paused[i] else "") for i in rows]
    ax.set_yticks(np.arange(len(rows)), names, fontsize=8, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)

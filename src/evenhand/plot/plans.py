"""Pictures of what is to come."""

from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.palette import LEARNERS
from evenhand.planning import Outlook
from evenhand.plot.axes import SOFT, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def outlook(found: Outlook, *, traffic: float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw how far shares are from those due, over the queries asked.

    The line is the median of the simulated worlds, the band holds eight of ten. A grey line is the
    distance aimed at.

    Parameters
    ----------
    found
        What :func:`evenhand.planning.outlook` returned.
    traffic
        Queries per day; a second axis counts days then.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> outlook(evenhand.outlook(m=6, k=2, rate=0.3, queries=500, worlds=2)).get_xlabel()
    'queries'
    """
    low, middle, high = np.quantile(found.distance, [0.1, 0.5, 0.9], axis=0)
    ax, colour = new_axes(ax), LEARNERS["even-hand"].colour
    ax.fill_between(found.queries, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(found.queries, middle, color=colour, linewidth=1.8)
    ax.axhline(found.within, color=SOFT, linewidth=1)
    title = f"{found.settled:.1%} off, as arms change" if found.changing else _title(found)
    ax.set(
        xscale="log",
        ylim=(0.0, 1.05 * high.max()),
        xlabel="queries",
        ylabel="share of exposure that goes to the wrong arm",
        title=title,
    )
    ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.4g}%")
    if traffic is not None:
        per_day = float(traffic)

        def to_days(pages: Any) -> Any:
            return pages / per_day

        def to_pages(days: Any) -> Any:
            return days * per_day

        days = ax.secondary_xaxis("top", functions=(to_days, to_pages))
        days.set_xlabel("days")
    return ax


def _title(found: Outlook) -> str:
    low, middle, high = (f"{float(f'{n:.1e}'):,.0f}" for n in found.range())
    return f"within {100 * found.within:.4g}% after {middle} ({low} to {high})"

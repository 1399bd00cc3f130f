"""Axes and colours that all pictures share."""

from typing import TYPE_CHECKING

from evenhand.palette import SERIES, Look, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOFT = "#9A9A9A"
NORMAL_95 = 1.96  # a normal variable is within so many standard errors with probability 0.95
STRANGER = Look(SERIES[0], SERIES[0], "o")  # a learner of one's own, alone in a picture


def own_look(learner: str) -> Look:
    """How a learner is drawn that is alone in a picture."""
    return look(learner) or STRANGER


def new_axes(ax: "Axes | None", width: float = 5.2, height: float = 4.2) -> "Axes":
    """Return the axes given, or new ones that no window belongs to."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "evenhand.plot needs matplotlib; install it with: pip install 'evenhand[plot]'"
        ) from None
    ax = Figure(figsize=(width, height), layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    return ax

"""Axes and colours that all pictures share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT = "#0072B2", "#9A9A9A"
# Okabe and Ito's colours, told apart by the colour-blind
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NORMAL_95 = 1.96  # a normal variable is within so many standard errors with probability 0.95


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

"""Tables that notebooks show."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from numpy.typing import NDArray

MAX_ROWS = 20


def html_table(caption: str, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> str:
    """HTML of the first 20 rows of columns of one length, and how many more there are.

    Examples
    --------
    >>> html_table("Figs", {"kg": [0.05]})
    '<table><caption>Figs</caption><tr><th>kg</th></tr><tr><td>0.05</td></tr></table>'
    """
    rows = zip(*(column[:MAX_ROWS] for column in columns.values()), strict=True)
    lines = _row("th", columns) + "".join(_row("td", row) for row in rows)
    left = len(next(iter(columns.values()))) - MAX_ROWS
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><caption>{escape(caption)}</caption>{lines}</table>{more}"


def _row(tag: str, cells: Iterable[Any]) -> str:
    texts = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"

"""How results show themselves: ranges for one-line reprs, tables for notebooks."""

from collections.abc import Mapping
from html import escape
from typing import Any

from numpy.typing import NDArray

MAX_ROWS = 20  # of a table


def span(values: NDArray[Any]) -> str:
    """Smallest and largest of some numbers, to three digits.

    Examples
    --------
    >>> import numpy as np
    >>> span(np.array([0.25, 0.5])), span(np.array([0.1, 0.1])), span(np.array([]))
    ('0.25..0.5', '0.1', 'none')
    """
    if values.size == 0:
        return "none"
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low}..{high}"


def html_table(columns: Mapping[str, NDArray[Any]], n_rows: int, caption: str = "") -> str:
    """Make an HTML table of the first of some rows, and say how many more there are.

    Examples
    --------
    >>> import numpy as np
    >>> html_table({"arm": np.arange(1), "merit": np.array([0.25])}, n_rows=1)
    '<table><tr><th>arm</th><th>merit</th></tr><tr><td>0</td><td>0.25</td></tr></table>'
    """
    rows = zip(*(column[:MAX_ROWS].tolist() for column in columns.values()), strict=True)
    lines = [_row("th", list(columns)), *(_row("td", cells) for cells in rows)]
    more = f"<p>and {n_rows - MAX_ROWS:,} more</p>" if n_rows > MAX_ROWS else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{''.join(lines)}</table>{more}"


def _row(tag: str, cells: Any) -> str:
    texts = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells]
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def in_minutes(seconds: float) -> str:
    """Say a time in few words.

    Examples
    --------
    >>> in_minutes(40), in_minutes(400), in_minutes(40_000)
    ('40 s', '6.7 min', '11.1 hours')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} hours"

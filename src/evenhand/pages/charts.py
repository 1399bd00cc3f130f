"""Geometry of charts: all that a template needs to draw them, as plain values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.pages.words import machine_moment, moment, number, percent, plain

WIDE, HIGH = 1000.0, 200.0  # units of a line's box; stretched to whatever room there is
ROWS = 24  # of the table behind a chart
WORDS: dict[str, Callable[[float | None], str]] = {"percent": percent, "number": number}
STEPS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
    172800, 604800, 1209600, 2592000, 7776000, 31536000,
)  # fmt: skip
"""Seconds between ticks of a time axis."""


class Mark(NamedTuple):
    """Something that happened: where on the axis, what kind, and in words."""

    at: float
    kind: str  # a class of the style sheet: join, leave, pause, terms, change, other
    words: str


class Line(NamedTuple):
    """A line as it is drawn."""

    name: str
    path: str
    band: str  # area between its limits, or ""
    last: str


class Tick(NamedTuple):
    """A tick: where, as a percentage or in units, and what is written there."""

    place: float
    words: str


class Flag(NamedTuple):
    """Marks at one place of the axis."""

    place: float
    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class TimeChart:
    """A chart over time.

    Attributes
    ----------
    title, about
        What it shows, and how to read it.
    lines, xs, ys
        Lines and ticks.
    flags, legend
        Marks on the axis by number, and what they mean.
    columns, table
        The same as a table, thinned.
    data
        The same for a script that shows values under the pointer.
    """

    title: str
    about: str
    lines: list[Line]
    xs: list[Tick]
    ys: list[Tick]
    flags: list[Flag]
    legend: list[tuple[int, str, str, str]]
    columns: list[str]
    table: list[list[str]]
    data: dict[str, object]


def time_chart(
    title: str,
    times: ArrayLike,
    lines: Sequence[tuple[str, ArrayLike]],
    marks: Sequence[Mark] = (),
    unit: str = "percent",
    about: str = "",
    bands: Sequence[tuple[ArrayLike, ArrayLike] | None] = (),
) -> TimeChart:
    """Lay out lines over time; nan is a gap.

    Parameters
    ----------
    title, about
        What it shows.
    times
        Seconds since 1970, ascending.
    lines
        Name and values of each.
    marks
        What happened; those outside the times are left out.
    unit
        ``"percent"`` for shares, else ``"number"``.
    bands
        For each line its limits, or None.
    """
    at = np.asarray(times, np.float64)
    values = [(name, np.asarray(y, np.float64)) for name, y in lines]
    limits = [None if b is None else (np.asarray(b[0]), np.asarray(b[1])) for b in bands]
    limits += [None] * (len(values) - len(limits))
    start, end = (float(at[0]), float(at[-1])) if len(at) else (0.0, 1.0)
    width = max(end - start, 1e-9)
    x = WIDE * (at - start) / width
    tops = [np.nanmax(y) for _, y in values if np.isfinite(y).any()]
    tops += [np.nanmax(b[1]) for b in limits if b is not None and np.isfinite(b[1]).any()]
    lows = [np.nanmin(y) for _, y in values if np.isfinite(y).any()]
    ys = ticks(min([0.0, *map(float, lows)]), max([*map(float, tops), 1e-9]))
    low, high = ys[0], ys[-1]

    def place(y: np.ndarray) -> np.ndarray:
        return HIGH * (1.0 - (y - low) / (high - low))

    words = WORDS[unit]
    drawn = []
    for (name, y), band in zip(values, limits, strict=True):
        shown = y[np.isfinite(y)]
        area = "" if band is None else _area(x, place(band[0]), place(band[1]))
        last = words(float(shown[-1]) if len(shown) else None)
        drawn.append(Line(name, _path(x, place(y)), area, last))
    inside = sorted(m for m in marks if start <= m.at <= end and len(at) > 1)
    flags, legend = _flags(inside, start, width)
    rows = np.unique(np.linspace(0, len(at) - 1, min(ROWS, len(at))).astype(int))[::-1]
    table = [[moment(float(at[i])), *(words(float(y[i])) for _, y in values)] for i in rows]
    return TimeChart(
        title, about, drawn,
        time_ticks(start, end) if len(at) > 1 else [],
        [Tick(float(place(np.array(y))), plain(words(y))) for y in ys],
        flags, legend, [name for name, _ in values], table,
        {
            "times": [machine_moment(t).replace("T", " ")[:-1] for t in at.tolist()],
            "places": np.round(x / WIDE, 4).tolist(),
            "names": [name for name, _ in values],
            "values": [_short(y) for _, y in values],
            "unit": unit,
        },
    )  # fmt: skip


def _flags(
    marks: list[Mark], start: float, width: float
) -> tuple[list[Flag], list[tuple[int, str, str, str]]]:
    """Number the marks; those at nearly the same place share a flag."""
    flags: list[Flag] = []
    legend = []
    for mark in marks:
        place = round(100.0 * (mark.at - start) / width, 2)
        if not flags or place - flags[-1].place > 1.5:
            flags.append(Flag(place, mark.kind, len(flags) + 1))
        legend.append((flags[-1].number, mark.kind, moment(mark.at), mark.words))
    return flags, legend


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return an SVG path; it breaks where there is no number."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(b):
            pen = "M"
            continue
        parts.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L"
    return "".join(parts)


def _area(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    good = np.isfinite(low) & np.isfinite(high)
    if good.sum() < 2:
        return ""
    there, back = _path(x[good], high[good]), _path(x[good][::-1], low[good][::-1])
    return f"{there}L{back[1:]}Z"


def _short(values: np.ndarray) -> list[float | None]:
    """Return numbers to four digits, None where there is none."""
    return [None if x != x else float(f"{x:.4g}") for x in values.tolist()]


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers from at most low to at least high.

    Examples
    --------
    >>> ticks(0.0, 0.37)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    raw = max((high - low) / about, 1e-12)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * s for s in (1, 2, 2.5, 5, 10) if unit * s >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def time_ticks(start: float, end: float, most: int = 6) -> list[Tick]:
    """Return ticks of a time axis: places in percent, and the time in UTC."""
    width = max(end - start, 1e-9)
    step = next((s for s in STEPS if width / s <= most), STEPS[-1])
    form = "%Y-%m-%d" if step >= 86400 else "%H:%M:%S" if step < 60 else "%H:%M"
    import time

    found = []
    for i in range(math.ceil(start / step), math.floor(end / step) + 1):
        at = i * step
        whole = form if step >= 86400 or at % 86400 else "%m-%d"
        found.append(
            Tick(round(100.0 * (at - start) / width, 2), time.strftime(whole, time.gmtime(at)))
        )
    return found


class Bar(NamedTuple):
    """Due against given, in percent of the widest of a slice."""

    due: float | None
    low: float | None
    high: float | None
    given: float | None


def bars(
    due: Sequence[float | None],
    given: Sequence[float | None],
    low: Sequence[float | None],
    high: Sequence[float | None],
) -> tuple[list[Bar], float]:
    """Return bars of a slice of arms, and the share that the full width stands for."""
    everything = [x for column in (due, given, high) for x in column if x is not None]
    top = ticks(0.0, max([*everything, 1e-9]))[-1]

    def scaled(x: float | None) -> float | None:
        return None if x is None else round(100.0 * min(max(x / top, 0.0), 1.0), 2)

    rows = zip(due, low, high, given, strict=True)
    return [Bar(*map(scaled, row)) for row in rows], top

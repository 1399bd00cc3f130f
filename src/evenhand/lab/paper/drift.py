"""Tables and figures of worlds that change: dynamic regret, and due and given over time."""

import json
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.lab.figures import looks_of
from evenhand.lab.ratios import log_ratio
from evenhand.palette import SERIES
from evenhand.typing import Floats, Ints

COURSES = (
    *("world", "learner", "T", "n", "dynamic regret", "of not watching", "of the restarted"),
    *("after the first change", "of the restarted", "of the knowing"),
    *("noticed per run", "changes seen within 2e4", "seconds"),
)
WITHIN = 20_000  # queries after a change in which noticing it counts
SHOWN = 4  # arms drawn


class Course(NamedTuple):
    """Runs of one line, by replication, nan where one is missing: (r, c) and (r,) arrays."""

    marks: Ints
    regret: Floats
    seconds: Floats
    changes: list[list[int]]  # times of all changes, by replication
    noticed: list[list[int]]

    @property
    def total(self) -> Floats:
        """Dynamic regret (r,)."""
        return self.regret[:, -1]

    @property
    def later(self) -> Floats:
        """The same after each run's first change; nan where none came."""
        return np.array(
            [
                row[-1] - np.interp(times[0], [0, *self.marks], [0.0, *row]) if times else np.nan
                for row, times in zip(self.regret, self.changes, strict=True)
            ]
        )

    @property
    def seen(self) -> float:
        """Share of changes that were noticed soon; nan where there were none."""
        found = [
            any(t <= n <= t + WITHIN for n in noticed)
            for times, noticed in zip(self.changes, self.noticed, strict=True)
            for t in times
        ]
        return float(np.mean(found)) if found else np.nan


def courses(
    experiment: Experiment, results: pl.DataFrame, panel: Panel
) -> dict[str, tuple[Line, Course]]:
    """Runs of a panel's lines at the largest horizon there is, by label."""
    found = {}
    for line in panel.lines:
        cells = experiment.cells(panel, line)
        mine = results.filter(pl.col("id").is_in([c.id for c in cells]))
        rows = {row["id"]: row for row in mine.iter_rows(named=True)}
        last = max((c.horizon for c in cells if c.id in rows), default=None)
        if last is not None:
            chosen = [rows.get(c.id) for c in cells if c.horizon == last]
            found[line.label] = line, _course(chosen)
    return found


def _course(rows: list[dict[str, Any] | None]) -> Course:
    there = [row for row in rows if row is not None]
    marks = np.array(there[0]["marks"], np.int64)
    none = np.full(len(marks), np.nan)
    return Course(
        marks,
        np.array([none if row is None else row["regret_curve"] for row in rows]),
        np.array([np.nan if row is None else row["seconds"] for row in rows]),
        [[] if row is None else _times(row["changes"]) for row in rows],
        [[] if row is None else _times(row["noticed"]) for row in rows],
    )


def _times(text: str) -> list[int]:
    """Times of changes kept as JSON, each once."""
    return sorted({int(change[0]) for change in json.loads(text)})


def course_rows(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`COURSES`, one per line of a panel."""
    rows: list[tuple[str, ...]] = []
    for panel in experiment.panels:
        found = courses(experiment, results, panel)
        by_kind = {line.config["kind"]: course for line, course in found.values()}
        for label, (_, one) in found.items():
            there = ~np.isnan(one.total)
            rows.append(
                (
                    *(panel.title, label, f"{one.marks[-1]:.3g}", str(int(there.sum()))),
                    _with_error(one.total),
                    _ratio(one, by_kind.get("even-hand-unwatched"), "total"),
                    _ratio(one, by_kind.get("restarted"), "total"),
                    _with_error(one.later),
                    _ratio(one, by_kind.get("restarted"), "later"),
                    _ratio(one, by_kind.get("knowing"), "later"),
                    f"{np.mean([len(x) for x in one.noticed]):.2g}",
                    "" if np.isnan(one.seen) else f"{100 * one.seen:.0f} %",
                    f"{np.nanmedian(one.seconds):.3g}",
                )
            )
    return rows


def _with_error(values: Floats) -> str:
    """Mean of the values that are there and its standard error."""
    there = values[~np.isnan(values)]
    if not len(there):
        return ""
    error = there.std(ddof=1) / np.sqrt(len(there)) if len(there) > 1 else 0.0
    return f"{there.mean():.3g} ± {error:.2g}"


def _ratio(one: Course, base: Course | None, what: str) -> str:
    """Paired ratio of regrets, empty where there is nothing to compare with."""
    if base is None or base is one:
        return ""
    ratio = log_ratio(getattr(one, what), getattr(base, what))
    error = f" ± {100 * ratio.stderr:.0f} %" if ratio.n > 1 else ""
    return f"{np.exp(ratio.value):.2f}{error}" if ratio.n else ""


def course_figure(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """One row per world: loss over time of all lines, and due and given of the first line."""
    n = len(experiment.panels)
    figure = Figure(figsize=(11, 2.9 * n))
    grid = figure.subplots(n, 2, squeeze=False)
    for (left, right), panel in zip(grid, experiment.panels, strict=True):
        found = courses(experiment, results, panel)
        styles = looks_of(panel)
        for label, (_, one) in found.items():
            steps = np.diff(one.marks, prepend=0)
            loss = np.nanmean(np.diff(one.regret, axis=1, prepend=0.0) / steps, axis=0)
            left.plot(one.marks, loss, label=label, **styles[label].line(lw=1.2, marker=""))
            for t in one.changes[0]:
                left.axvline(t, color="grey", lw=0.6, ls=":")
        left.set(title=panel.title, ylabel="distance to fair", yscale="log")
        _due_and_given(right, experiment, results, panel)
    for axes in grid[-1]:
        axes.set_xlabel("queries")
    for axes in grid.flat:
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    most = max(grid[:, 0], key=lambda axes: len(axes.get_legend_handles_labels()[1]))
    lines, labels = most.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.suptitle(experiment.title)
    return figure


def _due_and_given(axes: Axes, experiment: Experiment, results: pl.DataFrame, panel: Panel) -> None:
    """Draw what the arms whose due moved most were due and given, in the first replication."""
    line = panel.lines[0]
    first = [c.id for c in experiment.cells(panel, line) if c.replication == 1]
    rows = results.filter(pl.col("id").is_in(first), pl.col("due").is_not_null())
    if rows.is_empty():
        axes.set_axis_off()
        axes.text(0.5, 0.5, "too many arms to draw", ha="center", transform=axes.transAxes)
        return
    row = rows.sort("horizon").row(-1, named=True)
    marks = np.array(row["marks"])
    due, given = (np.reshape(row[name], (len(marks), -1)) for name in ("due", "given"))
    shown = np.argsort(-np.ptp(due, axis=0), kind="stable")[:SHOWN]
    for arm, colour in zip(shown, SERIES, strict=False):
        there = due[:, arm] > 0.0
        lines = (np.where(there, x[:, arm], np.nan) for x in (due, given))
        for values, style in zip(lines, ("--", "-"), strict=True):
            axes.plot(marks, values, color=colour, lw=1.2, ls=style)
    for t in _times(row["changes"]):
        axes.axvline(t, color="grey", lw=0.6, ls=":")
    axes.set(title=f"{line.label}: due (dashed) and given", ylabel="share of exposure")
    axes.set_ylim(bottom=0.0)

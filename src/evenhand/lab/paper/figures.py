"""Figures that only the paper's experiments have."""

from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from evenhand import theory
from evenhand.lab import figures
from evenhand.lab.experiments import Experiment, Panel
from evenhand.lab.figures import STYLE, line_style, log_axes, looks_of
from evenhand.lab.paper.deployments import honesty, oracle
from evenhand.lab.paper.differences import LOWEST, PER_DECADE
from evenhand.lab.paper.drift import course_figure
from evenhand.lab.paper.tables import timed
from evenhand.lab.readings import Honesty
from evenhand.lab.series import by_label, mean
from evenhand.palette import SERIES, looks


def lower_bound(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """The larger regret of the two instances, beside what no learner can beat."""
    figure = Figure(figsize=(7, 4.5))
    axes = figure.subplots()
    first, second = experiment.panels
    other = by_label(results, experiment, second)
    styles = looks_of(first)
    for label, one in by_label(results, experiment, first).items():
        if np.array_equal(one.horizons, other[label].horizons):
            worse = np.maximum(mean(one.regret), mean(other[label].regret))
            axes.plot(one.horizons, worse, label=label, **styles[label].line())
    m = int(first.game["m"])
    bound = [theory.lower_bound(m, first.k, h) for h in experiment.horizons]
    axes.plot(experiment.horizons, bound, color="black", lw=2, label="lower bound")
    log_axes(axes, "larger regret of the two instances")
    axes.legend(fontsize=8)
    figure.suptitle(experiment.title)
    return figure


def timing(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Median seconds of a run beside the paper's, one bar per learner."""
    runs = timed(experiment, results)
    figure = Figure(figsize=(8, 0.9 + 0.55 * len(runs)))
    axes = figure.subplots()
    places = np.arange(len(runs))[::-1]
    colours = [one.colour for panel in experiment.panels for one in looks_of(panel).values()]
    axes.barh(places, [run.seconds for run in runs], color=colours, height=0.5, label="here")
    paper = [run.paper for run in runs]
    axes.plot(paper, places, color="black", marker="|", ms=14, mew=2, ls="none", label="the paper")
    axes.set_yticks(places, [f"{run.panel}\n{run.label}" for run in runs], fontsize=7)
    axes.set(xscale="log", xlabel="seconds")
    axes.legend(fontsize=8)
    figure.suptitle(experiment.title)
    return figure


def draw_differences(record: dict[str, Any]) -> Figure:
    """Histogram of set-probability differences, both axes logarithmic."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 4))
        axes = figure.subplots()
        edges = 10.0 ** (LOWEST + np.arange(-1, len(record["counts"])) / PER_DECADE)
        axes.stairs(record["counts"], edges, fill=True, color=SERIES[0])
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="absolute difference of a set's probability (leftmost bin: below 1e-24)",
            ylabel="number of differences",
            title="enumerated (BFGS) against scalable design, same policies",
        )
    return figure


def claims_and_shares(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """One column per world: how large errors are beside those claimed, and how fair the shares."""
    worlds: dict[str, list[Panel]] = {}
    for panel in experiment.panels:
        worlds.setdefault(str(panel.game), []).append(panel)
    figure = Figure(figsize=(4.2 * len(worlds), 8.4))
    grid = figure.subplots(3, len(worlds), sharex=True, squeeze=False)
    for column, panels in zip(grid.T, worlds.values(), strict=True):
        both = [(panel, line) for panel in panels for line in panel.lines]
        drawn = looks([line.config["kind"] for _, line in both])
        for (panel, line), one in zip(both, drawn, strict=True):
            late = f", {panel.late} late" if panel.late else ""
            found = honesty(experiment, results, panel, line)
            _claims_line(column, found, f"{line.label}{late}", line_style(one))
        for line, one in zip(panels[0].lines, drawn, strict=False):  # late or not, it is the same
            style = line_style(one) | {"color": "black", "marker": ""}
            best = oracle(experiment, results, panels[0], line)
            _claims_line(column[1:], best, f"oracle for {line.label}", style)
        column[0].set_title(panels[0].title)
    names = "errors / claimed (rms)", "slots misplaced (half-L1), %", "least given / due (mean)"
    for row, name in zip(grid, names, strict=True):
        row[0].set_ylabel(name)
    for axes in grid[0]:
        axes.axhspan(0.8, 1.2, color="black", alpha=0.08, lw=0)
        axes.set(yscale="log", ylim=(0.4, 10.0))
        _few_ticks(axes.yaxis, 1.0)
    for axes in grid[1]:
        axes.set(yscale="log")
        _few_ticks(axes.yaxis, 100.0)
    for axes in grid[2]:
        axes.set(xscale="log", xlabel="rewards told")
        axes.set_xticks(experiment.horizons, [f"{told:,}" for told in experiment.horizons])
        axes.minorticks_off()
    lines, labels = grid[1, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.suptitle(experiment.title)
    return figure


def _few_ticks(axis: Axis, scale: float) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times powers of ten, in units of 1 / scale."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{scale * x:.3g}"))
    axis.set_minor_formatter(NullFormatter())


def _claims_line(column: Any, found: dict[int, Honesty], label: str, style: dict[str, Any]) -> None:
    """Draw one learner into the lowest axes of a column, as many as are given."""
    told = list(found)
    values = (
        [one.rms for one in found.values()],
        [one.misplaced for one in found.values()],
        [one.least for one in found.values()],
    )
    for axes, shown in zip(column, values[-len(column) :], strict=True):
        axes.plot(told, shown, label=label, **style)


KINDS = {
    **figures.KINDS,
    "honesty": claims_and_shares,
    "course": course_figure,
    "pages": figures.panels,
    "fractions": figures.panels,
    "lower-bound": lower_bound,
    "timing": timing,
}

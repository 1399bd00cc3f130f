"""Figures of experiments, drawn from results alone."""

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenhand.lab.experiments import Experiment, nearest
from evenhand.lab.series import Series, mean, series, shares_at_end, spread

# Okabe and Ito's colours, told apart by the colour-blind; markers and dashes tell them in grey
COLOURS = ["#D55E00", "#0072B2", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9"]
COLOURS += ["#7F7F7F", "#882255"]
MARKERS = "os^Dv<>PX"
DASHES = ["-", "--", "-.", ":", "-", "--", "-.", ":", "-"]
N_SHOWN = 20  # arms of a large game shown one by one
SHOWN_SEED = 20

STYLE: Any = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "evenhand",
    "figure.constrained_layout.use": True,
}


def comparison(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Regret linear and log-log, and alignment at the largest horizon."""
    panel = experiment.panels[0]
    lines = [(x.label, series(results, experiment, panel, x)) for x in panel.lines]
    lines = [(label, one) for label, one in lines if len(one.horizons)]
    figure = Figure(figsize=(14, 4.2))
    linear, logs, bars = figure.subplots(1, 3)
    for i, (label, one) in enumerate(lines):
        _line(linear, one, label, i)
        growth = one.growth()
        exponent = "" if growth is None else f" ({growth.value:.2f})"
        _line(logs, one, label + exponent, i)
    _axes(linear, "cumulative fairness regret")
    log_axes(logs, "cumulative fairness regret (log-log)")
    logs.legend(
        fontsize=7,
        title="exponent in brackets",
        title_fontsize=7,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    _inset(linear, lines)
    _alignment_bars(bars, lines)
    figure.suptitle(experiment.title)
    return figure


def _inset(axes: Axes, lines: list[tuple[str, Series]]) -> None:
    """Zoom into the lines too close to the bottom to be told apart."""
    ends = [mean(one.regret)[-1] for _, one in lines]
    low = [i for i, end in enumerate(ends) if end < 0.2 * max(ends)]
    if not low:
        return
    inset = axes.inset_axes((0.12, 0.5, 0.42, 0.42))
    for i in low:
        _line(inset, lines[i][1], lines[i][0], i)
    inset.tick_params(labelsize=6)
    inset.set_title("zoomed in", fontsize=7)


def _alignment_bars(axes: Axes, lines: list[tuple[str, Series]]) -> None:
    horizon = max(int(one.horizons[-1]) for _, one in lines)
    for i, (_, one) in enumerate(lines):
        if one.horizons[-1] == horizon:
            height, error = mean(one.alignment)[-1], spread(one.alignment)[-1]
            axes.bar(i, height, yerr=error, color=COLOURS[i], capsize=3)
            axes.text(i, height + error + 0.02, f"{height:.3f}", ha="center", fontsize=7)
    axes.set_xticks(range(len(lines)), [label for label, _ in lines], rotation=45, ha="right")
    axes.set_ylim(0, 1.12)
    axes.set_title(f"merit-selection alignment at T = {_power(horizon)}")


def panels(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Regret against horizon, one panel per game."""
    n = len(experiment.panels)
    rows = (n + 1) // 2
    figure = Figure(figsize=(10, 3.6 * rows))
    grid = np.atleast_1d(figure.subplots(rows, 2)).reshape(-1)
    for axes, panel in zip(grid, experiment.panels, strict=False):
        for i, line in enumerate(panel.lines):
            one = series(results, experiment, panel, line)
            if len(one.horizons):
                growth = one.growth()
                exponent = "" if growth is None else f" ({growth.value:.2f})"
                _line(axes, one, line.label + exponent, i)
                if np.nanmax(np.abs(one.uncapped / one.regret - 1)) > 1e-9:
                    middle = mean(one.uncapped)
                    label = f"{line.label}, uncapped target"
                    axes.plot(one.horizons, middle, color=COLOURS[i], lw=1, alpha=0.6, label=label)
        log_axes(axes, panel.title)
        axes.legend(fontsize=7)
    figure.suptitle(experiment.title)
    return figure


def armwise(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Merit and selection shares arm by arm, and their ratio, arms in decreasing merit."""
    panel = experiment.panels[0]
    figure = Figure(figsize=(12, 8))
    above, below = figure.subplots(2, 1, sharex=True)
    for i, line in enumerate(panel.lines):
        found = shares_at_end(results, experiment, panel, line)
        if found is None:
            continue
        merit, selection = np.sort(found[0], axis=1)[:, ::-1].mean(axis=0), _sorted_by_merit(*found)
        arms = _shown(len(merit))
        ranks = np.arange(len(arms))
        places = ranks + 0.8 * ((i + 0.5) / len(panel.lines) - 0.5)  # side by side
        if not above.patches:
            above.bar(ranks, merit[arms], color="#DDDDDD", label="merit", width=0.9)
            below.set_xticks(ranks, [str(arm + 1) for arm in arms])
        style = {"marker": MARKERS[i], "color": COLOURS[i], "ls": "none", "ms": 4}
        above.plot(places, selection[arms], label=line.label, **style)
        with np.errstate(divide="ignore"):
            ratio = merit[arms] / selection[arms]
        finite = np.isfinite(ratio)
        below.plot(places[finite], ratio[finite], label=line.label, **style)
        if not finite.all():  # never selected: drawn on the upper edge
            edge = below.get_xaxis_transform()
            below.plot(
                places[~finite], np.ones((~finite).sum()), transform=edge, clip_on=False, **style
            )
    above.set_ylabel("share")
    above.legend(fontsize=7, ncols=2)
    below.axhline(1.0, color="black", lw=0.8)
    below.set_yscale("log")
    below.set_ylabel("merit share / selection share")
    below.set_xlabel("rank of the arm in merit (markers on the upper edge: never selected)")
    figure.suptitle(experiment.title)
    return figure


def _sorted_by_merit(merit: Any, selection: Any) -> Any:
    """Mean selection share of the arm of each rank of merit."""
    order = np.argsort(-merit, axis=1)
    return np.take_along_axis(selection, order, axis=1).mean(axis=0)


def _shown(m: int) -> Any:
    """All arms, or a fixed random choice of twenty in order."""
    if m <= N_SHOWN:
        return np.arange(m)
    return np.sort(np.random.default_rng(SHOWN_SEED).choice(m, N_SHOWN, replace=False))


def _line(axes: Axes, one: Series, label: str, i: int) -> None:
    """A line of means with a band of one standard deviation."""
    middle, deviation = mean(one.regret), spread(one.regret)
    style: dict[str, Any] = {
        "marker": MARKERS[i],
        "color": COLOURS[i],
        "ls": DASHES[i],
        "ms": 4,
        "lw": 1.3,
    }
    axes.plot(one.horizons, middle, label=label, **style)
    low = np.maximum(middle - deviation, 1e-3 * middle)
    axes.fill_between(one.horizons, low, middle + deviation, color=COLOURS[i], alpha=0.15, lw=0)


def _axes(axes: Axes, title: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("horizon T (queries)")
    axes.set_ylabel("regret")


def log_axes(axes: Axes, title: str) -> None:
    """Label the axes of regret against horizon, both logarithmic."""
    _axes(axes, title)
    axes.set_xscale("log")
    axes.set_yscale("log")


def _power(horizon: int) -> str:
    exponent = np.log10(horizon)
    return (
        f"$10^{{{exponent:g}}}$" if abs(exponent - round(2 * exponent) / 2) < 1e-4 else str(horizon)
    )


Draw = Callable[[Experiment, pl.DataFrame], Figure]
KINDS: dict[str, Draw] = {
    "comparison": comparison,
    "regret": panels,
    "panels": panels,
    "armwise": armwise,
}


def draw(
    experiment: Experiment, results: pl.DataFrame, kinds: dict[str, Draw] = KINDS
) -> Figure | None:
    """Draw an experiment's figure, or None while one of its lines has no result at all."""
    if experiment.figure not in kinds:
        hint = nearest(experiment.figure, list(kinds))
        raise ValueError(f"{experiment.name}: unknown figure {experiment.figure!r}{hint}")
    there = set(results["id"].to_list())
    for panel in experiment.panels:
        for line in panel.lines:
            if not any(cell.id in there for cell in experiment.cells(panel, line)):
                return None
    with mpl.rc_context(STYLE):
        return kinds[experiment.figure](experiment, results)

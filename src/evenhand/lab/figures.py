"""Figures of experiments, drawn from results alone."""

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenhand.lab.experiments import Experiment, nearest
from evenhand.lab.series import Series, by_label, mean, shares_by_rank, spread

# Okabe and Ito's colours, told apart by the colour-blind; markers and dashes do it in grey
COLOURS = (
    *("#D55E00", "#0072B2", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#7F7F7F", "#882255"),
)
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
    lines = by_label(results, experiment, experiment.panels[0])
    figure = Figure(figsize=(14, 4.2))
    linear, logs, bars = figure.subplots(1, 3)
    for i, (label, one) in enumerate(lines.items()):
        _line(linear, one, label, i)
        _line(logs, one, _with_exponent(label, one), i)
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


def _inset(axes: Axes, lines: dict[str, Series]) -> None:
    """Zoom into the lines too close to the bottom to be told apart."""
    ends = [mean(one.regret)[-1] for one in lines.values()]
    if min(ends) >= 0.2 * max(ends):
        return
    inset = axes.inset_axes((0.12, 0.5, 0.42, 0.42))
    for i, (label, one) in enumerate(lines.items()):
        if ends[i] < 0.2 * max(ends):
            _line(inset, one, label, i)
    inset.tick_params(labelsize=6)
    inset.set_title("zoomed in", fontsize=7)


def _alignment_bars(axes: Axes, lines: dict[str, Series]) -> None:
    """One bar per line that has the largest horizon of all."""
    horizon = max(int(one.horizons[-1]) for one in lines.values())
    for i, one in enumerate(lines.values()):
        if one.horizons[-1] == horizon:
            height, error = mean(one.alignment)[-1], spread(one.alignment)[-1]
            axes.bar(i, height, yerr=error, color=COLOURS[i], capsize=3)
            axes.text(i, height + error + 0.02, f"{height:.3f}", ha="center", fontsize=7)
    axes.set_xticks(range(len(lines)), list(lines), rotation=45, ha="right")
    axes.set(ylim=(0, 1.12), title=f"merit-selection alignment at T = {_power(horizon)}")


def panels(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Regret against horizon, one panel per game."""
    rows = (len(experiment.panels) + 1) // 2
    figure = Figure(figsize=(10, 3.6 * rows))
    grid = figure.subplots(rows, 2).flat
    for axes, panel in zip(grid, experiment.panels, strict=False):
        for i, (label, one) in enumerate(by_label(results, experiment, panel).items()):
            _line(axes, one, _with_exponent(label, one), i)
            if np.nanmax(np.abs(one.uncapped / one.regret - 1)) > 1e-9:
                style: Any = {"color": COLOURS[i], "lw": 1, "alpha": 0.6}
                label = f"{label}, uncapped target"
                axes.plot(one.horizons, mean(one.uncapped), label=label, **style)
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
        merit, selection = shares_by_rank(results, experiment, panel, line)
        arms = _shown(len(merit))
        ranks = np.arange(len(arms))
        places = ranks + 0.8 * ((i + 0.5) / len(panel.lines) - 0.5)  # side by side
        if i == 0:
            above.bar(ranks, merit[arms], color="#DDDDDD", label="merit", width=0.9)
            below.set_xticks(ranks, [str(arm + 1) for arm in arms])
        style = line_style(i) | {"ls": "none"}
        above.plot(places, selection[arms], label=line.label, **style)
        never = selection[arms] == 0.0
        seen = arms[~never]
        below.plot(places[~never], merit[seen] / selection[seen], label=line.label, **style)
        if never.any():  # drawn on the upper edge
            style |= {"transform": below.get_xaxis_transform(), "clip_on": False}
            below.plot(places[never], np.ones(never.sum()), **style)
    above.set_ylabel("share")
    above.legend(fontsize=7, ncols=2)
    below.axhline(1.0, color="black", lw=0.8)
    below.set(
        yscale="log",
        ylabel="merit share / selection share",
        xlabel="rank of the arm in merit (markers on the upper edge: never selected)",
    )
    figure.suptitle(experiment.title)
    return figure


def _shown(m: int) -> Any:
    """All arms, or a fixed random choice of twenty in order."""
    if m <= N_SHOWN:
        return np.arange(m)
    return np.sort(np.random.default_rng(SHOWN_SEED).choice(m, N_SHOWN, replace=False))


def line_style(i: int) -> dict[str, Any]:
    """Marker, colour and dashes of the i-th line."""
    return {"marker": MARKERS[i], "color": COLOURS[i], "ls": DASHES[i], "ms": 4, "lw": 1.3}


def _line(axes: Axes, one: Series, label: str, i: int) -> None:
    """A line of means with a band of one standard deviation."""
    middle, deviation = mean(one.regret), spread(one.regret)
    axes.plot(one.horizons, middle, label=label, **line_style(i))
    low = np.maximum(middle - deviation, 1e-3 * middle)  # a logarithm has no room for 0
    axes.fill_between(one.horizons, low, middle + deviation, color=COLOURS[i], alpha=0.15, lw=0)


def _with_exponent(label: str, one: Series) -> str:
    """A line's label with the exponent of its growth, where there is one."""
    growth = one.growth()
    return label if growth is None else f"{label} ({growth.value:.2f})"


def _axes(axes: Axes, title: str) -> None:
    axes.set(title=title, xlabel="horizon T (queries)", ylabel="regret")


def log_axes(axes: Axes, title: str) -> None:
    """Label the axes of regret against horizon, both logarithmic."""
    _axes(axes, title)
    axes.set(xscale="log", yscale="log")


def _power(horizon: int) -> str:
    """A horizon as a power of ten where its exponent is a multiple of one half."""
    exponent = np.log10(horizon)
    exact = abs(exponent - round(2 * exponent) / 2) < 1e-4
    return f"$10^{{{exponent:g}}}$" if exact else str(horizon)


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
        raise ValueError(
            f"{experiment.name}: unknown figure {experiment.figure!r}"
            f"{nearest(experiment.figure, list(kinds))}"
        )
    there = set(results["id"])
    lines = [(panel, line) for panel in experiment.panels for line in panel.lines]
    if any(there.isdisjoint(cell.id for cell in experiment.cells(*line)) for line in lines):
        return None
    with mpl.rc_context(STYLE):
        return kinds[experiment.figure](experiment, results)

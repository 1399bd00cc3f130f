"""Figures of experiments, drawn from results alone."""

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenhand.lab.experiments import Experiment, Panel, nearest
from evenhand.lab.series import Series, by_label, mean, shares_by_rank, spread
from evenhand.palette import QUIET, Look, looks

N_SHOWN = 20  # arms of a large game shown one by one
SHOWN_SEED = 20
ENLARGED = 0.2  # lines that end below this part of the highest are drawn once more

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
    """Regret linear, its lowest lines enlarged, log-log, and alignment at the largest horizon."""
    panel = experiment.panels[0]
    lines, styles = by_label(results, experiment, panel), looks_of(panel)
    figure = Figure(figsize=(11, 8))
    (linear, enlarged), (logs, bars) = figure.subplots(2, 2)
    ends = {label: mean(one.regret)[-1] for label, one in lines.items()}
    low = [label for label, end in ends.items() if end < ENLARGED * max(ends.values())]
    for label, one in lines.items():
        _line(linear, one, label, styles[label])
        _line(logs, one, _with_exponent(label, one), styles[label])
        if label in low:
            _line(enlarged, one, label, styles[label])
    _axes(linear, "cumulative fairness regret")
    log_axes(logs, "cumulative fairness regret (log-log)")
    if low:
        _axes(enlarged, "the lowest of them, enlarged")
    else:
        enlarged.set_axis_off()
    handles, labels = logs.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=5,
        title="in brackets: the exponent of growth" if labels != list(lines) else None,
    )
    _alignment_bars(bars, lines, styles)
    figure.suptitle(experiment.title)
    return figure


def _alignment_bars(axes: Axes, lines: dict[str, Series], styles: dict[str, Look]) -> None:
    """One bar per line that has the largest horizon of all."""
    horizon = max(int(one.horizons[-1]) for one in lines.values())
    for i, (label, one) in enumerate(lines.items()):
        if one.horizons[-1] == horizon:
            height, error = mean(one.alignment)[-1], spread(one.alignment)[-1]
            axes.bar(i, height, yerr=error, color=styles[label].colour, capsize=3)
            axes.text(i, height + error + 0.02, f"{height:.3f}", ha="center", fontsize=7)
    axes.set_xticks(range(len(lines)), list(lines), rotation=45, ha="right")
    axes.set(ylim=(0, 1.12), title=f"merit-selection alignment at T = {_power(horizon)}")


def panels(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """Regret against horizon, one panel per game."""
    rows = (len(experiment.panels) + 1) // 2
    figure = Figure(figsize=(10, 3.6 * rows))
    grid = figure.subplots(rows, 2).flat
    for axes, panel in zip(grid, experiment.panels, strict=False):
        styles = looks_of(panel)
        for label, one in by_label(results, experiment, panel).items():
            _line(axes, one, _with_exponent(label, one), styles[label])
            if np.nanmax(np.abs(one.uncapped / one.regret - 1)) > 1e-9:
                style: Any = {"color": styles[label].colour, "lw": 1, "alpha": 0.6}
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
    styles = looks_of(panel)
    for i, line in enumerate(panel.lines):
        merit, selection = shares_by_rank(results, experiment, panel, line)
        arms = _shown(len(merit))
        ranks = np.arange(len(arms))
        places = ranks + 0.8 * ((i + 0.5) / len(panel.lines) - 0.5)  # side by side
        if i == 0:
            above.bar(ranks, merit[arms], color=QUIET[0], label="merit", width=0.9)
            below.set_xticks(ranks, [str(arm + 1) for arm in arms])
        style = line_style(styles[line.label]) | {"linestyle": "none"}
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


def looks_of(panel: Panel) -> dict[str, Look]:
    """How the lines of a panel are drawn, by label."""
    found = looks([line.config["kind"] for line in panel.lines])
    return dict(zip((line.label for line in panel.lines), found, strict=True))


def line_style(look: Look) -> dict[str, Any]:
    """Options of a line drawn so."""
    return look.line(ms=4, lw=1.3)


def _line(axes: Axes, one: Series, label: str, look: Look) -> None:
    """A line of means with a band of one standard deviation."""
    middle, deviation = mean(one.regret), spread(one.regret)
    axes.plot(one.horizons, middle, label=label, **line_style(look))
    low = np.maximum(middle - deviation, 1e-3 * middle)  # a logarithm has no room for 0
    axes.fill_between(one.horizons, low, middle + deviation, color=look.colour, alpha=0.15, lw=0)


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

"""Figures that only the paper's experiments have."""

from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from evenhand import theory
from evenhand.lab import figures
from evenhand.lab.experiments import Experiment
from evenhand.lab.figures import COLOURS, DASHES, MARKERS, STYLE, log_axes
from evenhand.lab.paper.differences import LOWEST, PER_DECADE
from evenhand.lab.paper.tables import timed
from evenhand.lab.series import by_label, mean


def lower_bound(experiment: Experiment, results: pl.DataFrame) -> Figure:
    """The larger regret of the two instances, beside what no learner can beat."""
    figure = Figure(figsize=(7, 4.5))
    axes = figure.subplots()
    first, second = experiment.panels
    other = by_label(results, experiment, second)
    for i, (label, one) in enumerate(by_label(results, experiment, first).items()):
        if np.array_equal(one.horizons, other[label].horizons):
            worse = np.maximum(mean(one.regret), mean(other[label].regret))
            style: Any = {"marker": MARKERS[i], "color": COLOURS[i], "ls": DASHES[i]}
            axes.plot(one.horizons, worse, label=label, **style)
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
    axes.barh(places, [run.seconds for run in runs], color=COLOURS[1], height=0.5, label="here")
    paper = [run.paper for run in runs]
    axes.plot(paper, places, color=COLOURS[0], marker="D", ls="none", label="the paper")
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
        axes.stairs(record["counts"], edges, fill=True, color=COLOURS[1])
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="absolute difference of a set's probability (leftmost bin: below 1e-24)",
            ylabel="number of differences",
            title="enumerated (BFGS) against scalable design, same policies",
        )
    return figure


KINDS = {
    **figures.KINDS,
    "fractions": figures.panels,
    "lower-bound": lower_bound,
    "timing": timing,
}

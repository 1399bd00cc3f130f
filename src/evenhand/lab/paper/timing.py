"""Seconds of runs beside those the paper gives."""

from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment
from evenhand.lab.series import series


class Timed(NamedTuple):
    """Seconds of a line's runs at the largest horizon there is, and the paper's."""

    panel: str
    label: str
    horizon: int
    seconds: float  # median over replications
    n: int
    paper: float


def timed(experiment: Experiment, results: pl.DataFrame) -> list[Timed]:
    """Collect the time of every line of an experiment."""
    rows = []
    for panel in experiment.panels:
        for line in panel.lines:
            one = series(results, experiment, panel, line)
            if len(one.horizons):
                last = one.seconds[-1][~np.isnan(one.seconds[-1])]
                paper = float("nan") if line.paper_seconds is None else line.paper_seconds
                found = float(np.median(last))
                at = int(one.horizons[-1])
                rows.append(Timed(panel.title, line.label, at, found, len(last), paper))
    return rows

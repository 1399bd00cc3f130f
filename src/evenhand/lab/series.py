"""What the figures show: results of an experiment's lines, by horizon and replication."""

from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.metrics import Slope, slope
from evenhand.typing import Floats, Ints


class Series(NamedTuple):
    """Final regret and alignment of a line: (n,) horizons, (n, r) values, nan where missing."""

    horizons: Ints
    regret: Floats
    uncapped: Floats
    alignment: Floats
    seconds: Floats

    def growth(self) -> Slope | None:
        """Slope of log regret in log horizon, if there are enough horizons and replications."""
        rows = self.regret[:, ~np.isnan(self.regret).any(axis=0)].T  # with every horizon
        if len(self.horizons) < 3 or len(rows) == 0:
            return None
        return slope(self.horizons.astype(np.float64), rows if len(rows) > 1 else rows[0])


def series(results: pl.DataFrame, experiment: Experiment, panel: Panel, line: Line) -> Series:
    """Collect a line's results; horizons without any are left out."""
    cells = experiment.cells(panel, line)
    ids = pl.DataFrame({"id": [c.id for c in cells], "place": range(len(cells))})
    names = ["regret", "regret_uncapped", "alignment", "seconds"]
    found = ids.join(results.select(["id", *names]), on="id", how="left").sort("place")
    shape = (len(experiment.horizons), experiment.replications)
    arrays = [found[name].fill_null(float("nan")).to_numpy().reshape(shape) for name in names]
    there = ~np.isnan(arrays[0]).all(axis=1)
    horizons = np.array(experiment.horizons)[there]
    return Series(horizons, *(array[there] for array in arrays))


def mean(values: Floats) -> Floats:
    """Mean over the replications that are there."""
    return np.nanmean(values, axis=1)


def spread(values: Floats) -> Floats:
    """Standard deviation over replications, 0 for a single one."""
    there = np.sum(~np.isnan(values), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviations = np.nansum((values - mean(values)[:, None]) ** 2, axis=1) / (there - 1)
    return np.sqrt(np.where(there > 1, deviations, 0.0))


def shares_at_end(
    results: pl.DataFrame, experiment: Experiment, panel: Panel, line: Line
) -> tuple[Floats, Floats] | None:
    """Merit shares and mean selection shares (r, m) of a line at the largest horizon there is."""
    cells = {c.id: c.horizon for c in experiment.cells(panel, line)}
    found = results.filter(pl.col("id").is_in(sorted(cells)))
    if found.is_empty():
        return None
    last = found.filter(pl.col("horizon") == found["horizon"].max()).sort("replication")
    merit = np.array(last["merit"].to_list(), dtype=np.float64)
    selections = np.array(last["selections"].to_list(), dtype=np.float64)
    totals = merit.sum(axis=1, keepdims=True), selections.sum(axis=1, keepdims=True)
    return merit / totals[0], selections / totals[1]

"""What the figures show: results of an experiment's lines, by horizon and replication."""

from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.metrics import Slope, shares, slope
from evenhand.typing import Floats, Ints


class Series(NamedTuple):
    """Results of a line at the end of its runs: (n,) horizons, (n, r) values, nan where missing."""

    horizons: Ints
    regret: Floats
    uncapped: Floats  # regret against marginals that were not capped at 1
    alignment: Floats
    seconds: Floats

    def growth(self) -> Slope | None:
        """Slope of log regret in log horizon, if there are enough horizons and replications."""
        complete = self.regret[:, ~np.isnan(self.regret).any(axis=0)].T
        if len(self.horizons) < 3 or len(complete) == 0:
            return None
        return slope(self.horizons, complete)


def by_label(results: pl.DataFrame, experiment: Experiment, panel: Panel) -> dict[str, Series]:
    """Collect the results of a panel's lines."""
    return {line.label: series(results, experiment, panel, line) for line in panel.lines}


def series(results: pl.DataFrame, experiment: Experiment, panel: Panel, line: Line) -> Series:
    """Collect a line's results; horizons without any are left out."""
    cells = experiment.cells(panel, line)
    ids = pl.DataFrame({"id": [c.id for c in cells], "place": range(len(cells))})
    names = ["regret", "regret_uncapped", "alignment", "seconds"]
    found = ids.join(results.select("id", *names), on="id", how="left").sort("place")
    shape = (len(experiment.horizons), experiment.replications)
    arrays = [found[name].fill_null(float("nan")).to_numpy().reshape(shape) for name in names]
    there = ~np.isnan(arrays[0]).all(axis=1)
    horizons = np.array(experiment.horizons)[there]
    return Series(horizons, *(array[there] for array in arrays))


def mean(values: Floats) -> Floats:
    """Mean over the replications that are there."""
    return np.nanmean(values, axis=1)


def spread(values: Floats) -> Floats:
    """Standard deviation over the replications that are there, 0 for a single one."""
    n = np.sum(~np.isnan(values), axis=1)
    squares = np.nansum((values - mean(values)[:, None]) ** 2, axis=1)
    return np.sqrt(squares / np.maximum(n - 1, 1))


def shares_by_rank(
    results: pl.DataFrame, experiment: Experiment, panel: Panel, line: Line
) -> tuple[Floats, Floats]:
    """Mean shares of merit and of selection (m,) of the arm of each rank in merit.

    Means over the replications with the largest horizon there is.
    """
    ids = [cell.id for cell in experiment.cells(panel, line)]
    found = results.filter(pl.col("id").is_in(ids)).sort("replication")
    last = found.filter(pl.col("horizon") == pl.col("horizon").max())
    rows = last.select("merit", "selections").iter_rows()
    tables = [shares(np.maximum(merit, 0.0), selected) for merit, selected in rows]
    merit, selection = [x.merit for x in tables], [x.selection for x in tables]
    return np.mean(merit, axis=0), np.mean(selection, axis=0)

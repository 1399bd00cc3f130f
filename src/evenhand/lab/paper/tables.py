"""Tables that only the paper's experiments have: seconds of runs, and regret as a fraction."""

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.lab.series import series

TIMING = ("game", "learner", "T", "seconds here (median)", "runs", "seconds in the paper")
FRACTIONS = (
    *("game", "learner", "T", "n", "regret"),
    *("fraction of the first", "mean size", "mean reward"),
)


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
            last = one.seconds[-1][~np.isnan(one.seconds[-1])]
            seconds, horizon = float(np.median(last)), int(one.horizons[-1])
            rows.append(
                Timed(panel.title, line.label, horizon, seconds, len(last), line.paper_seconds)
            )
    return rows


def timing(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`TIMING`, one per line."""
    return [
        (r.panel, r.label, f"{r.horizon:.3g}", f"{r.seconds:.3g}", str(r.n), f"{r.paper:g}")
        for r in timed(experiment, results)
    ]


def fractions(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`FRACTIONS`, one per line of a panel and horizon there is.

    Regret is compared with that of the panel's first line.
    """
    rows: list[tuple[str, ...]] = []
    for panel in experiment.panels:
        first = _by_horizon(experiment, results, panel, panel.lines[0])
        for line in panel.lines:
            for horizon, one in _by_horizon(experiment, results, panel, line).items():
                rows.append(
                    (
                        panel.title,
                        line.label,
                        f"{horizon:.3g}",
                        str(one["n"]),
                        f"{one['regret']:.3g} ± {one['stderr']:.2g}",
                        _fraction(one, first[horizon]) if horizon in first else "",
                        f"{one['size']:.2f}",
                        "" if one["reward"] is None else f"{one['reward']:.4f}",
                    )
                )
    return rows


def _by_horizon(
    experiment: Experiment, results: pl.DataFrame, panel: Panel, line: Line
) -> dict[int, dict[str, Any]]:
    """Means over a line's replications, by horizon: regret, set size and reward per query."""
    ids = [cell.id for cell in experiment.cells(panel, line)]
    regret = pl.col("regret")
    means = (
        results.filter(pl.col("id").is_in(ids))
        .group_by("horizon")
        .agg(
            n=pl.len(),
            regret=regret.mean(),
            stderr=(regret.std() / pl.len().sqrt()).fill_null(0.0),
            size=(pl.col("selections").list.sum() / pl.col("queries")).mean(),
            reward=pl.col("reward").fill_nan(None).mean(),
        )
        .sort("horizon")
    )
    return {row["horizon"]: row for row in means.iter_rows(named=True)}


def _fraction(one: dict[str, Any], first: dict[str, Any]) -> str:
    """Quotient of the mean regrets with its standard error (delta method, lines independent)."""
    relative = math.hypot(*(x["stderr"] / x["regret"] for x in (one, first)))
    return f"1/{first['regret'] / one['regret']:.2f} ± {100 * relative:.0f} %"

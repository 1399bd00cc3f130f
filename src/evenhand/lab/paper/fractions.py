"""Regret as a fraction of the first line's, beside the sizes and rewards of what was asked."""

import math

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.lab.series import Series, mean, series
from evenhand.typing import Floats

HEAD = ("game", "learner", "T", "n", "regret", "fraction of the first", "mean size", "mean reward")


def fractions(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`HEAD`: every line of every panel at every horizon there is."""
    rows: list[tuple[str, ...]] = []
    for panel in experiment.panels:
        first = series(results, experiment, panel, panel.lines[0])
        for line in panel.lines:
            one = series(results, experiment, panel, line)
            asked = _asked(experiment, results, panel, line)
            for i, horizon in enumerate(one.horizons.tolist()):
                there = one.regret[i][~np.isnan(one.regret[i])]
                rows.append(
                    (
                        panel.title,
                        line.label,
                        f"{horizon:.3g}",
                        str(len(there)),
                        f"{there.mean():.3g} ± {stderr(there):.2g}",
                        _fraction(one, first, horizon),
                        *asked[horizon],
                    )
                )
    return rows


def stderr(values: Floats) -> float:
    """Standard error of a mean, 0 for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _fraction(one: Series, first: Series, horizon: int) -> str:
    """Quotient of the mean regrets with its standard error (delta method, lines independent)."""
    if horizon not in first.horizons:
        return ""
    above = one.regret[one.horizons == horizon]
    below = first.regret[first.horizons == horizon]
    quotient = float(mean(above)[0] / mean(below)[0])
    relative = [stderr(x[~np.isnan(x)]) / float(np.nanmean(x)) for x in (above[0], below[0])]
    return f"1/{1 / quotient:.2f} ± {100 * math.hypot(*relative):.0f} %"


def _asked(
    experiment: Experiment, results: pl.DataFrame, panel: Panel, line: Line
) -> dict[int, tuple[str, str]]:
    """Mean set size and mean reward per query, by horizon."""
    ids = [cell.id for cell in experiment.cells(panel, line)]
    found = results.filter(pl.col("id").is_in(ids)).with_columns(
        size=pl.col("selections").list.sum() / pl.col("queries"),
        reward=pl.col("reward").fill_nan(None),
    )
    means = found.group_by("horizon").agg(pl.col("size").mean(), pl.col("reward").mean())
    return {
        horizon: (f"{size:.2f}", "" if reward is None else f"{reward:.4f}")
        for horizon, size, reward in means.iter_rows()
    }

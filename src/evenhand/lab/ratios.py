"""Two runs of the same work compared: ratios of regret, paired by replication."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenhand.typing import Floats

# two cells that agree in these differ in the release that ran them, or not at all
SAME = ["game", "k", "learner", "horizon", "late", "replication", "seed"]


class LogRatio(NamedTuple):
    """Mean of log(new / old) over n pairs, with its standard error (nan for one pair).

    Examples
    --------
    >>> log_ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    LogRatio(value=0.6931471805599453, stderr=0.0, n=2)
    """

    value: float
    stderr: float
    n: int


def log_ratio(new: Floats, old: Floats) -> LogRatio:
    """Mean log-ratio of the pairs of which both are there (not nan)."""
    logs = np.log(new / old)
    logs = logs[~np.isnan(logs)]
    n = len(logs)
    stderr = logs.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return LogRatio(float(logs.mean()) if n else np.nan, float(stderr), n)


def against(new: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
    """Mean log-ratio of regret by game, learner and horizon, for the cells that both have."""
    one, other = (frame.with_columns(pl.col("late").fill_null(0)) for frame in (new, old))
    both = one.join(other.select(*SAME, pl.col("regret").alias("before")), on=SAME)
    keys = ["game", "k", "learner", "late", "horizon"]
    rows = []
    for key, cells in both.sort(keys).group_by(keys, maintain_order=True):
        ratio = log_ratio(cells["regret"].to_numpy(), cells["before"].to_numpy())
        rows.append(dict(zip(keys, key, strict=True)) | ratio._asdict())
    types: dict[str, Any] = {name: both.schema[name] for name in keys}
    types |= {"value": pl.Float64, "stderr": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=types)

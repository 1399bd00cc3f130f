"""Tables of what deployments ask for: honest errors, fair shares of rare rewards, full pages."""

import json
import math
from typing import Any

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment, Line, Panel
from evenhand.lab.ratios import log_ratio
from evenhand.lab.readings import Honesty, Reading, condense
from evenhand.lab.series import series

HONESTY = (
    *("world", "learner", "told", "n", "within 2 s.e.", "largest z", "rms z (thirds by merit)"),
    *("half-L1, share of slots", "of the oracle's", "least given/due", "of the oracle's"),
    *("intervals hold", "median width", "of the oracle's"),
)
PAGES = (
    *("game", "learner", "T", "n", "regret", "of IW-KSVFair's", "slope from T/10"),
    *("mean reward", "of the fair policy's"),
)
ORACLE = "oracle"  # the kind under which benchmarks/oracle.py keeps its results


def honesty(
    experiment: Experiment, results: pl.DataFrame, panel: Panel, line: Line
) -> dict[int, Honesty]:
    """What a line's learner claimed, condensed over replications, by rewards told."""
    ids = [cell.id for cell in experiment.cells(panel, line)]
    return _by_horizon(panel.k, results.filter(pl.col("id").is_in(ids)))


def oracle(
    experiment: Experiment, results: pl.DataFrame, panel: Panel, line: Line
) -> dict[int, Honesty]:
    """The same of the oracle in the same worlds with the same sizes, where it was run."""
    learner = line.config | {"kind": ORACLE}
    return _by_horizon(
        panel.k,
        results.filter(
            pl.col("learner") == json.dumps(learner, sort_keys=True),
            pl.col("game") == json.dumps(panel.game, sort_keys=True),
            pl.col("k") == panel.k,
            pl.col("seed") == experiment.seed,
            pl.col("replication") <= experiment.replications,
        ),
    )


def _by_horizon(k: int, rows: pl.DataFrame) -> dict[int, Honesty]:
    names = Reading._fields[1:]
    told = sorted(rows["horizon"].unique().to_list())
    found = {}
    for horizon in told:
        some = rows.filter(pl.col("horizon") == horizon, pl.col("estimate").is_not_null())
        readings = [
            Reading(k, *(np.array(vector) for vector in row))
            for row in some.select(names).iter_rows()
        ]
        if readings:
            found[horizon] = condense(readings)
    return found


def honesty_rows(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`HONESTY`, one per line of a panel and number of rewards told."""
    rows: list[tuple[str, ...]] = []
    for panel in experiment.panels:
        for line in panel.lines:
            best = oracle(experiment, results, panel, line)
            for told, one in honesty(experiment, results, panel, line).items():
                rows.append((panel.title, line.label, f"{told:.3g}", *_cells(one, best.get(told))))
            if not panel.late:
                rows += [
                    (panel.title, f"oracle for {line.label}", f"{told:.3g}", *_cells(one, None))
                    for told, one in best.items()
                ]
    return rows


def _cells(one: Honesty, best: Honesty | None) -> tuple[str, ...]:
    low, middle, high = one.thirds
    if best is not None and best.worlds != one.worlds:  # other worlds cannot be compared
        best = None
    return (
        str(one.worlds),
        f"{100 * one.within:.1f} %",
        f"{one.largest:+.1f}",
        f"{one.rms:.2f} ({low:.2f}, {middle:.2f}, {high:.2f})",
        f"{100 * one.misplaced:.2f} ± {100 * one.misplaced_stderr:.2f} %",
        f"{one.misplaced / best.misplaced:.2f}" if best else "",
        f"{one.least:.2f} ± {one.least_stderr:.2f}",
        f"{one.least / best.least:.2f}" if best else "",
        f"{100 * one.covered:.1f} %",
        f"{one.width:.3g}",
        f"{one.width / best.width:.1f}" if best else "",
    )


def page_rows(experiment: Experiment, results: pl.DataFrame) -> list[tuple[str, ...]]:
    """Rows under :data:`PAGES`, one per line of a panel and horizon there is.

    Regret is compared with that of the panel's first line, replication by replication.
    """
    rows: list[tuple[str, ...]] = []
    for panel in experiment.panels:
        first = series(results, experiment, panel, panel.lines[0])
        base = dict(zip(first.horizons.tolist(), first.regret, strict=True))
        for line in panel.lines:
            one, before = series(results, experiment, panel, line), math.nan
            earned = _earned(experiment, results, panel, line)
            for horizon, regret in zip(one.horizons.tolist(), one.regret, strict=True):
                there, middle = ~np.isnan(regret), float(np.nanmean(regret))
                n = int(there.sum())
                error = float(np.nanstd(regret, ddof=1)) / math.sqrt(n) if n > 1 else 0.0
                ratio = log_ratio(regret, base[horizon]) if horizon in base else None
                growth = math.log10(middle / before)
                rows.append(
                    (
                        *(panel.title, line.label, f"{horizon:.3g}", str(n)),
                        f"{middle:.3g} ± {error:.2g}",
                        ""
                        if ratio is None
                        else f"1/{math.exp(-ratio.value):.2f} ± {100 * ratio.stderr:.0f} %",
                        "" if math.isnan(growth) else f"{growth:.2f}",
                        *earned[horizon],
                    )
                )
                before = middle
    return rows


def _earned(
    experiment: Experiment, results: pl.DataFrame, panel: Panel, line: Line
) -> dict[int, tuple[str, str]]:
    """Mean reward, and its share of what the fair policy earns with the same sizes."""
    ids = [cell.id for cell in experiment.cells(panel, line)]
    found = results.filter(pl.col("id").is_in(ids)).group_by("horizon")
    means: Any = found.agg(pl.col("reward").mean(), pl.col("fair_reward").mean())
    return {
        row["horizon"]: (
            f"{row['reward']:.4f}",
            "" if row["fair_reward"] is None else f"{row['reward'] / row['fair_reward']:.4f}",
        )
        for row in means.iter_rows(named=True)
    }

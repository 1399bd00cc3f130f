"""Cells of the reproduction once more, on a Dask cluster: the same numbers, and what all cost.

``python -m benchmarks.again --workers 4`` draws cells from every line of every experiment, runs
them with one worker and with several, and compares both with each other and with the results kept
in ``docs/reproduction``. EvenHand's kept results are those of version 0.1.0, which another release
does not repeat, and some need a card: both are left out.
"""

import argparse
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from benchmarks.harness import ROOT, in_words, plain_table
from evenhand.datasets import facebook_graph
from evenhand.lab.cells import Cell
from evenhand.lab.games import needs_gpu
from evenhand.lab.runner import cluster, run_missing
from evenhand.lab.store import Store

KEPT = ROOT / "docs" / "reproduction"
TOLERANCE = 1e-8
COMPARED = ["regret", "regret_uncapped", "alignment", "queries"]
SINGLE = [*COMPARED, "reward"]  # which in kept results counts queries of no arm as well
PER_ARM = ["selections", "merit"]
LINE = ["game", "k", "learner"]  # what a line of a figure is
LONG = 10**5  # horizons from which on a cell's seconds say how fast a machine is


def kept() -> pl.DataFrame:
    """All kept results that can be made again here."""
    can_run = pl.struct("game", "learner").map_elements(_can_run, return_dtype=pl.Boolean)
    return Store(KEPT).read().filter(can_run)


def _can_run(row: dict[str, str]) -> bool:
    game, learner = json.loads(row["game"])["kind"], json.loads(row["learner"])["kind"]
    return learner != "even-hand" and not needs_gpu(game) and (game != "facebook" or _has_graph())


def _has_graph() -> bool:
    try:
        facebook_graph()
    except (FileNotFoundError, OSError):
        return False
    return True


def sample(results: pl.DataFrame, per_line: int, max_horizon: int, seed: int) -> pl.DataFrame:
    """Cells drawn at random, as many from every line."""
    rng = np.random.default_rng(seed)
    results = results.filter(pl.col("horizon") <= max_horizon).sort("key")
    shuffled = results.with_columns(place=pl.Series(rng.permutation(len(results))))
    return shuffled.sort("place").group_by(LINE, maintain_order=True).head(per_line).drop("place")


def cells_of(results: pl.DataFrame) -> list[Cell]:
    """Cells that such results are of."""
    names = ("game", "k", "learner", "horizon", "replication", "seed")
    return [Cell(**{n: json.loads(key)[n] for n in names}) for key in results["key"]]


def run_on(workers: int, cells: list[Cell], folder: Path) -> tuple[pl.DataFrame, float]:
    """Results of cells by so many processes, and the wall clock."""
    from dask.distributed import LocalCluster

    store, start = Store(folder), time.perf_counter()
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as found:
        run_missing(cells, store, cluster(found.scheduler_address))
    return store.read(cells), time.perf_counter() - start


def distances(found: pl.DataFrame, other: pl.DataFrame) -> dict[str, float]:
    """Largest distance of each cell's numbers from another run's, by id; relative where above 1."""
    found, other = found.sort("id"), other.sort("id")
    if found["id"].to_list() != other["id"].to_list():
        raise ValueError("results are of different cells")
    result = dict.fromkeys(found["id"], 0.0)
    for name in [*COMPARED, *PER_ARM]:
        for cell, a, b in zip(found["id"], found[name], other[name], strict=True):
            x, y = np.asarray(a, float), np.asarray(b, float)
            apart = np.abs(x - y) / np.maximum(1.0, np.abs(y))
            result[cell] = max(result[cell], float(np.nan_to_num(apart, nan=0.0).max()))
    return result


def same_bits(found: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two runs of the same cells agree in every bit of every number."""
    names = ["id", *SINGLE, *PER_ARM]
    return found.sort("id").select(names).equals(other.sort("id").select(names))


def core_hours(
    results: pl.DataFrame, drawn: pl.DataFrame, found: pl.DataFrame
) -> tuple[float, float]:
    """Hours the kept results took, and those they would take here by the sample."""
    took = found.select("id", here=pl.col("seconds"))
    both = drawn.filter(pl.col("horizon") >= LONG).join(took, on="id")
    kind = pl.col("learner").str.json_path_match("$.kind").alias("kind")
    place = pl.col("game").str.json_path_match("$.kind").alias("place")
    rates = both.group_by(kind, place).agg(rate=pl.col("here").sum() / pl.col("seconds").sum())
    whole = results.with_columns(kind, place).join(rates, on=["kind", "place"], how="left")
    mean = float(both["here"].sum()) / float(both["seconds"].sum())
    here = (whole["seconds"] * whole["rate"].fill_null(mean)).sum()
    return float(whole["seconds"].sum()) / 3600, float(here) / 3600


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.again", description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--per-line", type=int, default=2, help="cells of every line")
    parser.add_argument("--max-horizon", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=1)
    given: Any = parser.parse_args()
    results = kept()
    drawn = sample(results, given.per_line, int(given.max_horizon), given.seed)
    cells = cells_of(drawn)
    print(f"{len(cells)} of {len(results)} cells, {given.workers} workers and one")
    with TemporaryDirectory() as folder:
        many, fast = run_on(given.workers, cells, Path(folder) / "many")
        one, slow = run_on(1, cells, Path(folder) / "one")
    before, here = core_hours(results, drawn, one)
    apart = distances(one, drawn)
    far = one.filter(pl.col("id").is_in([cell for cell, x in apart.items() if x > TOLERANCE]))
    for learner, game, horizon in far.select("learner", "game", "horizon").iter_rows():
        print(f"another path: {learner} on {game}, T = {horizon}")
    near = [x for x in apart.values() if x <= TOLERANCE]
    rows = [
        [f"cells within {TOLERANCE:g} of the results kept", f"{len(near)} of {len(apart)}"],
        ["the largest distance of these", f"{max(near, default=0.0):.2g}"],
        [f"every bit the same with 1 and {given.workers} workers", str(same_bits(one, many))],
        [f"wall clock with {given.workers} workers", in_words(fast)],
        ["wall clock with one", in_words(slow)],
        ["core-hours of all these cells, as kept", f"{before:.2f}"],
        ["core-hours of all these cells here, by the sample", f"{here:.2f}"],
    ]
    print(plain_table(["what", "measured"], rows))


if __name__ == "__main__":
    main()

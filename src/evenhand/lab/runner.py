"""Run the cells that are missing, keeping every result as soon as it is there."""

import time
from collections.abc import Callable, Sequence

from evenhand.lab.cells import Cell
from evenhand.lab.executors import Executor
from evenhand.lab.store import Store

# seconds a query and seconds a refresh of the policy, measured roughly; only for estimates
PER_QUERY = {"iw-ksvfair": 1e-7, "no-mix": 1e-7, "no-iw": 1e-7, "iw-ksvfair-exact": 1.2e-7}
PER_QUERY |= {"gap-e": 1.6e-7, "fair-cmab": 1e-8}
PER_QUERY |= {"even-hand": 3e-7}
LEARNS = {"even-hand", "iw-ksvfair", "no-mix", "no-iw", "iw-ksvfair-exact", "gap-e"}
CASCADE = {False: 5e-6, True: 5e-5}  # a query of the Facebook graph as listed, both ways


def estimate(cell: Cell) -> float:
    """Seconds a cell takes, roughly."""
    kind = cell.learner["kind"]
    seconds = 0.2 + PER_QUERY.get(kind, 1e-9) * cell.horizon * cell.k / 5
    if kind == "iw-ksvfair-exact":
        seconds += 10.0
    if cell.game["kind"] in ("facebook", "facebook-stand-in") and kind in LEARNS:
        seconds += CASCADE[bool(cell.game.get("both_ways"))] * cell.horizon
    return seconds


def run_missing(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    progress: Callable[[Cell, int, float], object] | None = None,
) -> int:
    """Run the cells that have no result yet, the longest first; returns how many were run.

    ``progress`` is called after each with the cell, how many are done, and the seconds so far.
    """
    done = store.finished(cells)
    missing = sorted((c for c in cells if c.id not in done), key=estimate, reverse=True)
    start = time.perf_counter()
    for n, (cell, record) in enumerate(executor(missing), start=1):
        store.write(cell, record)
        if progress is not None:
            progress(cell, n, time.perf_counter() - start)
    return len(missing)

"""Run the cells that are missing, keeping every result as soon as it is there."""

from collections.abc import Callable, Sequence

from evenhand.lab.cells import Cell
from evenhand.lab.executors import Executor
from evenhand.lab.games import seconds_per_query
from evenhand.lab.store import Store

START = 0.5  # seconds a cell takes apart from its queries


def estimate(cell: Cell) -> float:
    """Seconds a cell takes at most, roughly: a learner that stops learning early takes less."""
    return START + seconds_per_query(cell.game) * cell.horizon


def run_missing(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    progress: Callable[[Cell, int], object] | None = None,
) -> int:
    """Run the cells that have no result yet, the longest first; returns how many were run.

    ``progress`` is called after each with the cell and how many are done.
    """
    done = store.finished(cells)
    missing = sorted((c for c in cells if c.id not in done), key=estimate, reverse=True)
    for n, (cell, record) in enumerate(executor(missing), start=1):
        store.write(cell, record)
        if progress is not None:
            progress(cell, n)
    return len(missing)

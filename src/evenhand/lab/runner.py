"""Run the cells that are missing, in processes of this machine or on a Dask cluster."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from evenhand.lab.cells import Cell, run_cell
from evenhand.lab.games import seconds_per_query
from evenhand.lab.store import Store

START = 0.5  # seconds a cell takes apart from its queries
ALERT = 0.5  # seconds without looking up: polars has waits go on after a signal, so that one
# without an end would hear Ctrl-C only when the next cell ends

Executor = Callable[[Sequence[Cell]], Iterator[tuple[Cell, dict[str, Any]]]]


def estimate(cell: Cell) -> float:
    """Seconds a cell takes at most, roughly: a learner that stops learning early takes less."""
    return START + seconds_per_query(cell.game) * cell.horizon


def run_missing(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    progress: Callable[[Cell, int], object] = lambda cell, n: None,
) -> int:
    """Run the cells that have no result yet, the longest first; returns how many were run.

    Every result is kept as soon as it is there. ``progress`` is then called with the cell and how
    many are done.
    """
    done = store.finished(cells)
    missing = sorted((c for c in cells if c.id not in done), key=estimate, reverse=True)
    for n, (cell, record) in enumerate(executor(missing), start=1):
        store.write(cell, record)
        progress(cell, n)
    return len(missing)


def local(workers: int) -> Executor:
    """Run cells in a pool of processes on this machine."""

    def run(cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        if workers == 1:
            for cell in cells:
                yield cell, run_cell(cell)
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), _leave_to_parent) as pool:
            futures = {pool.submit(run_cell, cell): cell for cell in cells}
            left = set(futures)
            try:
                while left:
                    ended, left = wait(left, ALERT, FIRST_COMPLETED)
                    for future in ended:
                        yield futures.pop(future), future.result()
            except BaseException:  # Ctrl-C or a failed cell: a half-done one is of no use
                running = list(pool._processes.values())
                pool.shutdown(wait=False, cancel_futures=True)
                for process in running:
                    process.terminate()
                raise

    return run


def _leave_to_parent() -> None:
    """Ignore Ctrl-C, which reaches all processes of a terminal: the parent ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _client(make: Any, address: str) -> Any:
    """A client of the scheduler at an address."""
    try:
        return make(address)
    except (ValueError, OSError) as error:  # no address, or nobody there
        raise ConnectionError(
            "--scheduler must be the address of a Dask scheduler that can be reached, such as "
            f"tcp://host:8786, got {address!r}: {error}"
        ) from None


def cluster(address: str) -> Executor:
    """Run cells on the Dask cluster whose scheduler is at an address.

    A cell whose worker dies is run again by another. Those that Dask gives up, as they were at
    several workers that died, are run once more in the end, one at a time, since it may have been
    a neighbour's fault; what then fails is left out and named.
    """

    def run(cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        try:
            from dask.distributed import Client, KilledWorker
            from dask.distributed import as_completed as dask_completed
        except ImportError:
            raise ImportError(
                "running on a Dask cluster needs dask; install evenhand[cluster]"
            ) from None
        with _client(Client, address) as client:
            suspects, lost = [], []
            futures = {client.submit(run_cell, cell, pure=False): cell for cell in cells}
            for future in dask_completed(list(futures)):  # type: ignore[no-untyped-call]
                cell = futures.pop(future)  # lets the cluster forget what it brought
                try:
                    record = future.result()
                except KilledWorker:
                    suspects.append(cell)
                else:
                    yield cell, record
            for cell in suspects:
                try:
                    record = client.submit(run_cell, cell, pure=False).result()
                except KilledWorker:
                    lost.append(cell)
                else:
                    yield cell, record
        if lost:
            raise RuntimeError(
                f"{len(lost)} cells killed their workers, the first is {lost[0]}; all others are "
                "done and kept: give workers more memory and run the same again"
            )

    return run

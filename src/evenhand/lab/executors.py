"""Where cells are run: here in a pool of processes, or on a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from evenhand.lab.cells import Cell, run_cell

Executor = Callable[[Sequence[Cell]], Iterator[tuple[Cell, dict[str, Any]]]]


def local(workers: int) -> Executor:
    """Run cells in a pool of processes on this machine."""

    def run(cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        if workers == 1:
            for cell in cells:
                yield cell, run_cell(cell)
            return
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(run_cell, cell): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield futures.pop(future), future.result()
            except BaseException:  # Ctrl-C or a failed cell: start nothing more
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    return run


def cluster(address: str) -> Executor:
    """Run cells on the Dask cluster whose scheduler is at an address."""

    def run(cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        try:
            from dask.distributed import Client
            from dask.distributed import as_completed as dask_completed
        except ImportError:
            raise ImportError(
                "running on a Dask cluster needs dask; install evenhand[cluster]"
            ) from None
        client: Any = Client(address)  # type: ignore[no-untyped-call]
        with client:
            futures = {client.submit(run_cell, cell, pure=False): cell for cell in cells}
            finished: Any = dask_completed(list(futures))  # type: ignore[no-untyped-call]
            for future in finished:
                yield futures[future], future.result()

    return run

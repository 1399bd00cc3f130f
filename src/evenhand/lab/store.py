"""Results on disk: one small Parquet file per cell, or one packed file per experiment."""

import json
import logging
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import polars as pl

from evenhand.files import replacing
from evenhand.lab.cells import Cell

LOG = logging.getLogger(__name__)

SCHEMA: dict[str, Any] = {  # files may have further columns: older ones do
    "id": pl.String,
    "key": pl.String,
    "game": pl.String,
    "k": pl.Int64,
    "m": pl.Int64,
    "learner": pl.String,
    "horizon": pl.Int64,
    "replication": pl.Int64,
    "seed": pl.Int64,
    "regret": pl.Float64,
    "regret_uncapped": pl.Float64,
    "largest_due": pl.Float64,
    "alignment": pl.Float64,
    "queries": pl.Int64,
    "reward": pl.Float64,
    "selections": pl.List(pl.Int64),
    "merit": pl.List(pl.Float64),
    "late": pl.Int64,
    "fair_reward": pl.Float64,
    "estimate": pl.List(pl.Float64),
    "stderr": pl.List(pl.Float64),
    "marginals": pl.List(pl.Float64),
    "low": pl.List(pl.Float64),
    "high": pl.List(pl.Float64),
    "marks": pl.List(pl.Int64),  # the rest is of worlds that change
    "regret_curve": pl.List(pl.Float32),
    "due": pl.List(pl.Float32),
    "given": pl.List(pl.Float32),
    "changes": pl.String,
    "noticed": pl.String,
    "seconds": pl.Float64,
    "machine": pl.String,
    "versions": pl.String,
}
LATER = (  # columns that are null in older files
    *("reward", "fair_reward", "late"),
    *("estimate", "stderr", "marginals", "low", "high"),
    *("marks", "regret_curve", "due", "given", "changes", "noticed"),
)


class Store:
    """A directory of results.

    Cells being worked on are written one file each under ``cells/``; packed files lie beside it.
    A file that cannot be read, or is not what its name says, is moved to ``aside/`` with a warning.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        packed = len(list(self.folder.glob("*.parquet")))
        loose = len(list((self.folder / "cells").glob("*.parquet")))
        return f"Store({str(self.folder)!r}: {packed} packed files, {loose} single cells)"

    def prepare(self) -> None:
        """Make the directory, and refuse one that cannot be written before any work is done."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise type(error)(
                f"--results must be a folder that can be written, got {self.folder}: "
                f"{error.strerror}"
            ) from None

    def write(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write a cell's result so that nobody ever sees half of it."""
        path = self.folder / "cells" / f"{cell.id}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {
            "id": cell.id,
            "key": cell.key,
            "game": json.dumps(cell.game, sort_keys=True),
            "k": cell.k,
            "learner": json.dumps(cell.learner, sort_keys=True),
            "horizon": cell.horizon,
            "replication": cell.replication,
            "seed": cell.seed,
            "late": cell.late,
            **record,
            "machine": describe_machine(),
            "versions": describe_versions(),
        }
        with replacing(path) as file:
            pl.DataFrame([row], schema=SCHEMA).write_parquet(file)

    def finished(self, cells: Iterable[Cell]) -> set[str]:
        """Ids of the cells that have a good result."""
        return set(self.read(cells)["id"].to_list())

    def read(self, cells: Iterable[Cell] | None = None) -> pl.DataFrame:
        """Return the results of some cells, or all there are, in the order of their keys."""
        wanted = None if cells is None else {cell.id for cell in cells}
        frames = [pl.DataFrame(schema=SCHEMA)]
        frames += [self._load(path) for path in sorted(self.folder.glob("*.parquet"))]
        for path in sorted((self.folder / "cells").glob("*.parquet")):
            if wanted is None or path.stem in wanted:
                frames.append(self._load(path, [path.stem]))
        found = pl.concat(frames)
        if wanted is not None:
            found = found.filter(pl.col("id").is_in(sorted(wanted)))
        return found.unique("id", keep="last").sort("key")

    def pack(self, name: str, cells: Iterable[Cell]) -> Path:
        """Write the results of an experiment's cells as one file."""
        path = self.folder / f"{name}.parquet"
        frame = self.read(cells)
        with replacing(path) as file:
            frame.write_parquet(file, compression="zstd", compression_level=15)
        return path

    def _load(self, path: Path, ids: list[str] | None = None) -> pl.DataFrame:
        """Read a file, which must hold these ids if given; one that cannot be used is set aside."""
        try:
            frame = pl.read_parquet(path)
            missing = [name for name in LATER if name not in frame.columns]
            frame = frame.with_columns(pl.lit(None).alias(name) for name in missing)
            frame = frame.select(list(SCHEMA)).cast(SCHEMA)  # type: ignore[arg-type]
            if ids is not None and frame["id"].to_list() != ids:
                raise ValueError("it holds another cell than its name says")
            return frame
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            self._set_aside(path, str(error).splitlines()[0])
            return pl.DataFrame(schema=SCHEMA)

    def _set_aside(self, path: Path, reason: str) -> None:
        place = self.folder / "aside" / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
        LOG.warning("%s cannot be used (%s); moved to %s", path, reason, place)


def describe_machine() -> str:
    """Processor and number of cores."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    return f"{model}, {os.cpu_count()} cores"


def describe_versions() -> str:
    """Versions of what a result depends on."""
    names = ("evenhand", "numpy", "scipy", "numba")
    parts = [f"{name} {version(name)}" for name in names]
    return f"Python {platform.python_version()}, " + ", ".join(parts)

"""The results kept in the documentation still belong to the cells the code would run."""

import json
from pathlib import Path

import polars as pl
import pytest

from evenhand.lab.cells import Cell
from evenhand.lab.paper.experiments import load_preset
from evenhand.lab.store import Store
from evenhand.learners import EvenHand

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"
PACKED = sorted(KEPT.glob("*.parquet"))


@pytest.fixture
def version_0_1_0(monkeypatch):
    """EvenHand's kept results are those of version 0.1.0, and compared with its cells."""
    monkeypatch.setattr(EvenHand, "trajectory", 2)


def test_there_are_as_many_as_were_kept():
    assert len(PACKED) == 11
    assert sum(len(pl.read_parquet(path, columns=["id"])) for path in PACKED) == 6285


@pytest.mark.usefixtures("version_0_1_0")
@pytest.mark.parametrize("path", PACKED, ids=[path.stem for path in PACKED])
def test_every_kept_id_is_computed_from_what_the_cell_is(path):
    """Another id would mean another run: bump a trajectory only when the numbers change."""
    names = ("game", "k", "learner", "horizon", "replication", "seed")
    frame = pl.read_parquet(path, columns=["id", "key"])
    for found, key in frame.iter_rows():
        content = json.loads(key)
        cell = Cell(**{name: content[name] for name in names})
        assert (cell.key, cell.id) == (key, found)


@pytest.mark.usefixtures("version_0_1_0")
@pytest.mark.parametrize("path", PACKED, ids=[path.stem for path in PACKED])
def test_every_kept_cell_is_one_of_its_experiment(path):
    cells = {cell.id for cell in load_preset(path.stem).all_cells()}
    assert set(pl.read_parquet(path, columns=["id"])["id"]) <= cells


def test_kept_results_are_read(monkeypatch):
    monkeypatch.setattr(Store, "_set_aside", lambda *what: pytest.fail(f"{what} is refused"))
    assert len(Store(KEPT).read()) == 5355

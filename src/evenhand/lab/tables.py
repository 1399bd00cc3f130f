"""Results as tables, on the screen and for the report."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any

import polars as pl
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from evenhand.display import in_minutes
from evenhand.lab.cells import in_words

MEASURES = ("regret", "regret_uncapped", "alignment", "seconds")


def summary(results: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over replications, by game, learner and horizon."""
    both = ((pl.col(name).mean(), pl.col(name).std().alias(f"{name}_sd")) for name in MEASURES)
    keys = ["game", "k", "learner", "late", "horizon"]
    results = results.with_columns(pl.col("late").fill_null(0))
    return results.group_by(keys).agg(pl.len().alias("replications"), *chain(*both)).sort(keys)


def narrowed(table: pl.DataFrame, game: str, learner: str, max_horizon: float) -> pl.DataFrame:
    """Rows whose game and learner, as shown, contain these texts, up to a horizon."""
    for column, part in (("game", game), ("learner", learner)):
        shown = pl.col(column).map_elements(words, return_dtype=pl.String)
        table = table.filter(shown.str.contains(part, literal=True))
    return table.filter(pl.col("horizon") <= max_horizon)


def show(table: pl.DataFrame) -> None:
    """Print a summary to the terminal."""
    shown = _table("game", "K", "learner", "T", "n", "regret", "sd", "alignment", "seconds")
    for row in table.iter_rows(named=True):
        shown.add_row(
            _world(row),
            str(row["k"]),
            words(row["learner"]),
            f"{row['horizon']:.3g}",
            str(row["replications"]),
            f"{row['regret']:.4g}",
            "" if row["regret_sd"] is None else f"{row['regret_sd']:.2g}",
            f"{row['alignment']:.3f}",
            f"{row['seconds']:.3g}",
        )
    Console().print(shown)


def show_ratios(table: pl.DataFrame) -> None:
    """Print how regret compares with that of other results, and the mean over all cells."""
    shown = _table("game", "K", "learner", "T", "n", "log(regret / before)", "s.e.")
    for row in table.iter_rows(named=True):
        shown.add_row(
            _world(row),
            str(row["k"]),
            words(row["learner"]),
            f"{row['horizon']:.3g}",
            str(row["n"]),
            f"{row['value']:+.3f}",
            f"{row['stderr']:.3f}",
        )
    if len(table):
        shown.add_row("mean of all", *[""] * 4, f"{table['value'].to_numpy().mean():+.3f}")
    Console().print(shown)


def _table(*names: str) -> Table:
    """A table whose words are folded where the screen is narrow, and whose numbers never are."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        told = name in ("game", "learner")
        side: JustifyMethod = "left" if told else "right"
        table.add_column(name, justify=side, no_wrap=not told, overflow="fold")
    return table


def _world(row: dict[str, Any]) -> str:
    """A game in few words, and how late its rewards were told if they were."""
    return words(row["game"]) + (f", told {row['late']} late" if row["late"] else "")


def words(config: str) -> str:
    """A description kept as JSON, in few words."""
    return in_words(json.loads(config))


@contextmanager
def progress_bar(name: str, total: float) -> Iterator[Callable[..., None]]:
    """Show a bar with the time left; yields rich's ``Progress.update`` for it.

    Where the output is no terminal, a line per tenth stands for the bar.
    """
    if not Console().is_terminal:
        yield Lines(name, total).update
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    ) as bar:
        yield partial(bar.update, bar.add_task(name, total=total))


class Lines:
    """Progress for a log: a line for every tenth of the work."""

    def __init__(self, name: str, total: float) -> None:
        self.name, self.total = name, total
        self.completed, self._shown, self._start = 0.0, 0, monotonic()

    def update(
        self, advance: float = 0.0, completed: float | None = None, description: str | None = None
    ) -> None:
        """Take note of progress as ``Progress.update`` of rich does; print a line if it is due."""
        self.name = description or self.name
        self.completed = self.completed + advance if completed is None else completed
        share = min(1.0, self.completed / self.total + 1e-9) if self.total else 1.0
        if int(10 * share) > self._shown:
            self._shown, spent = int(10 * share), monotonic() - self._start
            left = f", about {in_minutes(spent / share - spent)} left" if share < 1.0 else ""
            print(f"{share:4.0%} after {in_minutes(spent)}{left}: {self.name}", flush=True)

"""Timing with its spread, and rows that say whether a goal is met.

Times are processor time, of all threads together: what else runs on the machine then matters
little, and a peer that keeps two cores busy is charged for both.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FIGURES = Path(__file__).with_name("figures")
TIMES_FASTER = "times"


class Times(NamedTuple):
    """Seconds of repeated runs of the same work."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """Middle of the repetitions."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        if len(self.seconds) == 1:
            return in_words(self.median)
        low, high = min(self.seconds), max(self.seconds)
        return f"{in_words(self.median)} ({in_words(low)} to {in_words(high)})"


def alternate(
    *works: tuple[Callable[[], Any], int], times: int = 7, warm_up: bool = True
) -> list[Times]:
    """Time pieces of work, each given with its units a call, in turns.

    A load that comes and goes on the machine then hits all of them alike.
    """
    for work, _ in works if warm_up else ():
        work()
    rounds = [[clock(work) / per for work, per in works] for _ in range(times)]
    return [Times(list(column)) for column in zip(*rounds, strict=True)]


def clock(work: Callable[[], Any]) -> float:
    """Processor time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def wall(work: Callable[[], Any]) -> float:
    """Wall-clock time of some work, for what does not happen on a processor."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def repeat(
    work: Callable[[], Any],
    times: int = 7,
    per: int = 1,
    timer: Callable[[Callable[[], Any]], float] = clock,
) -> Times:
    """Time some work after one warm-up call; ``per`` units of it are done in a call."""
    work()
    return Times([timer(work) / per for _ in range(times)])


@dataclass(frozen=True)
class Row:
    """One line of the table of goals.

    Attributes
    ----------
    work, peer
        What was done, and against whom or what.
    ours, theirs
        What each took, in words.
    value, low, high, unit
        What the goal is about, with its spread; None where it could not be measured, which
        ``theirs`` then explains.
    goal, at_least
        The goal, and whether it bounds the value from below or from above; None: no goal set.
    """

    work: str
    peer: str
    ours: str
    theirs: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = TIMES_FASTER
    goal: float | None = None
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none or nothing was measured."""
        if self.value is None or self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    @property
    def key(self) -> str:
        """What the row is called in another run."""
        return f"{self.work} / {self.peer}"

    def cells(self) -> list[str]:
        """Return the row as it stands in the table."""
        if self.value is None:
            value = ""
        elif self.low == self.high:
            value = f"{number(self.value)} {self.unit}"
        else:
            assert self.low is not None
            assert self.high is not None
            value = f"{number(self.value)} {self.unit} ({number(self.low)} to {number(self.high)})"
        goal = ""
        if self.goal is not None:
            goal = f"{'>=' if self.at_least else '<='} {number(self.goal)}"
        met = {True: "yes", False: "**no**", None: ""}[self.met]
        return [self.work, self.peer, self.ours, self.theirs, value, goal, met]


@dataclass(frozen=True)
class Section:
    """What one benchmark found: rows of the table of goals, and more to read."""

    rows: list[Row]
    text: str = ""
    packages: tuple[str, ...] = field(default=())  # peers whose versions are to be named


def faster(
    work: str,
    peer: str,
    ours: Times,
    theirs: Times | str,
    goal: float | None = None,
) -> Row:
    """Row of how many times faster we are; ``theirs`` may say why there is nothing to compare."""
    if isinstance(theirs, str):
        return Row(work, peer, str(ours), theirs, goal=goal)
    a, b = theirs.seconds, ours.seconds
    if len(a) == len(b):  # measured in turns, under the same load
        pairs = [t / o for t, o in zip(a, b, strict=True)]
    else:
        pairs = [t / o for t in a for o in b]
    return spread_row(work, peer, str(ours), str(theirs), pairs, goal)


def spread_row(
    work: str,
    peer: str,
    ours: str,
    theirs: str,
    values: Sequence[float],
    goal: float | None = None,
    *,
    unit: str = TIMES_FASTER,
    at_least: bool = True,
) -> Row:
    """Row of the median of some values, with all but the outer tenths as their spread."""
    low, middle, high = (float(x) for x in np.quantile(values, [0.1, 0.5, 0.9]))
    return Row(work, peer, ours, theirs, middle, low, high, unit, goal, at_least)


def seconds_row(work: str, peer: str, times: Times, goal: float, ours: str = "") -> Row:
    """Row of a time that must not be exceeded."""
    return spread_row(
        work, peer, ours or str(times), "", times.seconds, goal, unit="s", at_least=False
    )


def in_words(seconds: float) -> str:
    """Seconds with a unit that leaves few digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{number(seconds / scale)} {unit}"
    return f"{number(seconds / 1e-9)} ns"


def number(x: float) -> str:
    """Three digits, without an exponent where that is readable."""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e6 else f"{x:.3g}"


def table(title: str, note: str, head: list[str], rows: list[list[str]]) -> str:
    """Return a titled table of the results page."""
    return f"### {title}\n\n{note}\n\n" + plain_table(head, rows)


def plain_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def machine(packages: Sequence[str] = ()) -> str:
    """Name the machine and the versions, for the head of a section."""
    from evenhand.lab.store import describe_machine, describe_versions  # not in what is measured

    peers = [f"{name} {found}" for name in packages if (found := version_of(name))]
    return "; ".join([describe_machine(), describe_versions(), *peers])


def version_of(package: str) -> str | None:
    """Version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None

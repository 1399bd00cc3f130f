"""Timing with its spread, and the page the results are written to."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).with_name("RESULTS.md")


class Times(NamedTuple):
    """Seconds of repeated runs of the same work."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """Middle of the repetitions."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        low, high = min(self.seconds), max(self.seconds)
        return f"{in_words(self.median)} ({in_words(low)} to {in_words(high)})"


def repeat(work: Callable[[], Any], times: int = 7, per: int = 1) -> Times:
    """Time some work after one warm-up call; ``per`` units of it are done in a call."""
    work()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append((time.perf_counter() - start) / per)
    return Times(seconds)


def ratio(theirs: Times, ours: Times) -> str:
    """How many times faster, with the range over all pairs of repetitions."""
    low = min(theirs.seconds) / max(ours.seconds)
    high = max(theirs.seconds) / min(ours.seconds)
    return f"{theirs.median / ours.median:.3g} ({low:.3g} to {high:.3g})"


def in_words(seconds: float) -> str:
    """Seconds with a unit that leaves few digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(title: str, note: str, head: list[str], rows: list[list[str]]) -> str:
    """Return a section of the results page."""
    lines = [f"## {title}", "", note, "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Name the machine and the versions, for the head of a section."""
    from evenhand.lab.store import describe_machine, describe_versions  # not in what is measured

    return f"{describe_machine()}; {describe_versions()}"

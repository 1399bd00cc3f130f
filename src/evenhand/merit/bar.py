"""How far a long computation is, and how long it will still take."""

import sys
import time
from collections.abc import Callable
from typing import Any

from evenhand.display import in_minutes

WAIT = 2.0  # seconds before a bar is shown: what is fast shows none
EVERY = 0.2
FIRST = 5.0  # seconds before the first line in a log
WIDTH = 30

Progress = bool | Callable[[int, int], object] | None


def reporter(progress: Progress) -> "Report":
    """Return what is told how many queries are done, how many of them were paid for, and of all.

    ``progress`` is None for a bar on a terminal and silence elsewhere, True for a bar, False for
    silence, or a function of the queries done and of all.
    """
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if progress is True:
        return Bar()
    if progress is False:
        return Report(lambda done, total: None)
    if not callable(progress):
        raise TypeError(
            f"progress must be True, False, None or a function of (done, total), got {progress!r}"
        )
    return Report(progress)


class Report:
    """Hands on to a function of the user's how far a computation is."""

    def __init__(self, tell: Callable[[int, int], object]) -> None:
        self._tell = tell

    def __call__(self, done: int, paid: int, total: int) -> None:
        """Report the queries done, those of them that were paid for, and all."""
        self._tell(done, total)

    def close(self) -> None:
        """Nothing more will come."""


class Bar(Report):
    """A bar on one line of standard error."""

    def __init__(self, file: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = sys.stderr if file is None else file, clock
        self._start, self._shown, self._width = clock(), -EVERY, 0

    def __call__(self, done: int, paid: int, total: int) -> None:
        """Show the bar, if it is time to."""
        now = self._clock() - self._start
        if now < WAIT or now < self._shown + EVERY:
            return
        self._shown = now
        share = done / max(1, total)
        filled = int(WIDTH * share)
        left = "" if paid == 0 else f", {in_minutes(now * (total - done) / paid)} left"
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done:,} of {total:,} ({share:.0%}){left}"
        self._file.write("\r" + line.ljust(self._width))
        self._file.flush()
        self._width = len(line)

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._file.write("\r" + " " * self._width + "\r")
            self._file.flush()


class Lines:
    """Progress of a command in a log: lines, ever fewer, as what takes long goes on for long."""

    def __init__(self, file: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = sys.stderr if file is None else file, clock
        self._start, self._next = clock(), FIRST

    def __call__(self, done: int, total: int) -> None:
        """Write a line, if it is time to."""
        now = self._clock() - self._start
        if now >= self._next and 0 < done < total:
            self._next = 1.5 * now
            left = in_minutes(now * (total - done) / done)
            print(
                f"{done:,} of {total:,} after {in_minutes(now)}, about {left} left",
                file=self._file,
                flush=True,
            )


def of_command() -> Progress:
    """What shows the progress of a command: a bar on a terminal, lines elsewhere."""
    return None if sys.stderr is None or sys.stderr.isatty() else Lines()

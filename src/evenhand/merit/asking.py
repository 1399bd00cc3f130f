"""A game asked through workers and a cache, with a bar, and with Ctrl-C that loses nothing."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from evenhand.checks import check_integer
from evenhand.estimate import Estimate
from evenhand.games.game import NoisyMean
from evenhand.games.noise import Noise
from evenhand.merit.bar import Progress, Report, reporter
from evenhand.merit.cache import Cache
from evenhand.merit.desk import Desk
from evenhand.merit.questions import Draws, Values
from evenhand.merit.workers import TASK_SECONDS, Here, Workers
from evenhand.typing import Bools, Floats, Ints

MOST_AT_ONCE = 16384  # sets handed to a function at once, if nothing else is said


class Unfinished(KeyboardInterrupt):
    """Ctrl-C before all was asked.

    Attributes
    ----------
    estimate
        What is known by then, with standard errors; nan for arms of which nothing is known. None
        where merits were to be exact: all values asked for are in the cache, if there is one.
    answered
        Queries answered.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import SetFunction
    >>> def worth(arms):
    ...     calls.append(arms)
    ...     if len(calls) == 500:
    ...         raise KeyboardInterrupt  # stands for a hand on the keyboard
    ...     return len(arms) / 6
    >>> calls, game = [], SetFunction.per_set(worth, m=6)
    >>> try:
    ...     evenhand.merit.monte_carlo(game, 2, 1200, np.random.default_rng(1))
    ... except evenhand.merit.Unfinished as stopped:
    ...     print(stopped.estimate.merit.round(2))
    [0.17 0.17 0.17  nan  nan  nan]
    """

    def __init__(self, estimate: Estimate | None, answered: int, kept: str = "") -> None:
        super().__init__(f"interrupted after {answered} queries{kept}")
        self.estimate, self.answered = estimate, answered


class How(NamedTuple):
    """By whom a game is asked, who watches, what is kept, and how many sets go in one call."""

    executor: Any = None
    progress: Progress = None
    cache: Cache | str | Path | None = None
    batch: int | None = None


class Asked(NoisyMean):
    """A game in place of another, which it asks by way of workers and a cache.

    Where a reward is the mean and noise (:class:`NoisyMean`), the mean is asked for and the noise
    drawn here, from the caller's generator: the numbers are those without workers. A game with a
    ``pull`` of its own draws each row from a stream of the row's own.
    """

    def __init__(self, game: Any, total: int, batch: int | None, report: Report) -> None:
        self.game, self.m = game, game.m
        self.noise = cast(Noise | None, getattr(game, "noise", True))  # unknown is some
        self.rewards = getattr(game, "rewards", (0.0, 1.0))
        self.empty = getattr(game, "empty", 0.0)
        self.total, self.answered, self.paid = total, 0, 0
        self.desk: Desk | None = None
        self.kept = ""  # where answers are kept, in words
        self._stopped, self._report, self._batch = False, report, batch
        self._by_mean = isinstance(game, NoisyMean) and all(
            getattr(type(game), name) is getattr(NoisyMean, name) for name in ("pull", "_observe")
        )
        self._missing = np.zeros(0, np.bool_)

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._stopped or (self.desk is not None and self.desk.stopped)

    def value(self, sets: Bools) -> Floats:
        """Ask for values; 0 for sets that Ctrl-C left unasked."""
        found = self._values_here(sets) if self.desk is None else self._values_at(self.desk, sets)
        if not self.stopped:
            return found
        self._missing = np.isnan(found)
        return np.where(self._missing, 0.0, found)

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Ask for rewards; nan for those that Ctrl-C left unasked."""
        return self._pull("pull", orders, sizes, rng)

    def pull_coupled(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Ask for rewards under common randomness, if the game has it."""
        coupled = hasattr(self.game, "pull_coupled")
        return self._pull("pull_coupled" if coupled else "pull", orders, sizes, rng)

    def note(self, answered: int, paid: int) -> None:
        """Count answers, and those of them that were paid for."""
        self.answered += answered
        self.paid += paid
        self._report(min(self.answered, self.total), self.paid, self.total)

    def finish(self, estimate: Estimate | None) -> None:
        """After Ctrl-C, raise with what is known."""
        if self.stopped:
            raise Unfinished(estimate, self.answered, self.kept)

    def _pull(self, method: str, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        if self._by_mean and method == "pull":
            return super().pull(orders, sizes, rng)
        if self.desk is not None:
            seeds = np.empty((len(orders), 3), np.int64)
            seeds[:, :2], seeds[:, 2] = rng.integers(0, 2**62, 2), np.arange(len(orders))
            return self.desk.ask(Draws(method, orders, sizes, seeds))
        found = np.full(sizes.shape, np.nan)
        if not self._stopped:
            try:
                found = getattr(self.game, method)(orders, sizes, rng)
                self.note(sizes.size, sizes.size)
            except KeyboardInterrupt:
                self._stopped = True
        return found

    def _observe(self, sets: Bools, rng: np.random.Generator) -> Floats:
        if self.noise is None:  # merits are defined for values in any range
            rewards = self.value(sets) + self.empty
        else:
            rewards = super()._observe(sets, rng)
        if self.stopped:
            rewards[self._missing] = np.nan
        return rewards

    def _values_at(self, desk: Desk, sets: Bools) -> Floats:
        """Ask for each different set once, in the order they are given in."""
        packed = np.packbits(sets, axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))
        answers = desk.ask(Values(packed[np.sort(first)], self.m, self._batch or 1))
        found = answers[place[which.reshape(-1)], 0]
        self.note(int(np.isfinite(found).sum() - np.isfinite(answers).sum()), 0)
        return found

    def _values_here(self, sets: Bools) -> Floats:
        """Ask in this process, in parts whose sizes depend on time only where sets go alone."""
        found, start, step = np.full(len(sets), np.nan), 0, self._batch or 1
        alone = getattr(self.game, "one_by_one", False)
        try:
            while start < len(sets) and not self._stopped:
                part, began = slice(start, start + step), time.perf_counter()
                found[part] = self.game.value(sets[part])
                n, start = len(found[part]), start + step
                self.note(n, n)
                if alone:
                    seconds = max(time.perf_counter() - began, 1e-9)
                    step = max(1, min(2 * step, int(n * TASK_SECONDS / seconds)))
                elif self._batch is None:
                    step = min(2 * step, MOST_AT_ONCE)
        except KeyboardInterrupt:
            self._stopped = True
        return found


@contextmanager
def asking(game: Any, total: int, size: int, how: How) -> Iterator[Asked]:
    """Hold workers, cache and bar, and give the game to ask in place of the one at hand.

    ``total`` is the number of queries that are planned, ``size`` that of the smallest sets.
    """
    cache = Cache(how.cache) if isinstance(how.cache, str | Path) else how.cache
    if cache is not None and not isinstance(cache, Cache):
        raise TypeError(f"cache must be a path or an evenhand.merit.Cache, got {how.cache!r}")
    batch = None if how.batch is None else check_integer("batch", how.batch, 1)
    report = reporter(how.progress)
    with ExitStack() as stack:
        stack.callback(report.close)
        asked = Asked(game, total, batch, report)
        if cache is not None or how.executor is not None:
            workers = Here() if how.executor is None else Workers(how.executor)
            workers.open(game)
            stack.callback(lambda: workers.close(not asked.stopped))
            if cache is not None:
                stack.enter_context(cache.opened(game.m, getattr(game, "noise", None)))
                asked.kept = f"; all answers are kept in {cache.path}"
            asked.desk = Desk(workers, cache, asked.note, game.m, size)
        yield asked

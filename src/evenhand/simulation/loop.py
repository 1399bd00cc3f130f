"""The loop: a learner asks, a game answers, and what happened is recorded."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_integer, check_vector
from evenhand.exchange.batch import Batch
from evenhand.games import Game
from evenhand.learners import Learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.randomness.streams import Seed, as_generator
from evenhand.typing import Floats, Ints, compiled

MAX_MERIT_CURVES = 1000  # up to so many arms, merits are recorded at the checkpoints


@dataclass(frozen=True, slots=True)
class Run:
    """What a simulation recorded.

    Attributes
    ----------
    checkpoints
        (c,) numbers of queries.
    regret
        (c,) cumulative fairness regret after so many queries.
    selections
        (m,) how often each arm was in a queried set, of any size.
    alignment
        Merit-selection alignment B of those.
    merit, marginals
        (m,) the learner's estimates and next marginals at the end.
    reward
        Mean reward of the queries that were pulled, nan where none was.
    merits
        (c, m) the estimates in use at each checkpoint, for m <= 1000.
    target
        (m,) the fair marginals that regret was measured against.
    queries
        Queries made.
    seconds
        Wall-clock time.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> worth = [0.1, 0.2, 0.3, 0.4]
    >>> run = evenhand.simulate(
    ...     URS(m=4, k=1, seed=1), additive(worth), 100, target=worth, seed=2, checkpoints=[10, 100]
    ... )
    >>> run.checkpoints, run.regret.round(6), int(run.selections.sum())
    (array([ 10, 100]), array([ 4., 40.]), 100)
    """

    checkpoints: Ints
    regret: Floats
    selections: Ints
    alignment: float
    merit: Floats
    marginals: Floats
    reward: float
    merits: Floats | None
    target: Floats
    queries: int
    seconds: float


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; ``run`` holds all that was recorded until then.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> def stop(queries):  # stands for a hand on the keyboard
    ...     raise KeyboardInterrupt
    >>> try:
    ...     evenhand.simulate(
    ...         URS(m=2, k=1, seed=1), additive([0.5, 0.5]), 10**6, target=[0.5, 0.5], seed=2,
    ...         checkpoints=[10], progress=stop,
    ...     )
    ... except evenhand.Interrupted as stopped:
    ...     print(stopped.run.checkpoints)
    [10]
    """

    def __init__(self, run: Run) -> None:
        super().__init__(f"interrupted after {run.queries} queries; what was recorded is in .run")
        self.run = run

    def __reduce__(self) -> tuple[type["Interrupted"], tuple[Run]]:
        return Interrupted, (self.run,)


class _CtrlC:
    """Notices Ctrl-C and leaves it to be seen between two batches.

    Raised inside compiled code it can crash the process. A second one is raised at once, for a
    game that takes its time. Only the main thread hears signals.
    """

    def __enter__(self) -> "_CtrlC":
        self.pressed = False
        self.before = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        self.listens = main and self.before not in (signal.SIG_IGN, None)
        if self.listens:
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: object) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *error: object) -> None:
        if self.listens:
            signal.signal(signal.SIGINT, self.before)


def simulate(
    learner: Learner,
    game: Game,
    horizon: int,
    *,
    target: ArrayLike,
    seed: Seed,
    checkpoints: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
    watch: Callable[[Batch], object] | None = None,
) -> Run:
    """Let a learner play a game and record its fairness regret.

    Exact conditional losses are summed, selections are counted, and memory does not grow with the
    horizon. No reward is drawn where the learner wants none. A learner that has asked before goes
    on from there; regret and selections count from here.

    Parameters
    ----------
    learner, game
        Who asks and who answers.
    horizon
        Queries to make; the learner's own horizon, if it has one.
    target
        (m,) fair marginals that regret is measured against; see :func:`evenhand.fair_policy`.
    seed
        Seed or generator of the game's noise.
    checkpoints
        Numbers of queries at which to record; by default ten a decade, and the horizon.
    progress
        Called with the number of queries made so far, after every batch.
    watch
        Called with every batch before its rewards are drawn.

    Returns
    -------
    Run
        Regret at the checkpoints, selections, alignment, the learner's estimates.

    Raises
    ------
    Interrupted
        On Ctrl-C, a KeyboardInterrupt that carries what was recorded.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import NoisyOr
    >>> from evenhand.learners import URS
    >>> game = NoisyOr([0.8, 0.4, 0.4, 0.2])
    >>> target = evenhand.fair_policy(evenhand.kshapley(game, k=2), k=2)
    >>> run = evenhand.simulate(URS(m=4, k=2, seed=1), game, 1000, target=target, seed=2)
    >>> round(float(run.regret[-1])), round(float(np.abs(0.5 - target).sum()), 3)
    (869, 0.869)
    """
    horizon = check_integer("horizon", horizon, 1)
    if learner.m != game.m:
        raise ValueError(f"learner and game must have the same arms, got {learner.m} and {game.m}")
    if learner.horizon not in (None, horizon):
        raise ValueError(
            f"horizon must be the learner's own {learner.horizon}, got horizon={horizon}"
        )
    record = _Record(learner, horizon, check_target(target, learner.m, learner.k), checkpoints)
    rng = as_generator(seed, "environment")
    try:
        with _CtrlC() as ctrl_c:
            while learner.queries < horizon:
                if ctrl_c.pressed:
                    raise KeyboardInterrupt
                batch = learner.ask(horizon - learner.queries)
                record.add(batch)
                if watch is not None:
                    watch(batch)
                if batch.learns:
                    rewards = game.pull(batch.orders, batch.sizes, rng)
                    learner.tell(batch, rewards)
                    record.rewards += float(rewards.sum())
                    record.pulled += rewards.size
                if progress is not None:
                    progress(learner.queries)
    except KeyboardInterrupt:
        raise Interrupted(record.finish()) from None
    return record.finish()


def check_target(target: ArrayLike, m: int, k: int) -> Floats:
    """Return fair marginals (m,) that sum to k; they may exceed 1 where nothing was capped."""
    vector = check_vector("target", target, 0.0, np.inf)
    if len(vector) != m:
        raise ValueError(f"target must have shape ({m},), got {vector.shape}")
    if abs(vector.sum() - k) > 1e-6 * k:
        raise ValueError(
            f"target must sum to k={k}, got {vector.sum():.6g}; make it with evenhand.fair_policy"
        )
    return vector


def log_spaced(horizon: int, per_decade: int = 10) -> Ints:
    """Whole numbers from 1 to the horizon, evenly spaced in their logarithm, and the horizon.

    Examples
    --------
    >>> log_spaced(1000, per_decade=2)
    array([   1,    3,   10,   32,  100,  316, 1000])
    """
    n = int(np.ceil(per_decade * np.log10(max(horizon, 2)))) + 1
    return np.unique(np.rint(np.geomspace(1, horizon, n)).astype(np.int64))


class _Record:
    """Running sums of a simulation."""

    def __init__(
        self, learner: Learner, horizon: int, target: Floats, checkpoints: ArrayLike | None
    ) -> None:
        marks = (
            log_spaced(horizon) if checkpoints is None else as_integers("checkpoints", checkpoints)
        )
        if (
            marks.ndim != 1
            or np.any(np.diff(marks) <= 0)
            or not np.all((marks >= 1) & (marks <= horizon))
        ):
            raise ValueError(f"checkpoints must rise within 1..{horizon}, got {marks.tolist()}")
        self.learner, self.target = learner, target
        self.marks = marks[marks > learner.queries]
        self.at = learner.queries
        self.loss = FairnessLoss(target, learner.k)
        self.total = 0.0
        self.rewards, self.pulled = 0.0, 0
        self.regret: list[float] = []
        self.merits: list[Floats] | None = [] if learner.m <= MAX_MERIT_CURVES else None
        self.selections = np.zeros(learner.m, np.int64)
        self.start = time.perf_counter()

    def add(self, batch: Batch) -> None:
        """Add a batch's losses and selections, reading off the checkpoints inside it."""
        loss, queries = self.loss(batch), batch.queries
        end = self.at + queries
        inside = self._marks_until(end)
        if self.merits is not None and len(inside):
            self.merits += [self.learner.merit] * len(inside)
        if isinstance(loss, float):
            self.regret += [self.total + loss * (mark - self.at) for mark in inside.tolist()]
            self.total += loss * queries
        else:
            read = np.empty(len(inside))
            self.total = add_losses(loss, batch.times, self.at, self.total, inside, read)
            self.regret += read.tolist()
        self.at = end
        count_selections(self.selections, batch.orders, batch.sizes, batch.times)

    def _marks_until(self, end: int) -> Ints:
        """Checkpoints not yet read, up to some query."""
        first = last = len(self.regret)
        while last < len(self.marks) and self.marks[last] <= end:
            last += 1
        return self.marks[first:last]

    def finish(self) -> Run:
        """Return what was recorded."""
        n = len(self.regret)
        merits = None if self.merits is None else np.array(self.merits[:n]).reshape(n, -1)
        any_drawn = self.selections.any() and self.target.any()
        return Run(
            checkpoints=self.marks[:n],
            regret=np.array(self.regret),
            selections=self.selections,
            alignment=alignment(self.target, self.selections) if any_drawn else float("nan"),
            merit=self.learner.merit,
            marginals=self.learner.marginals,
            reward=self.rewards / self.pulled if self.pulled else float("nan"),
            merits=merits,
            target=self.target,
            queries=self.at,
            seconds=time.perf_counter() - self.start,
        )


@compiled
def add_losses(
    loss: Floats, times: Ints, at: int, total: float, marks: Ints, read: Floats
) -> float:
    """Add losses in row order to a total and read it off at the marks; returns the new total."""
    passed = 0
    for i in range(len(loss)):
        for one in loss[i]:
            while passed < len(marks) and marks[passed] <= at + times[i]:
                read[passed] = total + (marks[passed] - at) * one
                passed += 1
            at += times[i]
            total += times[i] * one
    return total


@compiled
def count_selections(selections: Ints, orders: Ints, sizes: Ints, times: Ints) -> None:
    """Count each arm's memberships in the queried prefixes."""
    k = orders.shape[1]
    ends = np.zeros(k + 1, np.int64)  # prefixes of a row by their length
    for i in range(len(orders)):
        ends[:] = 0
        for size in sizes[i]:
            ends[size] += times[i]
        inside = 0
        for r in range(k - 1, -1, -1):
            inside += ends[r + 1]
            if inside > 0:  # entries past the longest prefix may be anything
                selections[orders[i, r]] += inside

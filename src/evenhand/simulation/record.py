"""What a simulation records: running sums while it goes on, a Run at its end."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers
from evenhand.display import html_table
from evenhand.exchange.batch import Batch
from evenhand.learners import Learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.typing import Floats, Ints, compiled

MAX_CURVE_ARMS = 1000  # with more, estimates are not kept at every checkpoint, to save memory


@dataclass(frozen=True, slots=True, repr=False)
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
        How well selections follow the target, 1 if perfectly: :func:`evenhand.metrics.alignment`.
    merit, marginals
        (m,) the learner's estimates and next marginals at the end.
    reward
        Mean of the rewards observed: of queries of at least one arm that the learner wanted to
        know, missing ones (nan) left out; nan where there was none.
    merit_curve
        (c, m) the estimates in use at each checkpoint, for m <= 1000, else None.
    target
        (m,) the fair marginals that regret was measured against.
    queries
        Queries that the learner had asked at the end.
    seconds
        Wall-clock time.
    names
        The arms' names, if the learner knows them.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> game = additive([0.1, 0.2, 0.3, 0.4])
    >>> run = evenhand.simulate(URS(m=4, k=1, seed=1), game, 100, seed=1, checkpoints=[10, 100])
    >>> run.checkpoints, run.regret.round(6), int(run.selections.sum())
    (array([ 10, 100]), array([ 4., 40.]), 100)
    >>> run  # doctest: +ELLIPSIS
    Run(100 queries of 4 arms, regret 40, alignment 0.6..., ... s)
    """

    checkpoints: Ints
    regret: Floats
    selections: Ints
    alignment: float
    merit: Floats
    marginals: Floats
    reward: float
    merit_curve: Floats | None
    target: Floats
    queries: int
    seconds: float
    names: tuple[str, ...] | None = None

    @property
    def due(self) -> Floats:
        """Share of exposure (m,) that each arm is due."""
        return self.target / self.target.sum()

    @property
    def exposure(self) -> Floats:
        """Share of exposure (m,) that each arm got; all 0 if no arm was ever selected."""
        return self.selections / max(1, self.selections.sum())

    def __repr__(self) -> str:
        regret = f"regret {self.regret[-1]:.4g}" if self.regret.size else "no checkpoint reached"
        if self.regret.size and self.checkpoints[-1] < self.queries:
            regret += f" after {self.checkpoints[-1]:,}"
        return (
            f"Run({self.queries:,} queries of {len(self.target)} arms, {regret}, "
            f"alignment {self.alignment:.3f}, {self.seconds:.2g} s)"
        )

    def _repr_html_(self) -> str:
        columns = {
            "arm": np.arange(len(self.target)) if self.names is None else np.array(self.names),
            "due": self.due,
            "exposure": self.exposure,
            "selections": self.selections,
            "estimated merit": self.merit,
        }
        order = np.argsort(-self.target, kind="stable")
        return html_table({n: x[order] for n, x in columns.items()}, len(order), repr(self))


class Record:
    """Running sums of a simulation."""

    def __init__(
        self, learner: Learner, horizon: int, target: Floats, checkpoints: ArrayLike | None
    ) -> None:
        marks = (
            log_spaced(horizon) if checkpoints is None else _check_checkpoints(checkpoints, horizon)
        )
        self.learner, self.target = learner, target
        self.marks = marks[marks > learner.queries]
        self.at = learner.queries
        self.loss = FairnessLoss(target, learner.k)
        self.total = 0.0
        self.rewards, self.observed = 0.0, 0
        self.regret: list[float] = []
        self.merit: list[Floats] | None = [] if learner.m <= MAX_CURVE_ARMS else None
        self.asked_before = learner.asked.copy()
        self.start = time.perf_counter()

    def add(self, batch: Batch) -> None:
        """Add a batch's losses, reading off the checkpoints inside it."""
        loss, end = self.loss(batch), self.at + batch.queries
        inside = self.marks[len(self.regret) : self.marks.searchsorted(end, "right")]
        if self.merit is not None and len(inside):
            self.merit += [self.learner.merit] * len(inside)
        if isinstance(loss, float):
            self.regret += [self.total + loss * (mark - self.at) for mark in inside.tolist()]
            self.total += loss * batch.queries
        else:
            read = np.empty(len(inside))
            self.total = add_losses(loss, batch.times, self.at, self.total, inside, read)
            self.regret += read.tolist()
        self.at = end

    def add_rewards(self, batch: Batch, rewards: ArrayLike) -> None:
        """Add the rewards of a batch; the empty set has none, and nan is one not observed."""
        told = np.asarray(rewards, dtype=np.float64).reshape(batch.sizes.shape)
        if not batch.sizes.all() or np.isnan(told.sum()):
            told = told[(batch.sizes > 0) & ~np.isnan(told)]
        self.rewards += float(told.sum())
        self.observed += told.size

    def finish(self) -> Run:
        """Return what was recorded."""
        n = len(self.regret)
        curve = None if self.merit is None else np.reshape(self.merit[:n], (n, self.learner.m))
        selections = self.learner.asked - self.asked_before
        return Run(
            checkpoints=self.marks[:n],
            regret=np.array(self.regret),
            selections=selections,
            alignment=alignment(self.target, selections) if selections.any() else float("nan"),
            merit=self.learner.merit,
            marginals=self.learner.marginals,
            reward=self.rewards / self.observed if self.observed else float("nan"),
            merit_curve=curve,
            target=self.target,
            queries=self.at,
            seconds=time.perf_counter() - self.start,
            names=self.learner.names,
        )


def _check_checkpoints(checkpoints: ArrayLike, horizon: int) -> Ints:
    """Return increasing numbers of queries in 1..horizon."""
    marks = as_integers("checkpoints", checkpoints)
    if marks.ndim != 1:
        raise ValueError(f"checkpoints must be a vector, got shape {marks.shape}")
    bad = (marks < 1) | (marks > horizon) | (np.diff(marks, prepend=0) <= 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"checkpoints must increase within 1..{horizon}, the horizon, "
            f"got checkpoints[{i}]={marks[i]}" + (f" after {marks[i - 1]}" if i else "")
        )
    return marks


def log_spaced(horizon: int, per_decade: int = 10) -> Ints:
    """Whole numbers from 1 to the horizon, evenly spaced in their logarithm, and the horizon.

    Examples
    --------
    >>> log_spaced(1000, per_decade=2)
    array([   1,    3,   10,   32,  100,  316, 1000])
    """
    n = int(np.ceil(per_decade * np.log10(max(horizon, 2)))) + 1
    return np.unique(np.rint(np.geomspace(1, horizon, n)).astype(np.int64))


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

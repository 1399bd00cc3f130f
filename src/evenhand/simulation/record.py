"""What a simulation records: running sums while it goes on, a Run at its end."""

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers
from evenhand.display import html_table
from evenhand.exchange.batch import Batch
from evenhand.games import Change, Still, World
from evenhand.learners import Learner
from evenhand.metrics import FairnessLoss, alignment
from evenhand.simulation.stage import Scene
from evenhand.typing import Floats, Ints, compiled

MAX_CURVE_ARMS = 1000  # with more, nothing is kept per arm and checkpoint, to save memory
WINDOWS = 100  # checkpoints of a world that changes, if none are given


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """What a simulation recorded.

    Of a world that changes, vectors are of all arms that ever are, by id; an arm that is not there
    has merit nan and marginal 0.

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
        (m,) the fair marginals that regret was measured against, their mean over the queries in a
        world that changes.
    queries
        Queries that the learner had asked at the end.
    seconds
        Wall-clock time.
    names
        The arms' names, if the learner knows them.
    due_curve, given_curve
        (c, m) share of exposure that each arm was due, and got, between each checkpoint and the one
        before it, for m <= 1000, else None. What a batch gave counts as given evenly while it was
        asked.
    changes
        What happened in a world that changes, and when.
    learner
        The learner's name, such as ``"even-hand"``.

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
    due_curve: Floats | None = None
    given_curve: Floats | None = None
    changes: tuple[Change, ...] = ()
    learner: str = ""

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
        self,
        learner: Learner,
        horizon: int,
        world: World,
        scene: Scene,
        checkpoints: ArrayLike | None,
    ) -> None:
        if checkpoints is not None:
            marks = _check_checkpoints(checkpoints, horizon)
        elif isinstance(world, Still):
            marks = log_spaced(horizon)
        else:
            marks = evenly_spaced(horizon)
        self.learner, self.world = learner, world
        self.marks = marks[marks > learner.queries]
        self.at = self.began = self.since = learner.queries
        self.total = 0.0
        self.rewards, self.observed = 0.0, 0
        self.regret: list[float] = []
        self.merit: list[Floats] | None = [] if world.m <= MAX_CURVE_ARMS else None
        self.windows = Windows(world.m) if world.m <= MAX_CURVE_ARMS else None
        self._counted = self._counts()
        self._before = self._counted  # what was asked before does not count
        self.due = np.zeros(world.m)  # summed over the queries of all scenes but the present one
        self.changes: list[Change] = []
        self.names = dict[int, str]()
        self.start = time.perf_counter()
        self.scene = scene
        self.enter(scene)

    def enter(self, scene: Scene) -> None:
        """Measure against what is in force from now on."""
        self.due += (self.at - self.since) * self.scene.due
        self.scene, self.since = scene, self.at
        self.changes += scene.happened
        roster = self.learner.roster
        self.names |= zip(roster.ids.tolist(), roster.names or (), strict=False)
        self.loss = FairnessLoss(scene.due[scene.arms], self.learner.k)
        self.share = scene.due / self.learner.k

    def add(self, batch: Batch) -> None:
        """Add a batch's losses, reading off the checkpoints inside it."""
        loss, queries = self.loss(batch), batch.queries
        end = self.at + queries
        inside = self.marks[len(self.regret) : self.marks.searchsorted(end, "right")]
        before, self._counted = self._counted, self._counts()
        if self.windows is not None:
            self.windows.add(self._counted - before, self.share, self.at, end, inside)
        if self.merit is not None and len(inside):
            self.merit += [self._by_id(self.learner.merit, np.nan)] * len(inside)
        if isinstance(loss, float):
            self.regret += [self.total + loss * (mark - self.at) for mark in inside.tolist()]
            self.total += loss * queries
        else:
            read = np.empty(len(inside))
            self.total = add_losses(loss, batch.times, self.at, self.total, inside, read)
            self.regret += read.tolist()
        self.at = end

    def _counts(self) -> Ints:
        """How often each arm that ever is was asked so far, as the learner counts it."""
        counts = np.array(self.learner.selections, np.int64)
        if len(counts) == self.world.m:
            return counts
        return np.append(counts, np.zeros(self.world.m - len(counts), np.int64))

    def _by_id(self, values: Floats, absent: float) -> Floats:
        """What the learner says of its arms, as a vector of all arms that ever are."""
        wide = np.full(self.world.m, absent)
        wide[self.learner.roster.ids] = values
        return wide

    def add_rewards(self, batch: Batch, rewards: ArrayLike) -> None:
        """Add the rewards of a batch; the empty set has none, and nan is one not observed."""
        told = np.asarray(rewards, dtype=np.float64).reshape(batch.sizes.shape)
        total = float(told.sum())
        if math.isnan(total) or batch.sizes.min(initial=1) == 0:
            told = told[(batch.sizes > 0) & ~np.isnan(told)]
            total = float(told.sum())
        self.rewards += total
        self.observed += told.size

    def finish(self) -> Run:
        """Return what was recorded."""
        n, m = len(self.regret), self.world.m
        selections = self._counted - self._before
        curve = None if self.merit is None else np.reshape(self.merit[:n], (n, m))
        due, given = (None, None) if self.windows is None else self.windows.curves(n)
        target = self.scene.due
        if self.since > self.began:  # more than one scene
            target = (self.due + (self.at - self.since) * target) / (self.at - self.began)
        return Run(
            checkpoints=self.marks[:n],
            regret=np.array(self.regret),
            selections=selections,
            alignment=alignment(target, selections) if selections.any() else np.nan,
            merit=self._by_id(self.learner.merit, np.nan),
            marginals=self._by_id(self.learner.marginals, 0.0),
            reward=self.rewards / self.observed if self.observed else float("nan"),
            merit_curve=curve,
            target=target,
            queries=self.at,
            seconds=time.perf_counter() - self.start,
            names=self._all_names(),
            due_curve=due,
            given_curve=given,
            changes=tuple(self.changes),
            learner=getattr(self.learner, "name", ""),  # oracles have none
        )

    def _all_names(self) -> tuple[str, ...] | None:
        """Names of all arms that ever are, those not met yet by their number."""
        if not self.names:
            return None
        return tuple(self.names.get(arm, f"arm {arm}") for arm in range(self.world.m))


class Windows:
    """What each of m arms was due and got between one checkpoint and the next."""

    def __init__(self, m: int) -> None:
        self.due, self.given = list[Floats](), list[Floats]()
        self._due, self._given, self._length = np.zeros(m), np.zeros(m), 0

    def add(self, counts: Ints, share: Floats, start: int, end: int, marks: Ints) -> None:
        """Add a batch asked between two times, closing a window at every mark."""
        queries = end - start
        for stop in [*marks.tolist(), end]:
            part, start = stop - start, stop
            self._due += part * share
            self._given += part / queries * counts
            self._length += part
            if len(marks) and stop == marks[0]:
                self._close()
                marks = marks[1:]

    def _close(self) -> None:
        self.due.append(self._due / self._length)
        self.given.append(self._given / (self._given.sum() or 1.0))  # only empty sets: none
        self._due, self._given = np.zeros_like(self._due), np.zeros_like(self._given)
        self._length = 0

    def curves(self, n: int) -> tuple[Floats, Floats]:
        """Return the shares (n, m) due and given in the first n windows."""
        shape = n, len(self._due)
        return np.reshape(self.due[:n], shape), np.reshape(self.given[:n], shape)


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


def evenly_spaced(horizon: int, n: int = WINDOWS) -> Ints:
    """Whole numbers up to the horizon, n of them at even distances.

    Examples
    --------
    >>> evenly_spaced(1000, n=4)
    array([ 250,  500,  750, 1000])
    """
    return np.unique(np.rint(np.linspace(0, horizon, n + 1)[1:]).astype(np.int64))


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

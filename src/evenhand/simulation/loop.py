"""The loop: a learner asks, a game answers, and what happened is recorded."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer, check_vector
from evenhand.exchange.batch import Batch
from evenhand.games import Game, SetFunction
from evenhand.games.game import HasClosedForm
from evenhand.learners import Learner
from evenhand.merit import kshapley
from evenhand.policy import fair_policy
from evenhand.randomness.streams import Seed, as_generator
from evenhand.simulation.interrupts import CtrlC, Interrupted
from evenhand.simulation.record import Record, Run
from evenhand.subsets.combinations import count_sets
from evenhand.typing import Bools, Floats, Ints

MAX_LISTED = 10**6  # sets of one size that are valued to work out a target


def simulate(
    learner: Learner,
    game: Game,
    horizon: int,
    *,
    target: ArrayLike | None = None,
    seed: Seed,
    late: int = 0,
    checkpoints: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
    watch: Callable[[Batch], object] | None = None,
) -> Run:
    """Let a learner play a game and record its fairness regret.

    The loss of a query is how far the chances with which its set was drawn are from the target; it
    does not depend on which set came up. Memory does not grow with the horizon. No reward is drawn
    where the learner wants none.

    Parameters
    ----------
    learner, game
        Who asks and who answers.
    horizon
        Number of queries to stop at; the learner's own horizon, if it has one. Queries that the
        learner asked before count towards it, but not in regret and selections.
    target
        (m,) fair marginals that regret is measured against. Worked out if not given: those of
        :func:`evenhand.fair_policy` for the game's merits and the terms that the learner starts
        with, if any, where merits have a closed form or at most a million sets of one size need
        valuing. An arm of negative merit, which lowers the value of the sets it joins, counts as
        one of merit 0: it is due nothing, unless fewer than k arms have a merit above 0.
    seed
        Seed of the game's noise: an integer or SeedSequence, of which the stream "environment" is
        taken, so that a learner may have the same seed, or a generator, used as it is.
    late
        A reward is told once so many further queries have been asked, at the end of the batch in
        which they were; those of the last ``late`` queries never come.
    checkpoints
        Numbers of queries at which to record; by default ten per decade, and the horizon.
    progress
        Called with the number of queries made so far, after every batch.
    watch
        Called with every batch as it is asked.

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
    >>> run = evenhand.simulate(URS(m=4, k=2, seed=1), NoisyOr([0.8, 0.4, 0.4, 0.2]), 1000, seed=1)
    >>> round(float(run.regret[-1])), round(float(np.abs(0.5 - run.target).sum()), 3)
    (869, 0.869)
    """
    _check_players(learner, game)
    horizon = _check_horizon(horizon, learner)
    fair = _work_out(game, learner) if target is None else _check_target(target, learner)
    record = Record(learner, horizon, fair, checkpoints)
    rng = as_generator(seed, "environment")
    last = horizon - check_integer("late", late, 0)  # the last query whose reward comes
    waiting: deque[tuple[int, Batch]] = deque()  # with the queries asked at their end
    try:
        with CtrlC() as ctrl_c:
            while learner.queries < horizon:
                if ctrl_c.pressed:
                    raise KeyboardInterrupt
                stop = last if learner.queries < last else horizon
                batch = learner.ask(stop - learner.queries)
                record.add(batch)
                if watch is not None:
                    watch(batch)
                if batch.learns:
                    waiting.append((learner.queries, batch))
                while waiting and waiting[0][0] + late <= learner.queries:
                    _, batch = waiting.popleft()
                    rewards = game.pull(batch.orders, batch.sizes, rng)
                    learner.tell(batch, rewards)
                    record.add_rewards(batch, rewards)
                if progress is not None:
                    progress(learner.queries)
    except KeyboardInterrupt:
        raise Interrupted(record.finish()) from None
    return record.finish()


def _check_players(learner: Learner, game: Game) -> None:
    """Refuse what is no learner or no game, such as the two swapped, or different numbers of arms.

    A class passed instead of an object of it is refused too: it has no m.
    """
    for name, given, method in (("learner", learner, "ask"), ("game", game, "pull")):
        if not (hasattr(given, "m") and hasattr(given, method)):
            got = given if isinstance(given, type) else type(given).__name__
            raise TypeError(
                f"{name} must have m and {method}, got {got}; call simulate(learner, game, horizon)"
            )
    arms = learner.roster.next_id if isinstance(learner, Learner) else learner.m  # paused ones too
    if arms != game.m:
        raise ValueError(
            "learner and game must have the same number of arms, "
            f"got learner.m={arms} and game.m={game.m}"
        )
    worth = getattr(game, "empty", 0.0)
    if learner.empty != worth:
        raise ValueError(
            "learner and game must agree on what the empty set is worth, got "
            f"learner.empty={learner.empty:g} and {worth:g} in the game; "
            f"make the learner with empty={worth:g}"
        )


def _check_horizon(horizon: int, learner: Learner) -> int:
    """Return a horizon that leaves queries to make, and is the learner's own if it has one."""
    horizon = check_integer("horizon", horizon, 1)
    if learner.horizon not in (None, horizon):
        raise ValueError(
            f"horizon must be the learner's own {learner.horizon}, got horizon={horizon}"
        )
    if horizon <= learner.queries:
        raise ValueError(
            f"horizon must exceed the {learner.queries} queries that the learner asked before, "
            f"got horizon={horizon}; make a new learner, or raise horizon"
        )
    return horizon


def _check_target(target: ArrayLike, learner: Learner) -> Floats:
    """Return fair marginals (m,) that sum to k; they may exceed 1 where nothing was capped."""
    vector = check_vector("target", target, 0.0, np.inf)
    if len(vector) != learner.m:
        raise ValueError(f"target must have shape ({learner.m},), got {vector.shape}")
    if abs(vector.sum() - learner.k) > 1e-6 * learner.k:
        raise ValueError(
            f"target must sum to k={learner.k}, got {vector.sum():.6g}; "
            "make it with evenhand.fair_policy"
        )
    return vector


def _work_out(game: Game, learner: Learner) -> Floats:
    """Fair marginals of a game whose merits have a closed form or can be listed in short time."""
    k, terms, roster = learner.k, learner.terms, learner.roster
    here = game if roster.m == game.m else _among(game, roster.ids)
    merit = np.maximum(_merits(here, k), 0.0)
    return (
        fair_policy(merit, k) if terms is None else terms.policy(merit, k, roster.ids, roster.names)
    )


def _merits(game: Game, k: int) -> Floats:
    try:
        if not isinstance(game, HasClosedForm):
            most = count_sets(game.m, min(k, game.m // 2), MAX_LISTED)  # of the commonest size
            if most > MAX_LISTED:
                raise ValueError(f"more than {MAX_LISTED:,} sets of one size would need valuing")
        return kshapley(game, k)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"target must be given where the game's merits cannot be worked out ({error}); "
            "estimate them with evenhand.merit.stratified or evenhand.merit.reverse_reachable, "
            f"then pass target=evenhand.fair_policy(np.maximum(estimate.merit, 0), k={k})"
        ) from error


def _among(game: Game, arms: Ints) -> Game:
    """Return the game among some arms: what others would bring counts for nobody's merit."""

    def value(sets: Bools) -> Floats:
        whole = np.zeros((len(sets), game.m), np.bool_)
        whole[:, arms] = sets
        return game.value(whole)

    return SetFunction(value, len(arms))

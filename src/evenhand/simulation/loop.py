"""The loop: a learner asks, a game answers, and what happened is recorded."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer
from evenhand.exchange.batch import Batch
from evenhand.games import Game, Still, World
from evenhand.learners import Learner
from evenhand.randomness.streams import Seed, as_generator
from evenhand.simulation.interrupts import CtrlC, Interrupted
from evenhand.simulation.record import Record, Run
from evenhand.simulation.stage import Due, Stage


def simulate(
    learner: Learner,
    game: Game | World,
    horizon: int,
    *,
    target: ArrayLike | Due | None = None,
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

    In a world that changes (:mod:`evenhand.games`) the target is that of the arms present and the
    game in force when a query is asked, and so is its reward, however late it comes; no batch
    straddles a change. Time is the number of queries that the learner has asked, and the learner is
    told which arms join, leave, pause and resume, by its ``add``, ``retire``, ``pause`` and
    ``resume``.

    Parameters
    ----------
    learner, game
        Who asks and who answers: a game, or a world that changes.
    horizon
        Number of queries to stop at; the learner's own horizon, if it has one. Queries that the
        learner asked before count towards it, but not in regret and selections.
    target
        (m,) fair marginals that regret is measured against. Worked out if not given: those of
        :func:`evenhand.fair_policy` for the game's merits and the learner's terms, if any, where
        merits have a closed form or at most a million sets of one size need valuing. An arm of
        negative merit, which lowers the value of the sets it joins, counts as one of merit 0: it
        is due nothing, unless fewer than k arms have a merit above 0. In a world that changes, a
        function of time that returns those of the arms then present; it is called once after
        every change.
    seed
        Seed of the game's noise: an integer or SeedSequence, of which the stream "environment" is
        taken, so that a learner may have the same seed, or a generator, used as it is.
    late
        A reward is told once so many further queries have been asked, at the end of the batch in
        which they were; those of the last ``late`` queries never come.
    checkpoints
        Numbers of queries at which to record; by default ten per decade, and the horizon, or in a
        world that changes a hundred, evenly spaced.
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
    >>> round(float(run.regret[-1])), round(float(abs(0.5 - run.target).sum()), 3)
    (869, 0.869)
    """
    keep_freed_memory()
    world = _check_players(learner, game)
    horizon = _check_horizon(horizon, learner)
    stage = Stage(world, learner, _check_target(target, world))
    scene = stage.enter()
    record = Record(learner, horizon, world, scene, checkpoints)
    rng = as_generator(seed, "environment")
    last = horizon - check_integer("late", late, 0)  # the last query whose reward comes
    # with the queries asked at their end, and the game in force when they were asked
    waiting: deque[tuple[int, Batch, Game]] = deque()
    try:
        with CtrlC() as ctrl_c:
            while learner.queries < horizon:
                if ctrl_c.pressed:
                    raise KeyboardInterrupt
                if scene.end is not None and learner.queries >= scene.end:
                    scene = stage.enter()
                    record.enter(scene)
                stop = last if learner.queries < last else horizon
                stop = stop if scene.end is None else min(stop, scene.end)
                batch = learner.ask(stop - learner.queries)
                record.add(batch)
                if watch is not None:
                    watch(batch)
                if batch.learns:
                    waiting.append((learner.queries, batch, scene.game))
                while waiting and waiting[0][0] + late <= learner.queries:
                    _, batch, then = waiting.popleft()
                    rewards = then.pull(batch.orders, batch.sizes, rng)
                    learner.tell(batch, rewards)
                    record.add_rewards(batch, rewards)
                if progress is not None:
                    progress(learner.queries)
    except KeyboardInterrupt:
        raise Interrupted(record.finish()) from None
    return record.finish()


def keep_freed_memory() -> None:
    """Let the allocator keep what one batch frees for the next.

    To fetch new pages for every batch may take as long as all else. glibc keeps up to twice the
    largest block that was freed so far, of at most 32 MB: one that is never written to costs
    nothing. Elsewhere this does no harm.
    """
    np.empty(2**25 - 2**13, np.uint8)


def _check_players(learner: Learner, game: Game | World) -> World:
    """Return the world to play in.

    What is no learner or no game is refused, such as the two swapped, a class instead of an object
    of it, or different numbers of arms.
    """
    plays = "at" if isinstance(game, World) else "pull"
    for name, given, method in (("learner", learner, "ask"), ("game", game, plays)):
        if isinstance(given, type) or not (hasattr(given, "m") and hasattr(given, method)):
            got = given if isinstance(given, type) else type(given).__name__
            raise TypeError(
                f"{name} must have m and {method}, got {got}; call simulate(learner, game, horizon)"
            )
    if isinstance(game, World):
        return game
    arms = learner.roster.next_id if isinstance(learner, Learner) else learner.m  # paused ones too
    if arms != game.m:
        raise ValueError(
            "learner and game must have the same number of arms, "
            f"got learner.m={arms} and game.m={game.m}"
        )
    return Still(game)


def _check_target(target: ArrayLike | Due | None, world: World) -> Due | None:
    """Return a target as a function of time."""
    if target is None or callable(target):
        return target
    if not isinstance(world, Still):
        raise TypeError(
            "target must be a function of time in a world that changes, got "
            f"{type(target).__name__}; pass target=lambda t: the marginals of world.present(t)"
        )
    return lambda t: target


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

"""Whole simulations, side by side with plain versions, with each other and the paper's times."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.alone import Job, play
from benchmarks.baselines import (
    calibrate_plainly,
    refit_every_round,
    refit_every_round_cascade,
    transcription,
)
from benchmarks.bench_cascades import N_SEEDS, P, influence
from benchmarks.harness import (
    Row,
    Section,
    Times,
    alternate,
    clock,
    faster,
    seconds_row,
    spread_row,
)
from evenhand import fair_policy, merit, simulate, theory
from evenhand.designs.calibration import calibrate
from evenhand.games import IndependentCascade, synthetic
from evenhand.lab.learners import build_learner
from evenhand.randomness.streams import stream
from evenhand.typing import Floats

FAIR = {"kind": "iw-ksvfair", "gamma": 0.8}
FAIR_CASCADE = FAIR | {"gamma": 3.0}
EXACT = {"kind": "iw-ksvfair-exact", "gamma": 0.8}
EVEN_HAND = {"watch=False": {"kind": "even-hand-unwatched"}, "as it comes": {"kind": "even-hand"}}
TIMES_AS_LONG = {"watch=False": 1.5, "as it comes": 2.0}  # as IW-KSVFair takes: the goals
WHOLE_UP_TO = 120.0  # seconds a run may take to be made whole, not extrapolated


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    rows = [
        *influence_runs(small),
        *synthetic_runs(small),
        exact_run(small),
        *beside_each_other(small),
    ]
    text = (
        "Baselines stand in `benchmarks/baselines.py`: one compiled loop that refits the design "
        "to 1e-8 every round by the fixed point of the logits (and tosses a coin an arc), and "
        "Algorithm 1 in NumPy and SciPy line "
        "by line; both are timed over fewer rounds and compared per query. Extrapolated: the "
        "straight line through the times measured at the two horizons named, which is too high "
        "rather than too low, since the share of refits falls with the horizon.\n"
    )
    return Section(rows, text)


def influence_and_due() -> tuple[IndependentCascade, str, Floats]:
    """The cascade, its name, and what its nodes are due in sets of k."""
    cascade, name = influence()
    reference = merit.reverse_reachable(
        cascade, N_SEEDS, 2000 * cascade.m, stream(1, 1, "reference")
    )
    return cascade, name, fair_policy(reference.merit, N_SEEDS)


def on_cascade(
    learner: dict[str, Any], cascade: IndependentCascade, target: Floats, horizon: int
) -> float:
    """Processor time of a simulation of the cascade."""
    made = build_learner(learner, cascade.m, N_SEEDS, horizon, stream(1, 1, "learner"))
    seed = stream(1, 1, "environment")
    return clock(lambda: simulate(made, cascade, horizon, target=target, seed=seed))


def influence_runs(small: bool) -> list[Row]:
    """A cascade: queries per second at T = 1e6, and T = 1e8 extrapolated."""
    cascade, name, target = influence_and_due()
    short, rounds = (10**4, 20) if small else (10**6, 10_000)
    eta = theory.eta(cascade.m, N_SEEDS, 10**6, 3.0)

    def ours(horizon: int) -> float:
        return on_cascade(FAIR_CASCADE, cascade, target, horizon)

    def plain() -> float:
        arcs, rng = cascade.arcs, np.random.default_rng(1)
        return refit_every_round_cascade(
            calibrate_plainly, arcs.starts, arcs.targets, P, target, N_SEEDS, rounds, eta, rng
        )

    mine, theirs = alternate(
        (lambda: ours(short), short), (plain, rounds * N_SEEDS), times=2 if small else 3
    )
    speed = Times([x * short for x in mine.seconds])
    per_second = f"{1 / mine.median:.3g} queries/s"
    work = f"IW-KSVFair, {name}, T = {short:.0e}"
    row = faster(work, "refitted every round, a coin an arc, one compiled loop", mine, theirs, 6)
    extrapolated = extrapolate(ours, speed, short, small)
    return [
        row,
        seconds_row(
            f"IW-KSVFair, {name}, T = 1e8, extrapolated from {short:.0e} and {10 * short:.0e}",
            "the paper's 1500 s",
            extrapolated,
            200,
            f"{extrapolated}; {per_second} at {short:.0e}",
        ),
    ]


def extrapolate(ours: Callable[[int], float], at_short: Times, short: int, small: bool) -> Times:
    """Time at T = 1e8 by a straight line through those at a horizon and ten times that."""
    found = []
    for first in at_short.seconds[: 1 if small else 2]:
        second = ours(10 * short)
        found.append(second + (second - first) / (9 * short) * (10**8 - 10 * short))
    return Times(found)


def synthetic_runs(small: bool) -> list[Row]:
    """The synthetic game: T = 1e7 side by side, T = 1e8 whole."""
    game, k, horizon = synthetic(20, stream(1, 1, "instance")), 5, 10**4 if small else 10**7
    target, eta = fair_policy(game.kshapley(k), k), theory.eta(20, k, 10**7, 0.8)
    rounds, few = (50, 5) if small else (40_000, 300)

    def refitted(fit: Any) -> Callable[[], float]:
        rng = np.random.default_rng
        return lambda: refit_every_round(fit, game.mu, target, k, rounds, eta, rng(1))

    def plain() -> float:
        return transcription(game.mu, target, k, few, eta, np.random.default_rng(1))

    ours, theirs, quick, slow = alternate(
        (lambda: play(Job(FAIR, horizon)), horizon),
        (refitted(calibrate_plainly), rounds * k),
        (refitted(calibrate), rounds * k),
        (plain, few * k),
        times=2 if small else 3,
    )
    work = f"IW-KSVFair, synthetic (20, 5), T = {horizon:.0e}, per query"
    long, again = alternate(
        (lambda: play(Job(FAIR, 10 * horizon)), 10 * horizon),
        (refitted(calibrate_plainly), rounds * k),
        times=1 if small else 3,
        warm_up=False,
    )
    whole = Times([10 * horizon * each for each in long.seconds])
    longer = f"IW-KSVFair, synthetic (20, 5), T = {10 * horizon:.0e}, per query"
    return [
        faster(longer, "refitted every round, one compiled loop", long, again, 15),
        faster(work, "refitted every round, one compiled loop", ours, theirs, 10),
        faster(work, "the same with this package's fit", ours, quick),
        faster(work, "NumPy transcription of Algorithm 1", ours, slow, 500),
        seconds_row(
            f"IW-KSVFair, synthetic (20, 5), T = {10 * horizon:.0e}, whole run",
            "the paper's 80 s",
            whole,
            10,
        ),
    ]


def exact_run(small: bool) -> Row:
    """The enumerated design at T = 1e8: whole where that is quick enough, else extrapolated."""
    short = 200 if small else 10**6

    def ours(horizon: int) -> float:
        return play(Job(EXACT, horizon))

    ours(short)
    at_short = Times([ours(short)])
    times = extrapolate(ours, at_short, short, small)
    how = f"extrapolated from {short:.0e} and {10 * short:.0e}"
    if times.median <= WHOLE_UP_TO and not small:
        times, how = Times([ours(10**8)]), "whole run"
    work = f"exact IW-KSVFair (enumerated design), synthetic (20, 5), T = 1e8, {how}"
    return seconds_row(work, "the paper's 75 000 s", times, 120)


def beside_each_other(small: bool) -> list[Row]:
    """EvenHand and IW-KSVFair on the same work: whole runs in turns."""
    cascade, name, target = influence_and_due()

    def influence_run(learner: dict[str, Any], horizon: int) -> float:
        return on_cascade(learner, cascade, target, horizon)

    def synthetic_run(learner: dict[str, Any], horizon: int) -> float:
        return play(Job(learner, horizon))

    return [
        *_beside("synthetic (20, 5)", 10**3 if small else 10**8, synthetic_run, FAIR),
        *_beside(name, 10**4 if small else 10**7, influence_run, FAIR_CASCADE),
    ]


def _beside(
    game: str, horizon: int, run: Callable[[dict[str, Any], int], float], fair: dict[str, Any]
) -> list[Row]:
    configs = [fair, *EVEN_HAND.values()]
    for config in configs:
        run(config, min(horizon, 10**5))  # compiles
    times = 1 if horizon < 10**5 else 3
    rounds = [[run(config, horizon) for config in configs] for _ in range(times)]
    theirs, *ours = (Times(list(column)) for column in zip(*rounds, strict=True))
    return [
        spread_row(
            f"EvenHand, {how}, {game}, T = {horizon:.0e}, whole run",
            "IW-KSVFair on the same work",
            str(mine),
            str(theirs),
            [a / b for a, b in zip(mine.seconds, theirs.seconds, strict=True)],
            TIMES_AS_LONG[how],
            unit="times as long",
            at_least=False,
        )
        for how, mine in zip(EVEN_HAND, ours, strict=True)
    ]

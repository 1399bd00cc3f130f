"""Learners: queries per second, memory, start-up, and the speed of IW-KSVFair side by side."""

import json
import subprocess
import sys

import numpy as np

from benchmarks.baselines import refit_every_round, transcription
from benchmarks.harness import Times, in_words, ratio, repeat, table
from evenhand import fair_policy, kshapley, merit, simulate, theory
from evenhand.designs import Systematic
from evenhand.games import Game, IndependentCascade, facebook_graph, facebook_stand_in, synthetic
from evenhand.learners import ETCG, URS, FairCMAB, GapE, IWKSVFair, Learner, MURaS
from evenhand.streams import stream

ALONE = """
import json, resource, sys, time
start = time.perf_counter()
from benchmarks.bench_learners import one_run
name, horizon = sys.argv[1], int(sys.argv[2])
seconds = one_run("synthetic", name, horizon)
total = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "total": total, "peak": peak}))
"""
LEARNERS = ["IW-KSVFair", "NoMix", "NoIW", "MURaS", "URS", "ETCG", "GAP-E", "Fair-CMAB"]


def make(name: str, m: int, k: int, horizon: int, gamma: float, lam: float) -> Learner:
    """Make a learner by its name in the paper."""
    seed = stream(1, 1, "learner")
    makers = {
        "IW-KSVFair": lambda: IWKSVFair(m, k, horizon, gamma=gamma, seed=seed),
        "NoMix": lambda: IWKSVFair.no_mix(m, k, horizon, seed=seed),
        "NoIW": lambda: IWKSVFair.no_iw(m, k, horizon, gamma=gamma, seed=seed),
        "MURaS": lambda: MURaS(m, k, horizon, lam=lam, rounding=Systematic, seed=seed),
        "URS": lambda: URS(m, k, seed=seed),
        "ETCG": lambda: ETCG(m, k, horizon, seed=seed),
        "GAP-E": lambda: GapE(m, k, horizon, seed=seed),
        "Fair-CMAB": lambda: FairCMAB(m, k, horizon, seed=seed),
    }
    return makers[name]()


def one_run(dataset: str, name: str, horizon: int) -> float:
    """Seconds of one simulation."""
    game: Game
    if dataset == "synthetic":
        game, k = synthetic(20, stream(1, 1, "instance")), 5
        target = fair_policy(kshapley(game, k), k)
        learner = make(name, 20, k, horizon, 0.8, 8)
    else:
        cascade, k = influence(), 10
        found = merit.reverse_reachable(cascade, k, 100_000, stream(1, 1, "reference"))
        game, target = cascade, fair_policy(found.values, k)
        learner = make(name, game.m, k, horizon, 3, 100)
    return simulate(learner, game, horizon, target=target, seed=stream(1, 1, "environment")).seconds


def influence() -> IndependentCascade:
    """The Facebook cascade, or the stand-in's where the file is missing."""
    try:
        graph = facebook_graph()
    except FileNotFoundError:
        graph = facebook_stand_in()
    return IndependentCascade(graph, p=0.1)


def alone(name: str, horizon: int) -> dict[str, float]:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, name, str(horizon)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def side_by_side() -> str:
    """IW-KSVFair against itself refitted every round, per query, in one run."""
    game, k, horizon = synthetic(20, stream(1, 1, "instance")), 5, 10**7
    target, eta = fair_policy(kshapley(game, k), k), theory.eta(20, k, horizon, 0.8)
    rounds, few = 40_000, 300
    compiled = repeat(
        lambda: refit_every_round(game.mu, target, k, rounds, eta, np.random.default_rng(1)),
        times=5,
        per=rounds * k,
    )
    plain = repeat(
        lambda: transcription(game.mu, target, k, few, eta, np.random.default_rng(1)),
        times=5,
        per=few * k,
    )
    ours = Times([one_run("synthetic", "IW-KSVFair", horizon) / horizon for _ in range(5)])
    rows = [
        ["refitted to 1e-8 every round, one compiled loop", str(compiled), ratio(compiled, ours)],
        ["NumPy/SciPy transcription of Algorithm 1", str(plain), ratio(plain, ours)],
        ["`IWKSVFair`, default schedule, T = 1e7", str(ours), "1"],
    ]
    return table(
        "IW-KSVFair on the synthetic game, time per query",
        "The two baselines stand in `benchmarks/baselines.py`.",
        ["what", "time per query", "we are faster by"],
        rows,
    )


def every_learner() -> str:
    """Queries per second of every learner on both datasets."""
    rows = []
    name_of_graph = "Facebook" if _has_facebook() else "stand-in for Facebook"
    for name in LEARNERS:
        cells = []
        for dataset in ("synthetic", "influence"):
            horizon = 10**6
            times = Times([one_run(dataset, name, horizon) for _ in range(3)])
            cells.append(f"{horizon / times.median:.3g}")
        rows.append([name, *cells])
    return table(
        "Queries per second at T = 1e6",
        "Median of three runs. Commit phases draw no rewards and are counted, not listed.",
        ["learner", "synthetic (20, 5)", f"{name_of_graph} (534, 10)"],
        rows,
    )


def memory() -> str:
    """Peak memory and time of whole runs at T = 1e8, each in a process of its own."""
    rows = []
    for name in LEARNERS:
        found = alone(name, 10**8)
        rows.append([name, f"{found['peak']:.0f} MB", in_words(found["seconds"])])
    return table(
        "Whole runs at T = 1e8, synthetic",
        "Peak resident memory of the process, interpreter and libraries included.",
        ["learner", "peak memory", "time"],
        rows,
    )


def start_up() -> str:
    """A short simulation in a fresh process with compiled code on disk."""
    alone("IW-KSVFair", 10**4)
    found = [alone("IW-KSVFair", 10**4) for _ in range(5)]
    times = Times([one["total"] - one["seconds"] for one in found])
    return table(
        "Start-up",
        "From importing the package to the end of a simulation of T = 1e4, less the simulation.",
        ["what", "time"],
        [["second process, warm cache", str(times)]],
    )


def _has_facebook() -> bool:
    try:
        facebook_graph()
    except FileNotFoundError:
        return False
    return True


def run() -> str:
    """Return the section of the results page."""
    return "\n".join([side_by_side(), every_learner(), memory(), start_up()])

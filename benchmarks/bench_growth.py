"""How cost grows with M, K and T, in tables and figures; and a learner with a million arms."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.alone import Job, play
from benchmarks.harness import (
    FIGURES,
    ROOT,
    Row,
    Section,
    Times,
    clock,
    in_words,
    number,
    plain_table,
    repeat,
    seconds_row,
    spread_row,
)
from evenhand.designs import ConditionalPoisson
from evenhand.games import NoisyOr
from evenhand.lab.figures import STYLE
from evenhand.learners import EvenHand, IWKSVFair
from evenhand.palette import INKS, Look, looks
from evenhand.policy import waterfill

K, ETA = 20, 0.5
LEARNERS: dict[str, dict[str, Any]] = {
    "IW-KSVFair": {"kind": "iw-ksvfair", "gamma": 2.0},
    "MURaS": {"kind": "muras", "lam": 8.0},
    "GAP-E": {"kind": "gap-e"},
    "Fair-CMAB": {"kind": "fair-cmab"},
    "EvenHand": {"kind": "even-hand"},
}
Line = tuple[list[int], list[float]]
DESIGN = Look(*INKS, "D")  # the ink: colours are those of learners


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    time_lines = {name: in_horizon(config, small) for name, config in LEARNERS.items()}
    arms, budget = fit_in_arms(small), fit_in_budget(small)
    costs = {name: in_rounds(name, small) for name in MAKERS}
    rounds, _ = costs["IW-KSVFair"]
    queries, policies = costs["EvenHand"]
    rows = [
        _exponent("IW-KSVFair: time against T", time_lines["IW-KSVFair"], 1.1),
        _exponent(f"fit: time against M, K = {K}", arms, 1.1),
        _flat("fit: largest over smallest time, K from 20 to M / 2", budget, 3.0),
        _flat(f"IW-KSVFair: largest over smallest cost of a round, K = {K}, any M", rounds, 2.0),
        _flat(f"EvenHand: largest over smallest cost of a query, K = {K}, any M", queries, 2.0),
        _exponent(f"EvenHand: a refresh against M, K = {K}", policies, 1.1),
        *(row for name in MAKERS for row in million(name, small)),
    ]
    if not small:
        draw(time_lines, arms, budget, costs)
    text = (
        "Exponents are slopes of straight lines through the log-log points. A round between "
        "refreshes is asking for it, playing it on a noisy-OR game and telling the rewards, "
        "averaged over the batches that made no new policy; a refresh makes the policy, fits the "
        "design and draws the rounds it will serve.\n\n"
        + plain_table(
            ["M", "IW-KSVFair, a round", "a refresh", "EvenHand, a query", "a refresh"],
            [
                [number(m), *(in_words(line[i]) for _, line in (*costs["IW-KSVFair"], *lines))]
                for lines in [costs["EvenHand"]]
                for i, m in enumerate(rounds[0])
            ],
        )
        + "\n![cost against T, M and K](figures/growth.svg)\n"
    )
    return Section(rows, text)


def in_horizon(config: dict[str, Any], small: bool) -> Line:
    """Time of whole synthetic runs."""
    horizons = [1000, 2000] if small else [10**5, 10**6, 10**7, 10**8]
    if config["kind"] == "gap-e":
        horizons = horizons[:-1]
    play(Job(config, horizons[0]))  # compiles what is not yet on disk
    return horizons, [play(Job(config, horizon)) for horizon in horizons]


def _policy(m: int, k: int) -> np.ndarray:
    return waterfill(np.exp(np.random.default_rng(0).normal(0, 1, m)), k)


def fit_in_arms(small: bool) -> Line:
    """Cold fits at one K."""
    sizes = [100, 200] if small else [10**3, 10**4, 10**5, 10**6]
    times = 1 if small else 3
    return sizes, [_fit_time(m, K, times) for m in sizes]


def fit_in_budget(small: bool) -> Line:
    """Cold fits at one M."""
    m = 100 if small else 10**5
    budgets = [20, 50] if small else [20, 100, 1000, 10**4, m // 2]
    return budgets, [_fit_time(m, k, 1 if small else 3) for k in budgets]


def _fit_time(m: int, k: int, times: int) -> float:
    policy = _policy(m, k)
    return repeat(lambda: ConditionalPoisson.fit(policy), times).median


def in_rounds(name: str, small: bool) -> tuple[Line, Line]:
    """Cost of a round between refreshes, and of a refresh."""
    sizes = [2000, 3000] if small else [10**3, 10**4, 10**5, 10**6]
    found = [_rounds(name, m, 2000 if small else max(200_000, m // 3)) for m in sizes]
    return (sizes, [one[0] for one in found]), (sizes, [one[1] for one in found])


MAKERS: dict[str, Callable[[int, int], Any]] = {
    "IW-KSVFair": lambda m, queries: IWKSVFair(m, K, queries, eta=ETA, growth=0.2, seed=2),
    "EvenHand": lambda m, queries: EvenHand(m, K, seed=2),
}


def _rounds(name: str, m: int, queries: int) -> tuple[float, float]:
    """Seconds of a round under the policy there is, and of making a new policy."""
    rng = np.random.default_rng(1)
    game = NoisyOr(rng.uniform(0.0, 0.1, m))
    learner = MAKERS[name](m, queries)
    a_round = K if name == "IW-KSVFair" else 1

    def step() -> None:
        batch = learner.ask(5 * K)
        if batch.learns:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))

    plain = refreshing = 0.0
    plain_rounds = refreshes = 0
    while learner.queries < queries:
        new_policy = learner._left == 0
        before = learner.queries
        took = clock(step)
        if new_policy:
            refreshing += took
            refreshes += 1
        else:
            plain += took
            plain_rounds += (learner.queries - before) // a_round
    return plain / plain_rounds, refreshing / refreshes


MILLION = """
import json, sys, time
import numpy as np
from benchmarks.alone import peak_memory
from evenhand import fair_policy, simulate
from evenhand.games import NoisyOr
from evenhand.learners import EvenHand, IWKSVFair
name, m, k, eta, horizon = json.loads(sys.argv[1])
def make(m, horizon):
    if name == "EvenHand":
        return EvenHand(m, k, seed=1)
    return IWKSVFair(m, k, horizon, eta=eta, seed=1)
small = NoisyOr(np.full(2 * k, 0.5))  # compiles what is not yet on disk
simulate(make(2 * k, 10 * k), small, 10 * k, target=[0.5] * 2 * k, seed=2)
game = NoisyOr(np.random.default_rng(1).uniform(0.0, 0.1, m))
target = fair_policy(game.kshapley(k), k)
learner = make(m, horizon)
start = time.process_time()
run = simulate(learner, game, horizon, target=target, seed=2)
seconds = time.process_time() - start
print(json.dumps([seconds, peak_memory()]))
"""


def million(name: str, small: bool) -> list[Row]:
    """A million arms, a million queries, in a process of its own."""
    m, horizon = (1000, 1000) if small else (10**6, 10**6)
    done = subprocess.run(
        [sys.executable, "-c", MILLION, json.dumps([name, m, K, ETA, horizon])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, peak = json.loads(done.stdout)
    eta = f", eta = {ETA}" if name == "IW-KSVFair" else ""
    work = f"{name}, M = {m:.0e}, K = {K}{eta}, {horizon:.0e} queries of a noisy-OR"
    most = 2000 if name == "IW-KSVFair" else 80 * m * (K + 20) / 1e6 + 200  # and the libraries
    return [
        seconds_row(f"{work}: time", "", Times([seconds]), 600),
        spread_row(
            f"{work}: peak memory",
            "",
            f"{peak:.0f} MB",
            "",
            [peak],
            most,
            unit="MB",
            at_least=False,
        ),
    ]


def _exponent(work: str, line: Line, goal: float) -> Row:
    """Row of the exponent of growth."""
    x, y = np.log(line[0]), np.log(line[1])
    slope = float(np.polyfit(x, y, 1)[0])
    ours = ", ".join(f"{a:.0e}: {in_words(b)}" for a, b in zip(*line, strict=True))
    return spread_row(work, "linear", ours, "", [slope], goal, unit="exponent", at_least=False)


def _flat(work: str, line: Line, goal: float) -> Row:
    """Row of how much a cost varies that should not."""
    ours = ", ".join(f"{a:.0e}: {in_words(b)}" for a, b in zip(*line, strict=True))
    ratio = max(line[1]) / min(line[1])
    return spread_row(work, "flat", ours, "", [ratio], goal, unit="fold", at_least=False)


def draw(
    horizons: dict[str, Line], arms: Line, budget: Line, costs: dict[str, tuple[Line, Line]]
) -> Path:
    """Draw the figure of growth."""
    FIGURES.mkdir(exist_ok=True)
    path = FIGURES / "growth.svg"
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 6.6))
        (a, b), (c, d) = figure.subplots(2, 2)
        drawn = looks([LEARNERS[name]["kind"] for name in horizons])
        for look, (name, line) in zip(drawn, horizons.items(), strict=True):
            _draw_line(a, line, name, look)
        _guide(a, horizons["IW-KSVFair"])
        _finish(a, "whole runs, synthetic (20, 5)", "queries T")
        _draw_line(b, arms, f"K = {K}", DESIGN)
        _guide(b, arms)
        _finish(b, "fit of a conditional Poisson design", "arms M")
        _draw_line(c, budget, "M = 1e5", DESIGN)
        _finish(c, "fit of a conditional Poisson design", "budget K")
        for name, (rounds, refreshes) in costs.items():
            first, second = looks([(EvenHand if name == "EvenHand" else IWKSVFair).name] * 2)
            what = "a round" if name == "IW-KSVFair" else "a query"
            _draw_line(d, rounds, f"{name}, {what} between refreshes", first)
            _draw_line(d, refreshes, f"{name}, a refresh", second)
        _finish(d, f"K = {K}", "arms M")
        figure.savefig(path, metadata={"Date": None})
    return path


def _draw_line(axes: Axes, line: Line, label: str, look: Look) -> None:
    axes.loglog(*line, label=label, **look.line())


def _guide(axes: Axes, line: Line) -> None:
    """Dotted line of linear growth through the last point."""
    ends = np.array([line[0][0], line[0][-1]])
    axes.loglog(ends, line[1][-1] * ends / ends[-1], ":", color="#7F7F7F", label="linear")


def _finish(axes: Axes, title: str, x: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(x)
    axes.set_ylabel("processor time (s)")
    axes.legend(fontsize=7)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 5, high * 5)  # a flat line shall look flat

"""Every figure of the documentation: ``make figures`` writes them to docs/img."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.ticker import PercentFormatter

import evenhand
from evenhand import plot
from evenhand.designs import ConditionalPoisson
from evenhand.games import shop, synthetic
from evenhand.learners import ETCG, URS, EvenHand, IWKSVFair, Learner, MURaS
from evenhand.palette import SERIES, looks

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
IMAGES = ROOT / "docs" / "img"
BLUE, ORANGE, GREY = *SERIES[:2], "#9A9A9A"  # for what is no learner
STYLE: Any = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "legend.frameon": False,
    "svg.hashsalt": "evenhand",
    "savefig.facecolor": "white",
}
M, K = 20, 5


def main(names: list[str]) -> None:
    """Draw the figures named, or all."""
    with mpl.rc_context(STYLE):
        for name in names or FIGURES:
            figure = FIGURES[name]()
            path = IMAGES / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.08)
            print(f"wrote docs/img/{name}.svg")


def three_rules() -> Figure:
    """The same game under three rules: what each arm is due, and what it gets."""
    horizon = 1_000_000
    game, target = _game(1)
    rules = {
        "most reward (ETCG)": ETCG(M, K, horizon, seed=1),
        "everyone the same (uniform)": URS(M, K, seed=1),
        "by merit (EvenHand)": EvenHand(m=M, k=K, seed=1),
    }
    figure = Figure(figsize=(11, 3.7), layout="constrained")
    for axes, (label, learner) in zip(figure.subplots(1, 3), rules.items(), strict=True):
        run = evenhand.simulate(learner, game, horizon, target=target, seed=2)
        plot.exposure(run, ax=axes)
        axes.set_title(f"{label}\nalignment {run.alignment:.2f}")
    return figure


def regret() -> Figure:
    """Regret of some learners on the paper's synthetic games."""
    horizon, seeds = 1_000_000, range(1, 6)
    learners: dict[str, Callable[[int], Learner]] = {
        "ETCG (most reward)": lambda seed: ETCG(M, K, horizon, seed=seed),
        "URS (uniform)": lambda seed: URS(M, K, seed=seed),
        "MURaS": lambda seed: MURaS(M, K, horizon, lam=8.0, seed=seed),
        "IW-KSVFair": lambda seed: IWKSVFair(M, K, horizon, gamma=0.8, seed=seed),
        "EvenHand": lambda seed: EvenHand(M, K, seed=seed),
    }
    runs: dict[str, list[evenhand.Run]] = {label: [] for label in learners}
    for seed in seeds:
        game, target = _game(seed)
        for label, make in learners.items():
            run = evenhand.simulate(make(seed), game, horizon, target=target, seed=seed)
            runs[label].append(run)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    plot.regret(runs, ax=figure.subplots()).set(xlim=(100, horizon), ylim=(100, None))
    return figure


def convergence() -> Figure:
    """Estimates of one run settling at what is due."""
    game, target = _game(1)
    learner = EvenHand(m=M, k=K, seed=1)
    run = evenhand.simulate(learner, game, 300_000, target=target, seed=2)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    plot.convergence(run, ax=figure.subplots())
    return figure


def head_start() -> Figure:
    """How soon EvenHand is nearer to what is due than sharing equally, by queries per arm."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    per_arm = np.array([2, 5, 10, 20, 50, 100, 200, 500, 1000])
    cases: list[tuple[str, Any, int, int, float | None]] = [
        ("paper's games", synthetic, M, K, None),
        ("shop, 0/1 rewards", shop, 40, 6, None),
        ("shop, 95 % full pages", shop, 40, 6, 0.95),
    ]
    shades = looks(["even-hand"] * len(cases))
    for look, (label, make, m, k, full) in zip(shades, cases, strict=True):
        apart = np.array([_apart(make, m, k, full, seed, per_arm * m) for seed in range(10)])
        axes.plot(per_arm, apart.mean(axis=0), label=label, **look.line())
        print(label, dict(zip(per_arm.tolist(), apart.mean(axis=0).round(3).tolist(), strict=True)))
    axes.axhline(1.0, color="black", lw=0.8, ls=":")
    axes.annotate("sharing equally", (per_arm[-1], 1.01), ha="right", va="bottom")
    axes.set(xscale="log", ylim=(0, 1.1), xlabel="queries per arm")
    axes.set_ylabel("distance from what is due")
    axes.legend(loc="center left")
    return figure


def _apart(
    make: Any, m: int, k: int, full: float | None, seed: int, marks: np.ndarray
) -> list[float]:
    """Distance of the marginals to what is due at some numbers of queries, over the uniform one."""
    game, rng = make(m, np.random.default_rng(seed)), np.random.default_rng([seed, 1])
    due = evenhand.fair_policy(evenhand.kshapley(game, k), k)
    learner, found = EvenHand(m, k, full=full, seed=seed), list[float]()
    for mark in marks:
        while learner.queries < mark:
            batch = learner.ask(int(mark) - learner.queries)
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        found.append(np.abs(learner.marginals - due).sum() / np.abs(k / m - due).sum())
    return found


def naive_draw() -> Figure:
    """Marginals of numpy's weighted draw without replacement beside those asked for."""
    rng = np.random.default_rng(1)
    policy = evenhand.fair_policy(np.linspace(1, 12, 10) ** 1.2, k=K)
    naive, n = np.zeros(len(policy)), 40_000
    for _ in range(n):
        naive[rng.choice(len(policy), K, replace=False, p=policy / K)] += 1 / n
    rows = ConditionalPoisson.fit(policy).sample(n, rng)
    exact = np.bincount(rows.ravel(), minlength=len(policy)) / n
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(policy))
    axes.bar(places - 0.2, naive, 0.38, color=ORANGE, label="rng.choice(replace=False, p=...)")
    axes.bar(places + 0.2, exact, 0.38, color=BLUE, label="ConditionalPoisson")
    axes.hlines(policy, places - 0.42, places + 0.42, color="black", label="asked for")
    axes.set(xlabel="arm", ylabel="how often it is in the set", xticks=places)
    axes.legend(loc="upper left")
    return figure


def capping() -> Figure:
    """Shares in proportion, and what is left of them when no arm can be in a set twice."""
    merit = np.array([8.0, 3.0, 2.0, 1.5, 1.0, 0.5])
    k = 3
    asked, capped = k * merit / merit.sum(), evenhand.fair_policy(merit, k)
    figure = Figure(figsize=(6.0, 3.4), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(merit))
    axes.bar(places - 0.2, asked, 0.38, color=GREY, label="in proportion: impossible")
    axes.bar(places + 0.2, capped, 0.38, color=BLUE, label="capped at 1, rest shared again")
    axes.axhline(1.0, color="black", linewidth=1, linestyle=":")
    axes.set(xlabel="arm", ylabel="how often it is in the set", xticks=places)
    axes.legend()
    return figure


def federated() -> Figure:
    """Exposure of the federated clients of the example."""
    from examples.federated_clients import WRONG, play

    _, run = play()
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = plot.exposure(run, ax=figure.subplots())
    due, got = run.target / run.target.sum(), run.selections / run.selections.sum()
    spoilt = list(WRONG)
    axes.plot(due[spoilt], got[spoilt], "o", color=ORANGE, zorder=5, label="mislabelled data")
    axes.set_title("")
    axes.legend(loc="upper left")
    return figure


def rounds() -> Figure:
    """How far clients' shares are from those due, as docs/figures/rounds.py measured it."""
    found = json.loads(Path(__file__).with_name("rounds.json").read_text())
    figure = Figure(figsize=(8.6, 3.7), layout="constrained")
    both = figure.subplots(1, 2, sharey=True)
    for axes, (label, curves) in zip(both, found["far"].items(), strict=True):
        for (case, far), colour in zip(curves.items(), (BLUE, ORANGE, GREY), strict=True):
            axes.plot(found["rounds"], far, "o-", color=colour, markersize=4, label=case)
            axes.axhline(found["equal"][case], color=colour, lw=1, ls=":")
        axes.set(xscale="log", ylim=(0, 0.27), xlabel="rounds", title=label)
        axes.set_xticks(ticks := [50, 200, 1000, 5000], [str(t) for t in ticks])
        axes.minorticks_off()
    both[0].set_ylabel("exposure in the wrong place")
    both[0].yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    both[1].legend(loc="lower left")
    return figure


def data_values() -> Figure:
    """Error of data values against calls, as docs/figures/data_values.py measured it."""
    found = json.loads(Path(__file__).with_name("data_values.json").read_text())
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    axes, drawn = figure.subplots(), {BLUE: 0, ORANGE: 0, GREY: 0}
    for name, curve in found["errors"].items():
        colour = BLUE if name.startswith("evenhand") else ORANGE if "shapiq" in name else GREY
        style = ("o-", "s--", "^:")[drawn[colour]]
        drawn[colour] += 1
        budgets, errors = [int(budget) for budget in curve], list(curve.values())
        axes.plot(budgets, errors, style, color=colour, markersize=4, label=name)
    axes.set(xscale="log", yscale="log", xlabel=f"models trained, of {found['sets']} sets")
    axes.set_ylabel("root mean squared error")
    axes.set_xticks(ticks := [100, 200, 400, 800], [str(t) for t in ticks])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8.5)
    return figure


def season() -> Figure:
    """The year of the example: what sellers were due and given."""
    from examples.season import SOME, play

    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    plot.course(play()[1], arms=SOME, ax=figure.subplots())
    return figure


def loop() -> Figure:
    """The loop between a learner and the world."""
    figure = Figure(figsize=(8.6, 3.1), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(0.3, 3.7))
    axes.axis("off")
    _box(axes, 0.1, 1.15, 3.1, "the learner", "who adds how much?\nhow often is each due?")
    _box(axes, 6.8, 1.15, 3.1, "the world", "your users, clients, market\nor a simulated game")
    _arrow(axes, (3.2, 2.45), (6.8, 2.45), -0.25)
    _arrow(axes, (6.8, 1.55), (3.2, 1.55), -0.25)
    axes.text(5, 3.25, "ask: which sets of at most K arms to show", ha="center", color=BLUE)
    axes.text(5, 0.6, "tell: one noisy total a set, late or never", ha="center", color=ORANGE)
    return figure


def _box(axes: Axes, x: float, y: float, width: float, title: str, text: str) -> None:
    patch = FancyBboxPatch(
        (x, y), width, 1.7, boxstyle="round,pad=0.02,rounding_size=0.12", fc="#F4F6F8", ec="#555555"
    )
    axes.add_patch(patch)
    axes.text(x + width / 2, y + 1.3, title, ha="center", va="center", weight="bold", size=11.5)
    axes.text(x + width / 2, y + 0.6, text, ha="center", va="center", size=10)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], bend: float) -> None:
    colour = BLUE if start[0] < end[0] else ORANGE
    style = f"arc3,rad={bend}"
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=style,
            arrowstyle="-|>",
            mutation_scale=18,
            lw=2,
            color=colour,
        )
    )


def _game(seed: int) -> tuple[evenhand.games.NoisyOr, np.ndarray]:
    """An instance of the paper's synthetic game, and what its arms are due."""
    game = synthetic(M, np.random.default_rng(seed))
    return game, evenhand.fair_policy(game.kshapley(K), K)


def portrait() -> Figure:
    """A learner's shares in a shop: due, given, and where what is truly due lies."""
    rng = np.random.default_rng(1)
    game, names = shop(20, rng), [f"seller {i}" for i in range(20)]
    learner = EvenHand(m=20, k=4, names=names, seed=1)
    while learner.queries < 8_000:
        batch = learner.ask()
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    plot.portrait(learner, ax=figure.subplots())
    return figure


def plan() -> Figure:
    """How far shares of a shop like the README's are from those due, over pages shown."""
    found = evenhand.outlook(m=40, k=6, rate=0.09, full=0.95)
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    plot.outlook(found, traffic=50_000, ax=figure.subplots())
    return figure


FIGURES = {
    "loop": loop,
    "three-rules": three_rules,
    "regret": regret,
    "convergence": convergence,
    "head-start": head_start,
    "naive-draw": naive_draw,
    "capping": capping,
    "federated": federated,
    "rounds": rounds,
    "data-values": data_values,
    "season": season,
    "portrait": portrait,
    "plan": plan,
}

if __name__ == "__main__":
    main(sys.argv[1:])

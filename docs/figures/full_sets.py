"""The tables of docs/full-sets.md: ``python docs/figures/full_sets.py`` measures and writes them.

It takes some minutes; with a number of replications as argument, less or more.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import evenhand
from evenhand.exchange import Batch
from evenhand.games.game import Game, prefix_sets
from evenhand.lab.games import Setting, build_game
from evenhand.learners import FullSets
from evenhand.learners.curves import Curves
from evenhand.merit import full_set_value
from evenhand.randomness.streams import stream
from evenhand.subsets.combinations import combinations
from evenhand.typing import Floats

PAGE = Path(__file__).parents[1] / "full-sets.md"
SEED, K = 1, 5
MARKS = [10**5, 10**6]
GAMES: dict[str, dict[str, Any]] = {
    "synthetic, M=20": {"kind": "synthetic", "m": 20},
    "coverage, M=30": {"kind": "drawn", "family": "coverage", "m": 30},
    "additive, M=30": {"kind": "drawn", "family": "additive", "m": 30},
    "best member, M=20": {"kind": "drawn", "family": "best-member", "m": 20},
    "hidden pair, M=20": {"kind": "drawn", "family": "hidden-pair", "m": 20},
}


def main(replications: int) -> None:
    """Write both tables into the page."""
    for name, heads, measure in (
        ("distances", DISTANCES, distances),
        ("learning", LEARNING, learning),
    ):
        lines = table(heads, measure, replications)
        PAGE.write_text(put(PAGE.read_text(), name, lines))


def put(page: str, name: str, lines: list[str]) -> str:
    """Replace what stands between two marks of the page."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.split(start)
    return before + start + "\n".join(["", *lines, "", ""]) + end + rest.split(end)[1]


def table(
    heads: list[str], measure: Callable[[Setting, int], Floats], replications: int
) -> list[str]:
    """A row per game: means over replications, or what is largest where the head says so."""
    lines = ["| " + " | ".join(["game", *heads]) + " |", "|---" * (1 + len(heads)) + "|"]
    for title, config in GAMES.items():
        made = [build_game(config, K, replication=i, seed=SEED) for i in range(1, replications + 1)]
        found = np.array([measure(setting, i) for i, setting in enumerate(made, 1)])
        mean, most = found.mean(axis=0), found.max(axis=0)
        ends = [head.startswith("largest") for head in heads]
        cells = [shown(x) for x in np.where(ends, most, mean)]
        lines.append("| " + " | ".join([title, *cells]) + " |")
        print(lines[-1], flush=True)
    return lines


def shown(x: float) -> str:
    """Three digits, and 0 for what is rounding."""
    return f"{float(f'{x:.3g}'):,.0f}" if x >= 100.0 else f"{x:.3g}" if abs(x) >= 1e-6 else "0"


def policy(values: Floats) -> Floats:
    """Marginals in proportion to values, those below 0 counted as 0."""
    return evenhand.fair_policy(np.maximum(values, 0.0), K)


def distance(one: Floats, other: Floats) -> float:
    """Distance of policies."""
    return float(np.abs(one - other).sum())


DISTANCES = ["full-set values", "the curve", "(everyone the same)", "curvature found"]


def distances(setting: Setting, replication: int) -> Floats:
    """Distances from the K-Shapley policy, exactly: all K-sets are listed."""
    game, due = setting.game, policy(setting.known.merit)
    psi = full_set_value(game, K)
    curve = curve_through(game, psi)
    return np.array(
        [
            distance(policy(psi), due),
            distance(policy(curve.kshapley), due),
            distance(np.full(game.m, K / game.m), due),
            curve.curvature,
        ]
    )


def curve_through(game: Game, psi: Floats) -> Any:
    """Return what FullSets would extrapolate if it knew the value of every K-set."""
    curves = Curves(game.m, K)
    for i in range(1, 15):
        curves.fit(psi, 10**i)  # a few rounds each
    for rows in combinations(game.m, K, block=20_000):
        values = game.value(prefix_sets(rows, np.full((len(rows), 1), K), game.m))
        curves.absorb(rows, np.ones((len(rows), 1)), values[:, None])
    return curves.average(psi, noise=0.0)


LEARNING = [
    "regret at 1e5",
    "regret at 1e6",
    "slope",
    "L1 at 1e6",
    "largest of ten",
    "% within 2 s.e.",
    "% in intervals, all looks",
    "half-width / value",
    "mean reward",
]


def learning(setting: Setting, replication: int) -> Floats:
    """What FullSets does until T = 1e6, against the policy of the full-set values."""
    game, psi = setting.game, full_set_value(setting.game, K)
    learner = FullSets(game.m, K, seed=stream(SEED, replication, "learner"))
    looks = np.geomspace(1000, MARKS[-1], 30).astype(int).tolist()
    held = np.ones(game.m, np.bool_)

    def look(_: Batch) -> None:
        nonlocal held
        if looks and learner.queries >= looks[0]:
            looks.pop(0)
            low, high = learner.intervals().T
            held = held & (low <= psi) & (psi <= high)

    run = evenhand.simulate(
        learner,
        game,
        MARKS[-1],
        target=policy(psi),
        seed=stream(SEED, replication, "environment"),
        checkpoints=MARKS,
        watch=look,
    )
    found = learner.estimate()
    low, high = learner.intervals().T
    return np.array(
        [
            *run.regret,
            np.log10(run.regret[1] / run.regret[0]),
            *2 * [distance(learner.marginals, policy(psi))],
            100.0 * np.mean(np.abs(found.merit - psi) < 2.0 * found.stderr),
            100.0 * held.mean(),
            (high - low).mean() / 2.0 / psi.mean(),
            run.reward,
        ]
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)

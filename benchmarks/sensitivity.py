"""How much each tuned number of a learner matters: times and divided by 1.5, paired, on five games.

    python -m benchmarks.sensitivity evenhand.learners.inference:BELIEFS --replications 10

A number is named as module:NAME. Where NAME is a named tuple, each of its fields is one. It is
changed in the module, so that code must read it there when it runs: a compiled function that has
it built in is not reached, and its row says so.
"""

import argparse
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import plain_table
from evenhand.lab.cells import play
from evenhand.lab.games import build_game
from evenhand.lab.learners import build_learner
from evenhand.lab.ratios import LogRatio, log_ratio
from evenhand.randomness.streams import stream
from evenhand.typing import Floats

GAMES: dict[str, tuple[dict[str, Any], int]] = {
    "synthetic": ({"kind": "synthetic", "m": 20}, 5),
    "coverage": ({"kind": "drawn", "family": "coverage", "m": 30}, 5),
    "best member": ({"kind": "drawn", "family": "best-member", "m": 20}, 5),
    "hidden pair": ({"kind": "drawn", "family": "hidden-pair", "m": 20}, 5),
    "shop": ({"kind": "shop", "m": 40}, 6),
}
FACTOR = 1.5


class Constant(NamedTuple):
    """A number in a module, by its name; ``field`` of a named tuple, or empty."""

    module: str
    name: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.field}" if self.field else self.name

    @property
    def value(self) -> float:
        """The number as it is now."""
        held = getattr(importlib.import_module(self.module), self.name)
        return float(getattr(held, self.field) if self.field else held)

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        """Multiply it for a while."""
        module = importlib.import_module(self.module)
        held, changed = getattr(module, self.name), factor * self.value
        setattr(
            module, self.name, held._replace(**{self.field: changed}) if self.field else changed
        )
        try:
            yield
        finally:
            setattr(module, self.name, held)


def constants(names: list[str]) -> list[Constant]:
    """All numbers under these names, module:NAME."""
    found = []
    for one in names:
        module, _, name = one.partition(":")
        held = getattr(importlib.import_module(module), name)
        fields = getattr(held, "_fields", ("",))
        found += [Constant(module, name, field) for field in fields]
    return found


def regrets(game: str, learner: dict[str, Any], horizon: int, n: int, seed: int) -> Floats:
    """Regret of n replications of one game: the same worlds and noise whatever the learner."""
    config, k = GAMES[game]
    found = []
    for r in range(1, n + 1):
        setting = build_game(config, k, horizon=horizon, replication=r, seed=seed)
        made = build_learner(learner, setting.game.m, k, horizon, stream(seed, r, "learner"))
        record = play(setting, made, horizon, 0, stream(seed, r, "environment"))
        found.append(record["regret"])
    return np.array(found)


def shown(ratio: LogRatio) -> str:
    """A mean log-ratio in per cent, bold where it is beyond 10 % by two standard errors."""
    text = f"{100 * ratio.value:+.1f} ± {100 * ratio.stderr:.1f} %"
    return f"**{text}**" if abs(ratio.value) - 2.0 * ratio.stderr > 0.1 else text


def table(
    varied: list[Constant],
    learner: dict[str, Any],
    games: list[str],
    horizon: int,
    n: int,
    seed: int,
) -> str:
    """A row per number and factor, a column per game: mean log-ratio of regret to the default."""
    base = {game: regrets(game, learner, horizon, n, seed) for game in games}
    rows = []
    for one in varied:
        value = one.value
        for factor in (FACTOR, 1.0 / FACTOR):
            with one.times(factor):
                now = {game: regrets(game, learner, horizon, n, seed) for game in games}
            reached = any((now[game] != base[game]).any() for game in games)
            cells = [shown(log_ratio(now[game], base[game])) for game in games]
            cells = cells if reached else ["not reached"] * len(games)
            rows.append([str(one), f"{value:.4g}", f"{factor * value:.4g}", *cells])
    return plain_table(["number", "is", "tried", *games], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help="module:NAME")
    parser.add_argument("--learner", default="even-hand")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    parser.add_argument("--horizon", type=float, default=1e5)
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--seed", type=int, default=17)
    given = parser.parse_args()
    learner, horizon = {"kind": given.learner}, round(given.horizon)
    varied = constants(given.names)
    print(table(varied, learner, given.games, horizon, given.replications, given.seed))


if __name__ == "__main__":
    main()

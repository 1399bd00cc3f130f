"""What a learner makes of rare rewards: its claims, shares and intervals, one line per mark.

    python -m benchmarks.deployments shop cover --worlds 6 --base-seed 900 --late 0 2000
    python -m benchmarks.deployments shop --full 0.95 --learner my.module:factory

A factory is called as ``factory(m, k, seed=generator)``, with ``full=`` where ``--full`` is given.
Worlds are those of replications 1, 2, ... of the base seed: the same for every learner.
"""

import argparse
import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from evenhand.checks import check_integer
from evenhand.lab.cells import play
from evenhand.lab.games import Setting, build_game
from evenhand.lab.learners import KINDS
from evenhand.lab.readings import Honesty, Reading, condense
from evenhand.learners import Learner
from evenhand.randomness.streams import stream

MARKS = (5_000, 20_000, 80_000)
Factory = Callable[..., Learner]


class World(NamedTuple):
    """A kind of world: the lab's description of its game, and K."""

    game: dict[str, Any]
    k: int


WORLDS = {
    "shop": World({"kind": "shop", "m": 40}, 6),
    "cover": World({"kind": "rare-coverage", "m": 30}, 5),
    "cascade": World({"kind": "stand-in-cut", "nodes": 60, "p": 0.02}, 5),
    "varied-cover": World({"kind": "benchmarks.varied:cover", "m": 30}, 5),
    "varied-cascade": World({"kind": "benchmarks.varied:cascade"}, 5),
    "fee": World({"kind": "benchmarks.company:fee", "m": 30}, 5),
    "quiet": World({"kind": "benchmarks.company:quiet", "m": 20}, 5),
    "together": World({"kind": "benchmarks.company:together", "m": 20}, 5),
    "tail": World({"kind": "benchmarks.misfits:tail", "m": 40}, 6),
}
MISFITS = "star", "pairs", "crowd", "weakest", "twins", "team"
WORLDS |= {name: World({"kind": f"benchmarks.misfits:{name}", "m": 14}, 4) for name in MISFITS}


def settings(world: World, seed: int, n: int) -> list[Setting]:
    """Worlds of one kind, by replication."""
    n = check_integer("worlds", n, 1)
    return [build_game(world.game, world.k, replication=r, seed=seed) for r in range(1, n + 1)]


def reading(
    setting: Setting, k: int, make: Factory, mark: int, late: int, seed: int, replication: int
) -> Reading:
    """Let a learner be told so many rewards, and read off what it says."""
    learner = make(setting.game.m, k, seed=stream(seed, replication, "learner"))
    record = play(setting, learner, mark, late, stream(seed, replication, "environment"))
    said = (record[name] for name in Reading._fields[1:])
    return Reading(k, *(np.array(vector) for vector in said))


def measure(
    world: World, make: Factory, marks: Iterable[int], late: int, seed: int, n: int
) -> Iterator[tuple[int, Honesty]]:
    """Condensed readings of n worlds at each mark."""
    built = settings(world, seed, n)
    for mark in marks:
        found = [reading(s, world.k, make, mark, late, seed, r) for r, s in enumerate(built, 1)]
        yield mark, condense(found)


def line(honesty: Honesty) -> str:
    """The numbers of one mark on one line."""
    low, middle, high = honesty.thirds
    return (
        f"within 2 {honesty.within:.3f}  worst z {honesty.largest:+5.1f}  "
        f"rms {honesty.rms:.2f} ({low:.2f} {middle:.2f} {high:.2f})  "
        f"half-L1 {100 * honesty.misplaced:5.2f} ± {100 * honesty.misplaced_stderr:.2f} %  "
        f"least {honesty.least:.3f} ± {honesty.least_stderr:.3f}  "
        f"covered {honesty.covered:.3f}  width {honesty.width:.4f}"
    )


def factory(name: str, full: float | None) -> Factory:
    """A learner's class by its lab name, or a function as module:function."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        found: Factory = getattr(importlib.import_module(module), attribute)
    else:
        found = KINDS[name].learner
    if full is None:
        return found
    return lambda m, k, seed: found(m, k, full=full, seed=seed)


def main() -> None:
    """Print one line per kind of world, lateness and mark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="+", choices=list(WORLDS))
    parser.add_argument("--worlds", dest="n", type=int, default=6, help="worlds of each kind")
    parser.add_argument("--base-seed", type=int, default=900)
    parser.add_argument("--marks", type=float, nargs="+", default=MARKS)
    parser.add_argument("--late", type=int, nargs="+", default=[0])
    parser.add_argument("--full", type=float, help="share of full sets")
    parser.add_argument("--learner", default="even-hand", help="lab name or module:function")
    given = parser.parse_args()
    make, marks = factory(given.learner, given.full), [round(mark) for mark in given.marks]
    for name in given.worlds:
        for late in given.late:
            start = time.perf_counter()
            found = measure(WORLDS[name], make, marks, late, given.base_seed, given.n)
            for mark, honesty in found:
                shown = f"{name:8s}{f' late {late}' if late else '':10s} {mark:6d}  "
                seconds = time.perf_counter() - start
                print(f"{shown}{line(honesty)}  ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()

"""How well anybody could do: an oracle that knows the model and the prior, and draws by the truth.

    python -m benchmarks.oracle shop cover --worlds 10 --base-seed 900
    python -m benchmarks.oracle --results results    # for the report of evenhand reproduce

It shows sets as a learner does that had found the true merits: sizes and exploration are
EvenHand's. From their rewards it forms the posterior of the merits, whose mean it would share the
slots by, and whose 95 % ranges are what intervals can be compared with. It also knows that an arm
covers whole items and a node has whole arcs, which in the end gives each away exactly. "Uneven"
does not: it takes items and arcs to weigh as in :mod:`benchmarks.varied`. Nor does "smooth", which
takes coverage for a noisy-OR with a beta prior, and a node's arcs for a gamma; on set cover "some
nothing" is told besides how many arms bring nothing.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import covering, posteriors
from benchmarks.deployments import MARKS, WORLDS, World, line, settings
from benchmarks.posteriors import Known
from benchmarks.told import Told
from evenhand.exchange import SetPlan
from evenhand.files import replacing
from evenhand.games import IndependentCascade
from evenhand.lab.cells import Cell
from evenhand.lab.games import Setting, build_game
from evenhand.lab.paper.deployments import ORACLE
from evenhand.lab.paper.experiments import load_preset
from evenhand.lab.readings import Reading, condense
from evenhand.lab.store import SCHEMA, describe_machine, describe_versions
from evenhand.learners.sizes import size_shares
from evenhand.policy import clip_to_sum, fair_policy
from evenhand.randomness.streams import stream
from evenhand.typing import Floats

N_PRIOR = 40  # cascades of other seeds that stand for the prior
Conclude = Callable[[Told, int, int, np.random.Generator], Floats]


def show(
    setting: Setting,
    k: int,
    sizes: Floats,
    n: int,
    rng: np.random.Generator,
    noise: np.random.Generator,
) -> Told:
    """Draw n sets by the true merits and observe their rewards."""
    m, merit = setting.game.m, np.maximum(setting.known.merit, 0.0)
    scores = np.maximum(merit, 1e-9 * merit.max())
    parts, asked = list[Told](), 0
    while asked < n:
        rate = min(0.5, (1.0 + asked / m) ** (-1.0 / 3.0))
        policy = clip_to_sum(scores, rate * k / m, 1.0 - rate * (1.0 - k / m), k)
        count = min(max(m, asked // 4), n - asked)
        rows = SetPlan(len(parts), np.arange(m), k, policy, sizes, np.full(k, rate)).draw(
            count, rng
        )
        rewards = setting.game.pull(rows.orders, rows.sizes, noise)
        parts.append(Told(rows.orders, rows.sizes[:, 0], rewards[:, 0]))
        asked += count
    return Told(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def cascade_prior(world: World) -> Known:
    """The prior of the nodes of cascades of one kind, from some of another seed."""
    others: list[IndependentCascade] = []
    for one in settings(World(world.game | {"reference_sets": 1000}, world.k), 10**6, N_PRIOR):
        assert isinstance(one.game, IndependentCascade)
        others.append(one.game)
    return posteriors.prior_of(others, world.k)


def oracles(name: str, world: World) -> dict[str, Conclude]:
    """What posteriors there are for a kind of world, by what the oracle is called."""
    if name == "shop":
        return {ORACLE: posteriors.shop}
    uneven = partial(covering.cover, units=covering.UNITS)
    if name == "varied-cover":
        return {ORACLE: uneven}
    if name == "cover":
        return {
            ORACLE: covering.cover,
            "uneven": uneven,
            "smooth": noisy_or(posteriors.COVERED),
            "some nothing": noisy_or(posteriors.COVERED_OR_NOTHING, n=20_000),
        }
    exact = cascade_prior(world)
    if name == "varied-cascade":
        return {ORACLE: spreading(exact)}
    return {
        ORACLE: spreading(exact),
        "uneven": spreading(cascade_prior(WORLDS["varied-cascade"])),
        "smooth": spreading(posteriors.smoothed(exact)),
    }


def noisy_or(prior: posteriors.Clipped, n: int = 1500) -> Conclude:
    """Somebody who takes a game for a noisy-OR of arms drawn from this prior."""
    return lambda told, m, k, rng: posteriors.shop(told, m, k, rng, prior, n)


def spreading(prior: Known) -> Conclude:
    """Somebody who takes nodes to be drawn from this prior, independently."""
    return lambda told, m, k, rng: posteriors.cascade(told, m, prior, rng)


def reading(
    setting: Setting,
    k: int,
    conclude: Conclude,
    sizes: Floats,
    mark: int,
    seed: int,
    replication: int,
) -> Reading:
    """What the oracle says after so many rewards."""
    rng, noise = (stream(seed, replication, name) for name in ("learner", "environment"))
    told = show(setting, k, sizes, mark, rng, noise)
    return concluded(setting, k, conclude(told, setting.game.m, k, rng))


def concluded(setting: Setting, k: int, draws: Floats) -> Reading:
    """What draws (n, m) of the merits from a posterior say."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    merit, mean = np.maximum(setting.known.merit, 0.0), draws.mean(axis=0)
    spread = np.maximum(draws.std(axis=0), 1e-9)  # an arm of which all is known has none
    return Reading(k, merit, mean, spread, fair_policy(mean, k), low, high)


def keep(folder: Path, replications: int | None) -> None:
    """Write what the oracle says in the worlds of the preset; what is there already is kept."""
    path = folder / f"{ORACLE}.parquet"
    experiment = load_preset("rare-rewards").cut(inf, replications)
    kept = pl.read_parquet(path) if path.is_file() else pl.DataFrame(schema=SCHEMA)
    for panel in experiment.panels:
        if panel.late:  # the oracle has no plans that could be out of date
            continue
        world = World(panel.game, panel.k)
        name = next(name for name, one in WORLDS.items() if one == world)
        conclude = oracles(name, world)[ORACLE]
        for drawn in panel.lines:
            wanted = drawn.config.get("full"), drawn.config.get("sizes")
            sizes = size_shares(panel.k, *wanted)
            for cell in experiment.cells(panel, drawn):
                row = described(cell)
                if row["id"] in set(kept["id"]):
                    continue
                start = time.perf_counter()
                setting = build_game(
                    cell.game, cell.k, replication=cell.replication, seed=cell.seed
                )
                said = reading(
                    setting, cell.k, conclude, sizes, cell.horizon, cell.seed, cell.replication
                )
                row |= {name: x.tolist() for name, x in said._asdict().items() if name != "k"}
                row |= {"m": setting.game.m, "seconds": time.perf_counter() - start}
                kept = pl.concat([kept, pl.DataFrame([row], schema=SCHEMA)])
                with replacing(path) as file:
                    kept.write_parquet(file, compression="zstd")
                print(f"{name} {cell.horizon} {cell.replication}", flush=True)


def described(cell: Cell) -> dict[str, Any]:
    """The columns of a result that say what it is: a cell's, of the oracle."""
    learner = cell.learner | {"kind": ORACLE}
    columns = {
        "game": json.dumps(cell.game, sort_keys=True),
        "k": cell.k,
        "learner": json.dumps(learner, sort_keys=True),
        "horizon": cell.horizon,
        "replication": cell.replication,
        "seed": cell.seed,
        "late": 0,
    }
    key = json.dumps(columns, sort_keys=True)
    return columns | {
        "id": hashlib.sha256(key.encode()).hexdigest()[:20],
        "key": key,
        "queries": cell.horizon,
        **dict.fromkeys(("regret", "regret_uncapped", "alignment", "largest_due"), nan),
        "machine": describe_machine(),
        "versions": describe_versions(),
    }


def main() -> None:
    """Print one line per kind of world and mark, as for a learner; or keep results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", help=f"of {', '.join(WORLDS)}")
    parser.add_argument("--worlds", dest="n", type=int, default=6, help="worlds of each kind")
    parser.add_argument("--base-seed", type=int, default=900)
    parser.add_argument("--marks", type=float, nargs="+", default=MARKS)
    parser.add_argument("--full", type=float, help="share of full sets")
    parser.add_argument("--results", type=Path, help="folder to keep the preset's worlds in")
    parser.add_argument("--replications", type=int, help="keep at most so many of them")
    given = parser.parse_args()
    if unknown := set(given.worlds) - set(WORLDS):
        parser.error(f"unknown worlds {sorted(unknown)}; choose from {', '.join(WORLDS)}")
    if given.results is not None:
        keep(given.results, given.replications)
    for name in given.worlds:
        world, start = WORLDS[name], time.perf_counter()
        sizes = size_shares(world.k, given.full, None)
        built = settings(world, given.base_seed, given.n)
        for called, conclude in oracles(name, world).items():
            for mark in map(round, given.marks):
                found = [
                    reading(s, world.k, conclude, sizes, mark, given.base_seed, r)
                    for r, s in enumerate(built, 1)
                ]
                shown = f"{name:8s} {called:12s} {mark:6d}  {line(condense(found))}"
                print(f"{shown}  ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()

"""Independent cascades: ours, CyNetDiff's, and a plain compiled loop that tosses coins."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.baselines import coin_cascades
from benchmarks.harness import Section, alternate, faster, plain_table
from evenhand.datasets import facebook_graph, facebook_stand_in
from evenhand.games import IndependentCascade
from evenhand.typing import Ints

P, N_SEEDS = 0.1, 10


def influence() -> tuple[IndependentCascade, str]:
    """The Facebook cascade and its name, or the stand-in's where the file is missing."""
    try:
        graph = facebook_graph()
    except FileNotFoundError:
        graph = facebook_stand_in()
    return IndependentCascade(graph, p=P), graph.name


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    cascade, name = influence()
    n = 200 if small else 50_000
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(cascade.m)[:N_SEEDS] for _ in range(n)])
    works = {
        "evenhand": _ours(cascade, orders),
        "a coin an arc, compiled (`benchmarks/baselines.py`)": _coins(cascade, orders),
    }
    try:
        works |= _cynetdiff(cascade, orders)
        missing = []
    except ImportError:
        missing = ["CyNetDiff"]
    means = {label: float(np.mean(work())) for label, work in works.items()}
    pairs = [(work, n) for work in works.values()]
    ours, *others = alternate(*pairs, times=3 if small else 7)
    work = f"{N_SEEDS}-seed cascade, p = {P}, {name}, one core"
    rows = [
        faster(work, label, ours, theirs, 15 if label.startswith("CyNetDiff") else None)
        for label, theirs in zip(list(works)[1:], others, strict=True)
    ]
    rows += [faster(work, label, ours, "not installed", 15) for label in missing]
    agree = plain_table(
        ["who", "mean number of active nodes"], [[k, f"{v:.2f}"] for k, v in means.items()]
    )
    text = f"The same law, seen from the means of {n} cascades from the same seeds:\n\n{agree}"
    return Section(rows, text, ("cynetdiff",))


def _ours(cascade: IndependentCascade, orders: Ints) -> Callable[[], Any]:
    rng, sizes = np.random.default_rng(2), np.full((len(orders), 1), N_SEEDS)
    return lambda: cascade.pull(orders, sizes, rng) * cascade.m


def _coins(cascade: IndependentCascade, orders: Ints) -> Callable[[], Any]:
    rng, arcs = np.random.default_rng(2), cascade.arcs
    return lambda: coin_cascades(arcs.starts, arcs.targets, P, orders, rng)


def _cynetdiff(cascade: IndependentCascade, orders: Ints) -> dict[str, Callable[[], Any]]:
    """CyNetDiff one cascade at a time, and many from the same seeds inside its compiled loop."""
    from cynetdiff.models import IndependentCascadeModel

    starts = cascade.arcs.starts[:-1].astype(np.uint32)
    targets = cascade.arcs.targets.astype(np.uint32)
    model = IndependentCascadeModel(starts, targets, activation_prob=P, rng=2)
    seeds = orders.tolist()

    def one_by_one() -> list[int]:
        counts = []
        for row in seeds:
            model.set_seeds(row)
            model.advance_until_completion()
            counts.append(model.get_num_activated_nodes())
        return counts

    trials = 50
    groups = seeds[: len(seeds) // trials]

    def inside() -> list[float]:
        return [model.compute_marginal_gains(row, [], trials)[0] for row in groups]

    return {
        "CyNetDiff, new seeds every cascade": one_by_one,
        f"CyNetDiff, {trials} cascades a call from the same seeds": inside,
    }

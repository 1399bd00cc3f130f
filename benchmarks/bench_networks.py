"""Merits of all nodes of a large network: ours, in threads and on a card, and what others offer."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.alone import peak_memory
from benchmarks.harness import (
    ROOT,
    Row,
    Section,
    Times,
    clock,
    faster,
    in_words,
    number,
    plain_table,
    spread_row,
)
from evenhand.games import CudaCascade, IndependentCascade
from evenhand.merit import Estimate, reverse_reachable
from evenhand.typing import Floats, Ints

M, ARCS, K = 10**6, 10**7, 50
TOP, ERROR = 1000, 0.01  # nodes whose merits shall be known, and their largest standard error
WORKERS = 2
SUBSIM = "EVENHAND_SUBSIM"  # the program of github.com/qtguo/subsim
STRICT = -0.15  # its epsilon: a bound it reaches after some 1e5 sets here


def network(m: int, n_arcs: int, seed: int = 1) -> tuple[Ints, Floats]:
    """Arcs of a directed Chung-Lu graph with tails of exponent 2.5 both ways, and their chances.

    Into a node with d arcs each of them carries with chance 1 / d, the weighted cascade.
    """
    rng = np.random.default_rng(seed)
    weights = (np.arange(m) + 10.0) ** (-1 / 1.5)
    into, out = (rng.multinomial(n_arcs, weights / weights.sum()) for _ in range(2))
    targets = np.repeat(np.arange(m), into)
    sources = rng.permutation(np.repeat(rng.permutation(m), out))
    return np.stack([sources, targets], axis=1), 1.0 / into[targets]


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    m, n_arcs = (500, 3000) if small else (M, ARCS)
    found = in_a_process(m, n_arcs, small)
    work = f"merits of {m:.0e} nodes, {n_arcs:.0e} arcs, K = {K}, {ERROR:.0%} on the top {TOP}"
    each = Times([found["processor"] / found["sets"]])
    rows = [
        spread_row(f"{work}: time on {WORKERS} cores", "", "", "", [found["wall"]], unit="s"),
        spread_row(f"{work}: peak memory", "", "", "", [found["peak"]], unit="MB"),
        _cynetdiff(work, Times([found["processor"]]), m, n_arcs, small),
        _subsim(f"a reverse-reachable set, {m:.0e} nodes", each, m, n_arcs),
    ]
    shown = [
        ["reverse-reachable sets", number(found["sets"])],
        ["wall clock", in_words(found["wall"])],
        ["processor time", in_words(found["processor"])],
        ["peak memory of the process, graph and libraries included", f"{found['peak']:.0f} MB"],
        ["of which before merits were asked for", f"{found['before']:.0f} MB"],
        ["largest standard error of the top nodes", f"{found['largest']:.2%}"],
        ["their mean standard error", f"{found['mean']:.2%}"],
        ["distance from an independent estimate, in standard errors", f"{found['distance']:.2f}"],
    ]
    text = (
        "A generated network (`benchmarks/bench_networks.py`): weighted cascade on a Chung-Lu "
        "graph. Two sets per node say how many are needed for the goal; time is that of drawing "
        "these, the graph being read. CyNetDiff simulates forwards: of a sample of the top "
        "nodes, named to it beforehand, the gain of joining a random set, as often as the goal "
        "needs by the variance seen; extrapolated to all of the top. SUBSIM draws the same sets "
        "but for another purpose, 50 seeds of most reach, keeps them, and credits nobody; "
        "compared is the time per set.\n\n" + plain_table(["what", "measured"], shown)
    )
    return Section(rows, text, ("cynetdiff",))


def in_a_process(m: int, n_arcs: int, small: bool) -> dict[str, float]:
    """Measure in a process of its own, for the sake of its memory."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_networks", str(m), str(n_arcs), str(int(small))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def measure(m: int, n_arcs: int, small: bool) -> dict[str, float]:
    """Merits as accurate as the goal asks, and what they cost."""
    game = IndependentCascade(*_as_arguments(m, n_arcs))
    _ = game.reversed_arcs
    before = peak_memory()
    first = _merits(game, 2 * m, 1)()
    n_sets = 2 * m if small else enough(first)
    found: list[Estimate] = []
    start = time.perf_counter()
    processor = clock(lambda: found.append(_merits(game, n_sets, 2)()))
    took = time.perf_counter() - start
    return {
        "sets": found[0].queries,
        "wall": took,
        "processor": processor,
        "before": before,
        "peak": peak_memory(),
        **accuracy(found[0], first),
    }


def _as_arguments(m: int, n_arcs: int) -> tuple[Ints, int, Floats]:
    edges, chances = network(m, n_arcs)
    return edges, m, chances


def _merits(game: IndependentCascade, n_sets: int, seed: int) -> Callable[[], Estimate]:
    rng = np.random.default_rng(seed)
    return lambda: reverse_reachable(game, K, n_sets, rng, workers=WORKERS)


def enough(pilot: Estimate) -> int:
    """Sets after which the largest error of the top nodes is as small as asked, in whole rounds."""
    largest = float(_errors(pilot, pilot).max())
    m = len(pilot.merit)
    return -(-round(pilot.queries * (largest / ERROR) ** 2) // m) * m


def _errors(found: Estimate, ranking: Estimate) -> Floats:
    top = np.argsort(-ranking.merit)[:TOP]
    return found.stderr[top] / found.merit[top]


def accuracy(found: Estimate, other: Estimate) -> dict[str, float]:
    """Standard errors of the top nodes, and how far they are from an independent estimate."""
    top = np.argsort(-found.merit)[:TOP]
    errors = _errors(found, found)
    apart = (found.merit - other.merit)[top] / np.hypot(found.stderr, other.stderr)[top]
    return {
        "largest": float(errors.max()),
        "mean": float(errors.mean()),
        "distance": float(np.sqrt(np.mean(apart**2))),
    }


def _cynetdiff(work: str, ours: Times, m: int, n_arcs: int, small: bool) -> Row:
    """Row of the time CyNetDiff would take, extrapolated from a sample of the top nodes."""
    peer = f"CyNetDiff, for the top {TOP} alone, extrapolated"
    try:
        from cynetdiff.models import IndependentCascadeModel
    except ImportError:
        return faster(work, peer, ours, "not installed")
    edges, chances = network(m, n_arcs)
    game = IndependentCascade(edges, m, chances)
    ranking = reverse_reachable(game, K, 50 if small else m // 2, np.random.default_rng(1))
    top = np.argsort(-ranking.merit)[:TOP]
    arcs, rng = game.arcs, np.random.default_rng(2)
    model = IndependentCascadeModel(
        arcs.starts[:-1].astype(np.uint32),
        arcs.targets.astype(np.uint32),
        activation_probs=arcs.chances.astype(np.float32),
        rng=3,
    )
    trials = 20 if small else 1000
    gains = np.empty(trials)

    def play() -> None:
        for i in range(trials):
            node = int(top[i % len(top)])
            row = rng.choice(m, min(m, K + 1), replace=False)
            before = row[row != node][: rng.integers(K)].tolist()
            gains[i] = model.compute_marginal_gains(before, [node], 1)[1]

    seconds = clock(play) / trials
    spread = float(
        np.var(gains / np.maximum(m * ranking.merit[top[np.arange(trials) % len(top)]], 1))
    )
    needed = TOP * spread / ERROR**2
    return faster(work, peer, ours, Times([seconds * needed]), None)


def _subsim(work: str, ours: Times, m: int, n_arcs: int) -> Row:
    """Row of the time SUBSIM takes per set."""
    peer, program = "SUBSIM (C++)", os.environ.get(SUBSIM)
    if program is None:
        return faster(work, peer, ours, "not installed")
    with tempfile.TemporaryDirectory() as folder:
        edges = network(m, n_arcs)[0]
        np.savetxt(Path(folder) / "graph", edges, fmt="%d", header=f"{m} {len(edges)}", comments="")
        shared = [program, "-gname=graph", f"-dir={folder}", f"-outpath={folder}"]
        subprocess.run([*shared, "-func=format", "-pdist=wc"], check=True, capture_output=True)
        found = []
        for _ in range(3):
            asked = [*shared, "-func=im", f"-seedsize={K}", f"-eps={STRICT}"]
            said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
            (seconds,) = re.findall(r"Time for RR sets and greedy: ([\d.e+-]+)", said)
            found.append(float(seconds) / int(re.findall(r"#RR sets: (\d+)", said)[-1]))
    return faster(work, peer, ours, Times(found))


def on_card(m: int = M, n_arcs: int = ARCS) -> str:
    """Table of the same merits on a card, for the section of the card."""
    game = CudaCascade(*_as_arguments(m, n_arcs))
    first = _merits(game, 2 * m, 1)()  # compiles, too
    n_sets = enough(first)
    seconds, found = [], first
    for seed in (2, 3, 4):
        start = time.perf_counter()
        found = _merits(game, n_sets, seed)()
        seconds.append(time.perf_counter() - start)
    said = accuracy(found, first)
    rows = [
        ["reverse-reachable sets", number(n_sets)],
        ["wall clock", str(Times(seconds))],
        ["sets a second", f"{n_sets / Times(seconds).median:.3g}"],
        ["largest standard error of the top nodes", f"{said['largest']:.2%}"],
        ["distance from an independent estimate, in standard errors", f"{said['distance']:.2f}"],
    ]
    note = f"The network of {m} nodes and {n_arcs} arcs of the section on networks, K = {K}.\n\n"
    return "### Merits in a large network\n\n" + note + plain_table(["what", "measured"], rows)


def main(arguments: list[str]) -> None:
    """Measure in this process, or on a card."""
    if arguments == ["card"]:
        print(on_card())
    else:
        m, n_arcs, small = map(int, arguments)
        print(json.dumps(measure(m, n_arcs, bool(small))))


if __name__ == "__main__":
    main(sys.argv[1:])

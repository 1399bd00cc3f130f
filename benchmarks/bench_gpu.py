"""Cascades on an NVIDIA card: by seed-set size, reverse-reachable sets, whole runs, the floor.

Runs only by name, ``python -m benchmarks gpu``. Seconds here are wall-clock seconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench_networks import on_card
from benchmarks.bench_runs import EVEN_HAND
from benchmarks.bench_runs import FAIR_CASCADE as FAIR
from benchmarks.harness import Row, Section, Times, repeat, seconds_row, table, wall
from evenhand import fair_policy, merit, simulate
from evenhand.datasets import facebook_graph, facebook_stand_in
from evenhand.games import CudaCascade, Game, Graph, IndependentCascade
from evenhand.lab.learners import build_learner
from evenhand.randomness.streams import stream
from evenhand.typing import Floats, Ints

K, P = 10, 0.1
N = 2**20  # cascades of a measurement
GOAL, GOAL_EVEN_HAND = 5.0, 15.0  # seconds of a whole run
BIG = (10**6, 10**7)  # nodes and edges
WORD_RATE = 64 / 20 * 4  # words a cycle and multiprocessor: 64 multiplications, 20 for 4 words


def readings() -> dict[str, Graph]:
    """The Facebook graph, or its stand-in, as listed and both ways."""
    try:
        graph = facebook_graph()
    except FileNotFoundError:
        graph = facebook_stand_in()
    return {"as listed": graph, "both ways": graph.both_ways()}


def some_orders(m: int, n: int, seed: int = 1) -> Ints:
    """Ordered sets of K distinct arms; a few thousand of them, again and again."""
    rng = np.random.default_rng(seed)
    some = np.array([rng.permutation(m)[:K] for _ in range(min(n, 4096))])
    return np.tile(some, (-(-n // len(some)), 1))[:n]


def pulls(game: Game, orders: Ints, sizes: Ints) -> Callable[[], object]:
    """Work to be timed: the whole of a pull."""
    rng = np.random.default_rng(1)
    return lambda: game.pull(orders, sizes, rng)


def merits(game: IndependentCascade, n: int) -> Callable[[], object]:
    """Work to be timed: the whole of an estimate from n sets."""
    rng = np.random.default_rng(1)
    return lambda: merit.reverse_reachable(game, K, n, rng)


def busy(game: CudaCascade, work: Callable[[], Any]) -> Callable[[], float]:
    """Seconds the card itself is busy with some work, by its own clock."""
    cupy = game._forward.cupy

    def timed() -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3

    return timed


def kernel_times(game: CudaCascade, orders: Ints, sizes: Ints, times: int = 7) -> Times:
    """Seconds of the launch alone, orders and sizes lying on the card."""
    arcs = game._forward
    send = arcs.cupy.asarray
    (n, k), s = orders.shape, sizes.shape[1]
    keys = np.random.default_rng(1).integers(0, 2**64, size=n, dtype=np.uint64)
    places = (send(keys), send(orders.astype(arcs.arm)), send(sizes.astype(arcs.arm)))
    counts = arcs.cupy.empty((n, s), arcs.arm)
    shape = (np.uint32(k), np.uint32(s), np.bool_(False))
    timed = busy(game, lambda: arcs._launch("pull", n * s, *places, counts, *shape))
    timed()
    return Times([timed() for _ in range(times)])


def by_size() -> str:
    """Cascades a second by the number of seeds."""
    rows = []
    for name, graph in readings().items():
        card, plain = CudaCascade(graph, p=P), IndependentCascade(graph, p=P)
        for label, sizes in [(str(s), [s]) for s in (1, 2, 5, 10)] + [("1 to 10", range(1, 11))]:
            n = N // len(sizes)
            orders, asked = some_orders(graph.m, n), np.tile(sizes, (n, 1))
            kernel = kernel_times(card, orders, asked)
            few = max(1, 5000 // len(sizes))
            whole = repeat(pulls(card, orders, asked), 7, timer=wall)
            cpu = repeat(pulls(plain, orders[:few], asked[:few]), 3, timer=wall)
            mean = float(card.pull(orders, asked, np.random.default_rng(1)).mean()) * graph.m
            rates = [rate(n * len(sizes), kernel), rate(n * len(sizes), whole)]
            rows.append([name, label, f"{mean:.1f}", *rates, rate(few * len(sizes), cpu)])
    return table(
        "Cascades a second",
        f"p = {P}, {N} cascades a call. The card alone; the whole of `pull`, from checking its "
        "arguments to rewards in the host's memory; one core of the host.",
        ["graph", "seeds", "mean reached", "card alone", "`CudaCascade.pull`", "one core"],
        rows,
    )


def by_batch() -> str:
    """Time of a pull by the size of the batch."""
    rows = []
    for name, graph in readings().items():
        card = CudaCascade(graph, p=P)
        for n in (1, 10, 100, 1000, 6553):
            orders, asked = some_orders(graph.m, n), np.tile(np.arange(1, K + 1), (n, 1))
            kernel = kernel_times(card, orders, asked)
            whole = repeat(pulls(card, orders, asked), 21, timer=wall)
            rows.append([name, str(n * K), str(kernel), str(whole)])
    return table(
        "A pull by the size of its batch",
        "All ten prefixes of each row; a learner's batch has at most 65530 queries.",
        ["graph", "queries", "card alone", "`CudaCascade.pull`"],
        rows,
    )


def reverse() -> str:
    """Reverse-reachable sets a second."""
    rows = []
    for name, graph in readings().items():
        card, plain = CudaCascade(graph, p=P), IndependentCascade(graph, p=P)
        n, few = 20_000_000, 200_000
        ours, cpu = (
            repeat(merits(card, n), 7, timer=wall),
            repeat(merits(plain, few), 3, timer=wall),
        )
        rows.append([name, str(ours), rate(n, ours), rate(few, cpu)])
    return table(
        "Reverse-reachable merits",
        "The reference of the experiments, 20 million sets, to values and standard errors.",
        ["graph", "time", "sets a second", "sets a second, one core"],
        rows,
    )


def one_run(learner: dict[str, Any], game: Game, target: Floats, horizon: int) -> float:
    """Seconds of one simulation."""
    made = build_learner(learner, game.m, K, horizon, stream(1, 1, "learner"))
    seed = stream(1, 1, "environment")
    return simulate(made, game, horizon, target=target, seed=seed).seconds


def whole_runs() -> tuple[list[Row], str]:
    """IW-KSVFair and EvenHand from the first query to the last."""
    found, rows = [], []
    for name, graph in readings().items():
        card, plain = CudaCascade(graph, p=P), IndependentCascade(graph, p=P)
        reference = merit.reverse_reachable(card, K, 2_000_000, stream(1, 0, "reference"))
        target = fair_policy(reference.merit, K)
        for learner, game in ((FAIR, card), (FAIR, plain), (EVEN_HAND["as it comes"], card)):
            one_run(learner, game, target, 10**4)
        learners = {"IW-KSVFair": FAIR} | EVEN_HAND
        times: dict[str, Times] = {how: Times([]) for how in learners}
        for _ in range(3):  # in turns, as hosts are not always equally fast
            for how, learner in learners.items():
                times[how].seconds.append(one_run(learner, card, target, 10**8))
        ours = times["IW-KSVFair"]
        small, cpu = Times([]), Times([])
        for _ in range(3):  # in turns, the same work
            small.seconds.append(one_run(FAIR, card, target, 10**6))
            cpu.seconds.append(one_run(FAIR, plain, target, 10**6))
        where = f"with cascades on a card, Facebook {name}, T = 1e8, whole run"
        found.append(seconds_row(f"IW-KSVFair {where}", "the paper's 1500 s", ours, GOAL))
        for how in EVEN_HAND:
            work = f"EvenHand, {how}, {where}"
            found.append(seconds_row(work, f"IW-KSVFair, {ours}", times[how], GOAL_EVEN_HAND))
        rows.append([name, str(ours), str(small), str(cpu)])
    return found, table(
        "Whole IW-KSVFair runs, M = 534, K = 10",
        "Drawing, weighing, cascades, learning and the record of regret and selections; the "
        "paper's run at T = 1e8 took 1500 s.",
        ["graph", "T = 1e8, card", "T = 1e6, card", "T = 1e6, one core, no card"],
        rows,
    )


def large() -> str:
    """A random graph that no shared memory holds."""
    m, n_edges = BIG
    edges = np.random.default_rng(1).integers(0, m, size=(n_edges, 2))
    orders, asked = some_orders(m, 2**15, seed=2), np.full((2**15, 1), K)
    rows = []
    for p, few in ((0.05, 500), (0.12, 5)):
        card, plain = CudaCascade(edges, m, p), IndependentCascade(edges, m, p)
        reached = float(card.pull(orders, asked, np.random.default_rng(3)).mean()) * m
        ours = repeat(pulls(card, orders, asked), 3, timer=wall)
        cpu = repeat(pulls(plain, orders[:few], asked[:few]), 3, timer=wall)
        rows.append([f"{p}", f"{reached:.0f}", rate(len(orders), ours), rate(few, cpu)])
    return table(
        f"A random graph of {m} nodes and {n_edges} edges",
        "Ten seeds, in global memory, a warp for each cascade.",
        ["p", "mean reached", "cascades a second", "one core"],
        rows,
    )


def needed(graph: Graph, size: int, n: int = 2000) -> tuple[float, float]:
    """Random words that a cascade of so many seeds needs, and those drawn in blocks of four."""
    arcs = IndependentCascade(graph, p=P).arcs
    rng = np.random.default_rng(1)
    words = drawn = 0
    for seeds in some_orders(graph.m, n)[:, :size].tolist():
        reached, queue = set(seeds), list(seeds)
        while queue:
            node = queue.pop()
            here = arcs.targets[arcs.starts[node] : arcs.starts[node + 1]]
            live = np.flatnonzero(rng.random(len(here)) < P)
            if len(here):
                used = len(live) + (not len(live) or live[-1] < len(here) - 1)
                words, drawn = words + used, drawn + 4 * -(-used // 4)
            for target in here[live].tolist():
                if target not in reached:
                    reached.add(target)
                    queue.append(target)
    return words / n, drawn / n


def floor() -> str:
    """How fast the card could make the random words and move the bytes alone."""
    rows = []
    for name, graph in readings().items():
        card = CudaCascade(graph, p=P)
        cupy = card._forward.cupy
        clock = cupy.cuda.Device().attributes["ClockRate"] * 1e3
        best = clock * card._forward.gpu.multiprocessors * WORD_RATE
        for size in (1, 10):
            words, drawn = needed(graph, size)
            orders, asked = some_orders(graph.m, N), np.full((N, 1), size)
            got = N / kernel_times(card, orders, asked).median
            rates = [f"{best / drawn:.3g}", f"{got:.3g}", f"{best / drawn / got:.2g}"]
            rows.append([name, str(size), f"{words:.0f}", f"{drawn:.0f}", *rates])
    return table(
        "How far from the floor",
        "A word decides one skip. Philox makes four of them with 20 multiplications, of which a "
        "multiprocessor does 64 a cycle: the most cascades a second if all else were free. "
        "Bytes are no limit: a row of ten queries takes 48 in and 20 out.",
        ["graph", "seeds", "words needed", "words drawn", "floor", "card alone", "distance"],
        rows,
    )


def rate(n: int, times: Times) -> str:
    """Units a second, with the range."""
    low, high = n / max(times.seconds), n / min(times.seconds)
    return f"{n / times.median:.3g} ({low:.3g} to {high:.3g})"


def run() -> Section:
    """Return the section of the results page."""
    rows, runs = whole_runs()
    text = [by_size(), by_batch(), reverse(), runs, large(), on_card(), floor()]
    return Section(rows, "\n".join(text), ("cupy-cuda13x", "cupy-cuda12x"))

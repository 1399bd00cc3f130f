"""Merits of slow functions: what workers cost and what they bring, beside joblib's own loop.

Times here are of the clock on the wall: waiting is what it is about.
"""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from typing import Any

from benchmarks.harness import Row, Section, in_words, spread_row, wall
from evenhand import kshapley
from evenhand.games import SetFunction

WORKERS = 2
OVERHEAD, SPEED_UP = 1.10, 1.8  # goals


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    times = 1 if small else 5
    works: list[tuple[str, Callable[..., float], float, int, int]] = [
        ("sleeps for 1 ms", sleeping, 0.001, 5 if small else 30, 2 if small else 3),
        ("sleeps for 10 ms", sleeping, 0.010, 3 if small else 12, 2 if small else 3),
        ("computes for 10 ms", computing, 0.010, 3 if small else 12, 2 if small else 3),
    ]
    rows = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for name, f, seconds, m, k in works:
            rows += compared(name, partial(f, seconds), m, k, pool, times)
    text = (
        f"Exact merits by {WORKERS} processes, warmed up. Overhead: the time taken times "
        f"{WORKERS}, over that of the bare calls in a loop; speed-up: the time of that loop over "
        "the time taken, which for a function that computes is bounded by what two cores give two "
        "bare loops at that moment, the last rows. joblib runs `Parallel(2)` over the same sets."
    )
    return Section(rows, text, ("joblib",))


def compared(name: str, f: Any, m: int, k: int, pool: Any, times: int) -> list[Row]:
    """Rows of one function: bare calls, workers and joblib in turns."""
    sets = [frozenset(s) for size in range(1, k + 1) for s in combinations(range(m), size)]
    game = SetFunction.per_set(f, m)

    def bare() -> None:
        for one in sets:
            f(one)

    kshapley(game, 1, executor=pool, progress=False)  # imports and compiles, there and here
    kshapley(game, 2, executor=pool, progress=False)
    joblib_loop, halves = in_joblib(f, sets), in_halves(f, sets, pool)
    rounds = []
    for _ in range(times):
        taken = [wall(bare), wall(partial(kshapley, game, k, executor=pool, progress=False))]
        taken += [wall(joblib_loop) if joblib_loop else float("nan"), wall(halves)]
        rounds.append(taken)
    work = f"exact merits of {len(sets)} sets, a function that {name}, {WORKERS} workers"
    shown = f"{in_words(min(r[1] for r in rounds))} at best"
    loop = f"{in_words(min(r[0] for r in rounds))} at best"
    best = None if "computes" in name else SPEED_UP if "10" in name else None
    rows = [
        spread_row(
            f"{work}: overhead",
            "bare calls",
            shown,
            loop,
            [WORKERS * r[1] / r[0] for r in rounds],
            OVERHEAD if "1 ms" in name else None,
            unit="of them",
            at_least=False,
        ),
        spread_row(
            f"{work}: speed-up", "bare calls", shown, loop, [r[0] / r[1] for r in rounds], best
        ),
        spread_row(
            f"{work}: speed-up of two bare loops",
            "bare calls",
            "",
            loop,
            [r[0] / r[3] for r in rounds],
        ),
    ]
    if joblib_loop is None:
        return [*rows, Row(work, "joblib", shown, "not installed")]
    theirs = f"{in_words(min(r[2] for r in rounds))} at best"
    return [*rows, spread_row(work, "joblib", shown, theirs, [r[2] / r[1] for r in rounds])]


def in_joblib(f: Any, sets: list[frozenset[int]]) -> Callable[[], Any] | None:
    """Return joblib's loop over the same calls, warmed up; None where it is not installed."""
    try:
        from joblib import Parallel, delayed
    except ImportError:
        return None
    parallel = Parallel(WORKERS)

    def loop() -> Any:
        return parallel(delayed(f)(one) for one in sets)

    parallel(delayed(f)(one) for one in sets[:20])
    return loop


def in_halves(f: Any, sets: list[frozenset[int]], pool: Any) -> Callable[[], Any]:
    """Return two bare loops, one per process: what the machine gives at most."""

    def halves() -> None:
        half = (len(sets) + 1) // 2
        for future in [pool.submit(call_all, f, part) for part in (sets[:half], sets[half:])]:
            future.result()

    return halves


def call_all(f: Any, sets: list[frozenset[int]]) -> None:
    for one in sets:
        f(one)


def sleeping(seconds: float, arms: frozenset[int]) -> float:
    time.sleep(seconds)
    return len(arms) / 100


def computing(seconds: float, arms: frozenset[int]) -> float:
    total = 0.0
    for i in range(int(seconds * 2.5e7)):  # some 40 ns each
        total += i
    return len(arms) / 100 + 0.0 * total

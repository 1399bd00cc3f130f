"""How far the scalable design is from the enumerated one, set by set (the paper's figure 3)."""

import json
import os
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy
from evenhand.games import synthetic
from evenhand.learners import IWKSVFair
from evenhand.streams import stream
from evenhand.typing import Floats, Ints, compiled

LOWEST, PER_DECADE = -24, 10  # the histogram's first edge, as a power of ten, and its resolution
N_BINS = -LOWEST * PER_DECADE + 1  # one more for what lies below


class Differences:
    """Absolute differences streamed into a histogram."""

    def __init__(self) -> None:
        self.counts = np.zeros(N_BINS, np.int64)
        self.n = self.n_zero = 0
        self.total = self.largest = 0.0

    def add(self, one: Floats, other: Floats, n_sets: int) -> None:
        """Add the differences of two laws; sets that neither lists have probability 0 in both."""
        zero, total, largest = _bin(np.abs(one - other), self.counts)
        self.n += n_sets
        self.n_zero += zero + n_sets - len(one)
        self.total += total
        self.largest = max(self.largest, largest)

    def record(self) -> dict[str, Any]:
        """Return what was counted, with the median of the positive ones to a tenth of a decade."""
        running = np.cumsum(self.counts)
        middle = int(np.searchsorted(running, running[-1] / 2))
        return {
            "counts": self.counts.tolist(),
            "n": self.n,
            "zero": self.n_zero,
            "below": int(self.counts[0]),
            "mean": self.total / max(1, self.n),
            "median": float(10.0 ** (LOWEST + (middle - 0.5) / PER_DECADE)),
            "largest": self.largest,
        }


def write_differences(
    folder: Path, progress: Callable[[int], object] | None = None, updates: int = 100_000
) -> Path:
    """Compare the designs as the paper's figure 3 does and keep the result, unless it is there."""
    path = folder / "differences.json"
    if not path.is_file():
        record = design_differences(updates, progress=progress)
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(record))
        part.replace(path)
    return path


def design_differences(
    updates: int,
    m: int = 20,
    k: int = 5,
    horizon: int = 10**6,
    gamma: float = 0.8,
    seed: int = 1,
    replication: int = 1,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Any]:
    """Compare both designs, given the same policies, along a run of exact IW-KSVFair.

    The run refreshes its policy every round; its first ``updates`` policies are used.
    """
    game = synthetic(m, stream(seed, replication, "instance"))
    rng = stream(seed, replication, "learner")
    learner = IWKSVFair(
        m, k, horizon, gamma=gamma, design=EnumeratedMaxEntropy, growth=0.0, seed=rng
    )
    noise = stream(seed, replication, "environment")
    found, scalable = Differences(), None
    for n in range(updates):
        if progress is not None:
            progress(n)
        policy = learner._policy()
        batch = learner.ask()
        assert learner._mixture is not None
        exact = learner._mixture.design
        assert isinstance(exact, EnumeratedMaxEntropy)
        if scalable is None:
            scalable = ConditionalPoisson.fit(policy)
        else:
            scalable = scalable.refit(policy)
        found.add(exact.probabilities, np.exp(scalable.log_prob(exact.sets)), comb(m, k))
        learner.tell(batch, game.pull(batch.orders, batch.sizes, noise))
    return found.record()


@compiled
def _bin(differences: Floats, counts: Ints) -> tuple[int, float, float]:
    """Count differences into bins; returns how many are 0, their sum and the largest."""
    zero, total, largest = 0, 0.0, 0.0
    for d in differences:
        total += d
        largest = max(largest, d)
        if d == 0.0:
            zero += 1
            continue
        place = int(np.floor((np.log10(d) - LOWEST) * PER_DECADE)) + 1
        counts[min(max(place, 0), N_BINS - 1)] += 1
    return zero, total, largest

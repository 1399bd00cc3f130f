"""How far the scalable design is from the enumerated one, set by set (the paper's figure 3)."""

import json
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy
from evenhand.files import replacing
from evenhand.games import synthetic
from evenhand.learners import IWKSVFair
from evenhand.randomness.streams import stream
from evenhand.storage import read_arrays, write_arrays
from evenhand.typing import Floats, Ints, compiled

LOWEST, PER_DECADE = -24, 10  # the histogram's first edge, as a power of ten, and its resolution
N_BINS = -LOWEST * PER_DECADE + 1  # one more for what lies below
KEPT_EVERY = 1000  # updates


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


class Comparison:
    """Both designs given the same policies, along a run of exact IW-KSVFair.

    The run refreshes its policy every round; every policy is compared.
    """

    def __init__(
        self, m: int = 20, k: int = 5, horizon: int = 10**6, gamma: float = 0.8, seed: int = 1
    ) -> None:
        self.game = synthetic(m, stream(seed, 1, "instance"))
        self.noise = stream(seed, 1, "environment")
        self.learner = IWKSVFair(
            m,
            k,
            horizon,
            gamma=gamma,
            design=EnumeratedMaxEntropy,
            growth=0.0,
            seed=stream(seed, 1, "learner"),
        )
        self.scalable: ConditionalPoisson | None = None
        self.found = Differences()
        self.updates = 0

    def step(self) -> None:
        """Compare the designs of one policy, and let the learner play a round with it."""
        policy = self.learner._policy()
        batch = self.learner.ask()
        assert self.learner._mixture is not None
        exact = self.learner._mixture.design
        assert isinstance(exact, EnumeratedMaxEntropy)
        if self.scalable is None:
            self.scalable = ConditionalPoisson.fit(policy)
        else:
            self.scalable = self.scalable.refit(policy)
        n_sets = comb(self.learner.m, self.learner.k)
        self.found.add(exact.probabilities, np.exp(self.scalable.log_prob(exact.sets)), n_sets)
        self.learner.tell(batch, self.game.pull(batch.orders, batch.sizes, self.noise))
        self.updates += 1

    def save(self, path: Path) -> None:
        """Write everything the comparison needs to go on."""
        assert self.scalable is not None
        snapshot = self.learner.snapshot()
        arrays = {f"learner_{name}": array for name, array in snapshot.pop("arrays").items()}
        arrays |= {f"scalable_{name}": array for name, array in self.scalable.warm_state().items()}
        found = {name: value for name, value in vars(self.found).items() if name != "counts"}
        values = {
            "learner": snapshot,
            "noise": self.noise.bit_generator.state,
            "found": found,
            "updates": self.updates,
        }
        write_arrays(path, {**arrays, "counts": self.found.counts}, values)

    def load(self, path: Path) -> None:
        """Go on from what :meth:`save` wrote."""
        arrays, values = read_arrays(path)
        parts: dict[str, dict[str, Any]] = {"learner": {}, "scalable": {}}
        for name, array in arrays.items():
            if name != "counts":
                whose, _, what = name.partition("_")
                parts[whose][what] = array
        restored = IWKSVFair.restore({**values["learner"], "arrays": parts["learner"]})
        self.learner = restored
        self.scalable = ConditionalPoisson.from_state(parts["scalable"], restored.k)
        self.noise.bit_generator.state = values["noise"]
        vars(self.found).update(values["found"], counts=arrays["counts"])
        self.updates = values["updates"]


def write_differences(
    folder: Path, progress: Callable[[int], object] | None = None, updates: int = 100_000
) -> Path:
    """Compare the designs as the paper's figure 3 does and keep the result, unless it is there.

    What was compared is kept every thousand updates, and a comparison that was stopped goes on.
    """
    path, partial = folder / "differences.json", folder / "differences.part.npz"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    comparison = Comparison()
    if partial.is_file():
        comparison.load(partial)
    while comparison.updates < updates:
        comparison.step()
        if progress is not None:
            progress(comparison.updates)
        if comparison.updates % KEPT_EVERY == 0:
            comparison.save(partial)
    with replacing(path) as file:
        file.write(json.dumps(comparison.found.record()).encode())
    partial.unlink(missing_ok=True)
    return path


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

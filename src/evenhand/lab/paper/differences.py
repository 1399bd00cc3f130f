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
from evenhand.simulation.interrupts import CtrlC
from evenhand.storage import read_arrays, write_arrays
from evenhand.typing import Floats

LOWEST, PER_DECADE = -24, 10  # the histogram's first edge, as a power of ten, and its resolution
N_BINS = -LOWEST * PER_DECADE + 1  # one more for what lies below
UPDATES = 100_000  # policies compared, as in the paper
KEPT_EVERY = 1000  # updates


class Differences:
    """Absolute differences streamed into a histogram."""

    def __init__(self) -> None:
        self.counts = np.zeros(N_BINS, np.int64)  # of those above 0
        self.n = 0
        self.total = self.largest = 0.0

    def add(self, one: Floats, other: Floats, n_sets: int) -> None:
        """Add the differences of two laws; sets that neither lists have probability 0 in both."""
        gaps = np.abs(one - other)
        powers = np.log10(gaps[gaps > 0.0])
        bins = np.floor((powers - LOWEST) * PER_DECADE).astype(np.int64) + 1
        self.counts += np.bincount(bins.clip(0, N_BINS - 1), minlength=N_BINS)
        self.n += n_sets
        self.total += float(gaps.sum())
        self.largest = max(self.largest, float(gaps.max()))

    def record(self) -> dict[str, Any]:
        """Return what was counted, with the median of the positive ones to a tenth of a decade."""
        running = np.cumsum(self.counts)
        middle = int(np.searchsorted(running, running[-1] / 2))
        return {
            "counts": self.counts.tolist(),
            "n": self.n,
            "zero": self.n - int(running[-1]),
            "below": int(self.counts[0]),
            "mean": self.total / max(1, self.n),
            "median": float(10.0 ** (LOWEST + (middle - 0.5) / PER_DECADE)),
            "largest": self.largest,
        }


class Comparison:
    """Both designs given the same policies, along a run of exact IW-KSVFair.

    The run makes a new policy every round (growth 0), and every policy is compared.
    """

    def __init__(self) -> None:
        self.game = synthetic(20, stream(1, 1, "instance"))
        self.noise = stream(1, 1, "environment")
        self.learner = IWKSVFair(
            m=20,
            k=5,
            horizon=10**6,
            gamma=0.8,
            design=EnumeratedMaxEntropy,
            growth=0.0,
            seed=stream(1, 1, "learner"),
        )
        self.scalable = ConditionalPoisson.fit(self.learner._policy())
        self.found = Differences()

    @property
    def updates(self) -> int:
        """Policies compared so far, one per round of the learner."""
        return self.learner.queries // self.learner.k

    def step(self) -> None:
        """Compare the designs of one policy, let the learner play a round, and fit the next."""
        batch = self.learner.ask()
        mixture: Any = self.learner._mixture  # what the batch was drawn from
        exact = mixture.design
        n_sets = comb(self.learner.m, self.learner.k)
        self.found.add(exact.probabilities, np.exp(self.scalable.log_prob(exact.sets)), n_sets)
        self.learner.tell(batch, self.game.pull(batch.orders, batch.sizes, self.noise))
        self.scalable = self.scalable.refit(self.learner._policy())

    def save(self, path: Path) -> None:
        """Write everything the comparison needs to go on."""
        found, learner = vars(self.found).copy(), self.learner.snapshot()
        arrays = {"counts": found.pop("counts")}
        arrays |= {f"learner_{n}": x for n, x in learner.pop("arrays").items()}
        arrays |= {f"scalable_{n}": x for n, x in self.scalable.warm_state().items()}
        noise = self.noise.bit_generator.state
        write_arrays(path, arrays, {"learner": learner, "noise": noise, "found": found})

    def load(self, path: Path) -> None:
        """Go on from what :meth:`save` wrote."""
        arrays, values = read_arrays(path)

        def owned_by(owner: str) -> dict[str, Any]:
            return {n.removeprefix(owner): x for n, x in arrays.items() if n.startswith(owner)}

        self.learner = IWKSVFair.restore({**values["learner"], "arrays": owned_by("learner_")})
        self.scalable = ConditionalPoisson.from_state(owned_by("scalable_"), self.learner.k)
        self.noise.bit_generator.state = values["noise"]
        vars(self.found).update(values["found"], counts=arrays["counts"])


def write_differences(
    folder: Path, progress: Callable[[int], object] = lambda n: None, updates: int = UPDATES
) -> Path:
    """Compare the designs as the paper's figure 3 does and keep the result, unless it is there.

    The state is kept every thousand policies and on Ctrl-C, so that a comparison that was stopped
    goes on.
    """
    path, partial = folder / "differences.json", folder / "differences.part.npz"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    comparison = Comparison()
    if partial.is_file():
        comparison.load(partial)
    with CtrlC() as ctrl_c:
        while comparison.updates < updates:
            comparison.step()
            progress(comparison.updates)
            if ctrl_c.pressed or comparison.updates % KEPT_EVERY == 0:
                comparison.save(partial)
            if ctrl_c.pressed:
                raise KeyboardInterrupt
    with replacing(path) as file:
        file.write(json.dumps(comparison.found.record()).encode())
    partial.unlink(missing_ok=True)
    return path

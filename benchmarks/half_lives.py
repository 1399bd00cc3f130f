"""EvenHand beside learners that forget at one rate, in worlds that change little by little.

    python -m benchmarks.half_lives --worlds walk season --replications 20 --horizon 3e5

Nobody knows beforehand which half-life fits: the best of them is what a learner that watches is
measured against. Worlds and seeds are those of the preset drift-smooth.
"""

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.harness import plain_table
from evenhand.exchange import SetPlan
from evenhand.lab.games import build
from evenhand.lab.oracles import unwatched
from evenhand.lab.ratios import log_ratio
from evenhand.lab.rehearsals import rehearse
from evenhand.lab.worlds import FAMILIES, Rehearsal
from evenhand.learners import EvenHand
from evenhand.learners.band import Band
from evenhand.learners.proportional import mixing_rate, queries_to_serve
from evenhand.randomness.streams import Seed, stream
from evenhand.typing import Floats

M, K, SEED = 20, 5, 28
HALF_LIVES = [2**i for i in range(12, 19)]


class NoBand(Band):
    """Merits may be anything."""

    def hold(self, merits: Floats) -> Floats:
        """Return them as they are."""
        return merits


class Fading(EvenHand):
    """EvenHand whose evidence halves every so many rewards, and whose clocks run on what is left.

    At every new policy all sums are multiplied by 2^(-n / half_life), n being the rewards told
    since the last. Merits are not held in the band, whose proof needs all rewards.
    """

    def __init__(self, m: int, k: int, *, half_life: float, seed: Seed) -> None:
        super().__init__(m, k, seed=seed, **unwatched())
        self.half_life = half_life
        self.band = NoBand(m, k, self.sizes)
        self._memory = 0.0  # rewards after fading, not rounded
        self._kept = 0  # rounded, when the last policy was made

    def _make_plan(self) -> tuple[SetPlan, int]:
        new = self.evidence.told - self._kept
        self._memory += new
        self._fade(2.0 ** (-new / self.half_life))
        self._kept = self.evidence.told
        plan, _ = super()._make_plan()
        return plan, queries_to_serve(self.evidence.told, self.m)

    def _fade(self, factor: float) -> None:
        """Let every reward so far count for less; squares of weights fade twice as fast."""
        known = self.evidence
        known.singles *= factor
        known.weighted *= np.array([factor, factor, factor**2, factor**2])
        for array in known.sums[:-1]:
            array *= factor
        known.weight *= np.array([factor, factor**2])
        self._memory *= factor
        known.told = round(self._memory)
        known.faded, known.due = min(known.faded, known.told), min(known.due, known.told)
        known._found = None

    def _rate(self) -> float:
        return mixing_rate(self.evidence.told, self.m)


def regret(kind: str, family: str, replication: int, horizon: int, half_life: float) -> float:
    """Dynamic regret of a half-life in one world; of EvenHand as it comes where it is 0."""
    game = {"kind": kind, "family": family, "m": M}
    world = build(game, K, horizon=horizon, replication=replication, seed=SEED)
    assert isinstance(world, Rehearsal)
    rng = stream(SEED, replication, "learner")
    noise = stream(SEED, replication, "environment")
    learner: Any = EvenHand(M, K, seed=rng)
    if half_life:
        learner = Fading(M, K, half_life=half_life, seed=rng)
    return float(rehearse(world, learner, horizon, 0, noise, in_full=False)["regret"])


def main() -> None:
    """Print a table for each world and family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=["walk", "season"])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    parser.add_argument("--half-lives", type=float, nargs="+", default=HALF_LIVES)
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--horizon", type=float, default=3e5)
    given = parser.parse_args()
    horizon, numbers = round(given.horizon), range(1, given.replications + 1)
    for kind in given.worlds:
        for family in given.families:
            rows, base = list[list[str]](), np.empty(0)
            for half_life in [0.0, *given.half_lives]:
                start = time.process_time()
                found = np.array([regret(kind, family, r, horizon, half_life) for r in numbers])
                base = base if half_life else found
                error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
                ratio = log_ratio(found, base)
                seconds = (time.process_time() - start) / len(found)
                label = f"half-life {half_life:g}" if half_life else "EvenHand"
                shown = f"{found.mean():.3g} ± {error:.2g}"
                rows.append([label, shown, f"{np.exp(ratio.value):.2f}", f"{seconds:.1f}"])
            print(f"\n{kind}, {family}, T={horizon:.3g}, n={len(numbers)}")
            head = ["learner", "dynamic regret", "of EvenHand's", "seconds each"]
            print(plain_table(head, rows), flush=True)


if __name__ == "__main__":
    main()

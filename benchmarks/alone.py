"""One simulation of a learner, here or in a fresh process of its own.

``python -m benchmarks.alone`` reads a :class:`Job` as JSON from its standard input and prints the
:class:`Cost` as JSON.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, clock


@dataclass(frozen=True)
class Job:
    """A learner as in an experiment file, and how long it plays the synthetic game."""

    learner: dict[str, Any]
    horizon: int
    m: int = 20
    k: int = 5


@dataclass(frozen=True)
class Cost:
    """Processor time of the simulation and of the whole process, and its peak memory in MB."""

    seconds: float
    total: float
    peak: float


def play(job: Job) -> float:
    """Processor time of a simulation of the synthetic game."""
    from evenhand import fair_policy, simulate
    from evenhand.games import synthetic
    from evenhand.lab.learners import build_learner
    from evenhand.randomness.streams import stream

    game = synthetic(job.m, stream(1, 1, "instance"))
    learner = build_learner(job.learner, job.m, job.k, job.horizon, stream(1, 1, "learner"))
    target = fair_policy(game.kshapley(job.k), job.k)
    environment = stream(1, 1, "environment")
    return clock(lambda: simulate(learner, game, job.horizon, target=target, seed=environment))


def alone(job: Job) -> Cost:
    """Cost of a simulation in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.alone"],
        input=json.dumps(asdict(job)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return Cost(**json.loads(done.stdout))


def main() -> None:
    """Do the job given on standard input."""
    seconds = play(Job(**json.load(sys.stdin)))
    total = time.process_time()  # since the process began
    print(json.dumps(asdict(Cost(seconds, total, peak_memory()))))


def peak_memory() -> float:
    """Peak memory of this process in MB, without that of the one that started it.

    (Linux hands the starter's peak on in ``ru_maxrss``; elsewhere there is nothing better.)
    """
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

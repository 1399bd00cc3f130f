"""Memory and time of every learner at T = 1e8, and start-up, all in fresh processes."""

import resource
import subprocess
import sys
from typing import Any

from benchmarks.alone import Job, alone
from benchmarks.harness import ROOT, Row, Section, Times, in_words, plain_table, seconds_row
from evenhand.lab.experiments import Line
from evenhand.lab.paper.experiments import load_preset

QUICK = ("MURaS", "URS", "ETCG", "Fair-CMAB")  # learners with a goal for their time
SHORT, LONG = 10**7, 10**8  # batches have their full size before the first of them
FLAT = 1.1  # memory that grows by less than this is flat


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    rows, text = learners(small)
    return Section([*rows, *start_up(small)], text)


def learners(small: bool) -> tuple[list[Row], str]:
    """Every learner of the paper's first figure, and EvenHand, on the synthetic game."""
    short, long = (10**3, 10**4) if small else (SHORT, LONG)
    lines = [*load_preset("fig1").panels[0].lines, Line("EvenHand", {"kind": "even-hand"})]
    rows, cells = [], []
    for line in lines[2:3] if small else lines:
        alone(Job(line.config, short))  # compiles what is not yet on disk
        first = alone(Job(line.config, short))
        repeats = 3 if line.label in QUICK and not small else 1
        found = [alone(Job(line.config, long)) for _ in range(repeats)]
        seconds = Times([one.seconds for one in found])
        peak = max(one.peak for one in found)
        cells.append(
            [line.label, f"{first.peak:.0f} MB", f"{peak:.0f} MB", in_words(seconds.median)]
        )
        grown = "flat in T" if peak <= FLAT * first.peak else "grows with T"
        memory = Row(
            f"{line.label}, peak memory at T = {long:.0e}",
            f"its {first.peak:.0f} MB at T = {short:.0e}",
            f"{peak:.0f} MB, {grown}",
            value=round(peak),
            low=round(peak),
            high=round(peak),
            unit="MB",
            goal=300,
            at_least=False,
        )
        rows.append(memory)
        if line.label in QUICK:
            peer = "the paper's 80 s" if line.label == "MURaS" else ""
            rows.append(seconds_row(f"{line.label}, synthetic, T = {long:.0e}", peer, seconds, 5))
    head = ["learner", f"peak at {short:.0e}", f"peak at {long:.0e}", f"time at {long:.0e}"]
    text = (
        "Peak resident memory of a fresh process, interpreter and libraries included, and "
        "processor time of the simulation in it. As in the paper's first figure, IW-KSVFair is the "
        "version that lists all sets, and (approx) the one that scales.\n\n"
    )
    return rows, text + plain_table(head, cells)


def start_up(small: bool) -> list[Row]:
    """The command line, and a first short simulation, with compiled code on disk."""
    times = 1 if small else 7
    job = Job({"kind": "iw-ksvfair", "gamma": 2.0}, 1000)
    alone(job)
    command = Times([_child("-m", "evenhand", "--version") for _ in range(times)])
    numba = Times([_child("-c", "import numba") for _ in range(times)])
    whole = Times([alone(job).total for _ in range(times)])
    beyond = Times([a - numba.median for a in whole.seconds])
    return [
        seconds_row("`evenhand --version`", "", command, 0.3),
        seconds_row(
            "first simulation (IW-KSVFair, T = 1e3) in a fresh process with a warm cache",
            "beyond `import numba`",
            beyond,
            1.0,
            f"{whole}, of which importing numba {in_words(numba.median)}",
        ),
    ]


def _child(*arguments: Any) -> float:
    """Processor time of a Python process."""
    before = _children()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""Designs for people who sample, against R's `sampling`: pairs, Sampford, pivotal, cube."""

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.bench_designs import r_version
from benchmarks.harness import Row, Section, Times, faster, repeat
from evenhand.designs import ConditionalPoisson, Cube, DependentRounding, Sampford, Systematic
from evenhand.policy import waterfill
from evenhand.typing import Floats

R_SCRIPT = """
suppressMessages(library(sampling))
args <- commandArgs(trailingOnly = TRUE)
pik <- scan(args[1], quiet = TRUE)
x <- matrix(scan(args[2], quiet = TRUE), nrow = length(pik), byrow = TRUE)
repeats <- as.integer(args[3])
shortest <- as.numeric(args[4])
cpu <- function() sum(proc.time()[1:2])
clock <- function(f) {
  times <- 1
  repeat {
    start <- cpu()
    for (j in 1:times) f()
    took <- cpu() - start
    if (took > shortest) return(took / times)
    times <- 4 * times
  }
}
works <- list(
  "max-entropy-pairs" = function() UPmaxentropypi2(pik),
  "sampford-pairs" = function() UPsampfordpi2(pik),
  "systematic-pairs" = function() UPsystematicpi2(pik),
  "sampford-draw" = function() UPsampford(pik),
  "pivotal-draw" = function() UPpivotal(pik),
  "cube-draw" = function() samplecube(cbind(pik, x), pik, order = 1, comment = FALSE, method = 2)
)
for (i in 1:repeats) for (name in names(works)) cat(name, clock(works[[name]]), "\\n")
"""
SHOWN = {
    "max-entropy-pairs": "all pair marginals of a conditional Poisson design, fit included",
    "sampford-pairs": "all pair marginals of a Sampford design",
    "systematic-pairs": "all pair marginals of a systematic design",
    "sampford-draw": "one draw of a Sampford design",
    "pivotal-draw": "one draw of the pivotal method (`DependentRounding`)",
    "cube-draw": "one draw of the cube method, three variables and the size",
}
DRAWS = 1000


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    rows = []
    for m, k in [(20, 5)] if small else [(20, 5), (200, 20)]:
        rng = np.random.default_rng(0)
        pi = waterfill(np.exp(rng.normal(0, 0.7, m)), k)
        x = rng.random((m, 3)) * pi[:, None]
        ours, theirs = measure(pi, x, 2 if small else 5), in_r(pi, x, small)
        for name, shown in SHOWN.items():
            other = theirs if isinstance(theirs, str) else theirs[name]
            rows.append(faster(f"{shown}, (M, K) = ({m}, {k})", "R `sampling`", ours[name], other))
    text = (
        f"R is its package `sampling`{r_version()}: `UPmaxentropypi2`, `UPsampfordpi2`, "
        "`UPsystematicpi2`, `UPsampford`, `UPpivotal`, `samplecube`. Ours are draws of a thousand "
        "at once."
    )
    return Section([*rows, *large(small)], text)


def measure(pi: Floats, x: Floats, times: int) -> dict[str, Times]:
    """Our times."""
    rng = np.random.default_rng(1)
    draws = {
        "sampford-draw": Sampford.fit(pi),
        "pivotal-draw": DependentRounding.fit(pi),
        "cube-draw": Cube.fit(pi, x),
    }
    return {
        "max-entropy-pairs": repeat(lambda: ConditionalPoisson.fit(pi).pair_marginals(), times),
        "sampford-pairs": repeat(lambda: Sampford.fit(pi).pair_marginals(), times),
        "systematic-pairs": repeat(lambda: Systematic.fit(pi).pair_marginals(), times),
        **{
            name: repeat(partial(design.sample, DRAWS, rng), times, per=DRAWS)
            for name, design in draws.items()
        },
    }


def large(small: bool) -> list[Row]:
    """What takes R's routines tables of M by M."""
    m = 1000 if small else 10**6
    pi = waterfill(np.exp(np.random.default_rng(0).normal(0, 0.7, m)), m // 100)
    pairs = np.random.default_rng(1).integers(0, m, (100, 2))
    rows = []
    for kind in (ConditionalPoisson, Sampford):
        design = kind.fit(pi)
        taken = repeat(partial(design.pair_marginals, pairs), 1)
        work = f"100 pair marginals by name, {kind.__name__}, (M, K) = ({m}, {m // 100})"
        rows.append(Row(work, "R `sampling`", str(taken), "not run: a table of M M cells"))
    return rows


def in_r(pi: Floats, x: Floats, small: bool) -> dict[str, Times] | str:
    """Times of R's routines, or why there are none."""
    if shutil.which("Rscript") is None:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        script, first, second = (f"{folder}/{name}" for name in ("peer.R", "pik.txt", "x.txt"))
        Path(script).write_text(R_SCRIPT)
        np.savetxt(first, pi)
        np.savetxt(second, x)
        limits = ("2", "0.001") if small else ("5", "0.2")
        command = ["Rscript", script, first, second, *limits]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return "not installed" if "no package" in done.stderr else f"fails: {done.stderr[-80:]!r}"
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: Times([float(t) for n, t in lines if n == name]) for name in SHOWN}

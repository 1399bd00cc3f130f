"""Maximum-entropy designs against R's `sampling` package."""

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Times, in_words, ratio, repeat, table
from evenhand.designs import ConditionalPoisson
from evenhand.policy import waterfill

PEER = """
suppressMessages(library(sampling))
args <- commandArgs(trailingOnly = TRUE)
pik <- scan(args[1], quiet = TRUE)
n <- round(sum(pik))
clock <- function(f) { start <- proc.time()[["elapsed"]]; f(); proc.time()[["elapsed"]] - start }
for (i in 1:7) cat("fit", clock(function() for (j in 1:5) UPMEqfromw(
  { w <- UPMEpiktildefrompik(pik); w / (1 - w) }, n)) / 5, "\\n")
w <- UPMEpiktildefrompik(pik)
q <- UPMEqfromw(w / (1 - w), n)
for (i in 1:7) cat("draw", clock(function() for (j in 1:100) UPMEsfromq(q)) / 100, "\\n")
"""
SIZES = [(20, 5), (534, 10), (500, 200), (10**5, 10**3), (10**6, 10**3), (10**6, 10**5)]


def peer(policy: np.ndarray) -> dict[str, Times] | str:
    """Times of R's routines, or why there are none."""
    if shutil.which("Rscript") is None:
        return "R is not installed"
    with tempfile.TemporaryDirectory() as folder:
        script, data = Path(folder, "peer.R"), Path(folder, "pik.txt")
        script.write_text(PEER)
        np.savetxt(data, policy)
        done = subprocess.run(
            ["Rscript", script, data], capture_output=True, text=True, check=False
        )
    if done.returncode:
        return "breaks down: " + done.stderr.strip().splitlines()[-1]
    lines = [line.split() for line in done.stdout.splitlines()]
    return {
        what: Times([float(x) for name, x in lines if name == what]) for what in ("fit", "draw")
    }


def run() -> str:
    """Return the section of the results page."""
    rows, growth = [], []
    for m, k in SIZES:
        policy = waterfill(np.exp(np.random.default_rng(0).normal(0, 1, m)), k)
        n = 10_000 if m < 1000 else 10
        rng = np.random.default_rng(1)
        fit = repeat(partial(ConditionalPoisson.fit, policy))
        design = ConditionalPoisson.fit(policy)
        draw = repeat(partial(design.sample, n, rng), per=n)
        sets = design.sample(n, rng)
        prob = repeat(partial(design.log_prob, sets), per=n)
        error = np.abs(design.marginals - policy).max()
        growth.append([f"({m}, {k})", str(fit), str(draw), in_words(prob.median), f"{error:.1e}"])
        theirs = peer(policy) if m < 1000 else "not run: m x k table"
        if isinstance(theirs, str):
            rows.append([f"({m}, {k})", theirs, "", "", ""])
        else:
            rows.append(
                [
                    f"({m}, {k})",
                    f"{theirs['fit']}",
                    f"{theirs['draw']}",
                    ratio(theirs["fit"], fit),
                    ratio(theirs["draw"], draw),
                ]
            )
    ours = table(
        "Conditional Poisson designs",
        "A cold fit to 1e-10 with all marginals, one draw, one log-probability; the table or tree "
        "a design draws from is built at the first draw and not counted.",
        ["(M, K)", "fit", "draw", "log_prob", "largest error in a marginal"],
        growth,
    )
    versus = table(
        "Conditional Poisson designs against R's `sampling`",
        "Fit: `UPMEpiktildefrompik` and `UPMEqfromw`; draw: `UPMEsfromq`. Ratios: how many times "
        "faster we are, with the range over all pairs of repetitions.",
        ["(M, K)", "R fit", "R draw", "fit, times faster", "draw, times faster"],
        rows,
    )
    return ours + "\n" + versus

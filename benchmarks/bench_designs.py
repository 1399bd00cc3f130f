"""Maximum-entropy designs against R's `sampling` package and DPPy."""

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Row, Section, Times, faster, in_words, repeat, table
from evenhand.designs import ConditionalPoisson
from evenhand.policy import waterfill
from evenhand.typing import Floats

R_SCRIPT = """
suppressMessages(library(sampling))
args <- commandArgs(trailingOnly = TRUE)
pik <- scan(args[1], quiet = TRUE)
n <- round(sum(pik))
repeats <- as.integer(args[2])
shortest <- as.numeric(args[3])
cpu <- function() sum(proc.time()[1:2])
clock <- function(f) {  # its clock counts milliseconds: repeat until they are many
  times <- 1
  repeat {
    start <- cpu()
    for (j in 1:times) f()
    took <- cpu() - start
    if (took > shortest) return(took / times)
    times <- 4 * times
  }
}
w <- UPMEpiktildefrompik(pik)
w <- w / (1 - w)
q <- UPMEqfromw(w, n)
for (i in 1:repeats) {
  cat("fit", clock(function() { t <- UPMEpiktildefrompik(pik); UPMEqfromw(t / (1 - t), n) }), "\\n")
  cat("marginals", clock(function() UPMEpikfromq(UPMEqfromw(w, n))), "\\n")
  cat("draw", clock(function() UPMEsfromq(q)), "\\n")
}
"""
SIZES = [(20, 5), (534, 10), (500, 200), (10**5, 10**3), (10**6, 10**3), (10**6, 10**5)]
MAX_CELLS = 10**6  # of the peers' m x k tables, filled one cell at a time by their interpreters
FIT, DRAW = 100, 1000  # goals


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    rows, ours = [], []
    for m, k in SIZES[:1] if small else SIZES:
        policy = waterfill(np.exp(np.random.default_rng(0).normal(0, 1, m)), k)
        design, times = measure(policy, k, small)
        error = np.abs(design.marginals - policy).max()
        cells = [in_words(times[what].median) for what in ("fit", "marginals", "draw", "log_prob")]
        ours.append([f"({m}, {k})", *cells, f"{error:.1e}"])
        with_r = in_r(policy, small) if m * k <= MAX_CELLS else "not run: a table of M K cells"
        rows += against(f"({m}, {k})", "R `sampling`", times, with_r)
        with_dppy = (
            in_dppy(design, small) if m * k <= MAX_CELLS else "not run: a table of M K cells"
        )
        rows += against(f"({m}, {k})", "DPPy", times, with_dppy)
    text = table(
        "Conditional Poisson designs",
        "A cold fit to 1e-10 with all marginals; marginals and normaliser from given weights; one "
        "of 100 000 draws (10 for M >= 1000), and of as many log-probabilities. The table or tree "
        "a design draws from is built at the first draw and not counted. "
        f"R is its package `sampling`{r_version()}: `UPMEpiktildefrompik` and `UPMEqfromw` for a "
        "fit, `UPMEqfromw` and `UPMEpikfromq` for marginals, `UPMEsfromq` for a draw. DPPy knows "
        "the law as a k-DPP with a diagonal kernel: `elementary_symmetric_polynomials` stands for "
        "its normaliser (it has neither fit nor marginals), and the selection of eigenvectors, "
        "which is all of a draw here, for a draw. Neither has log-probabilities.",
        ["(M, K)", "fit", "marginals", "draw", "log_prob", "largest error in a marginal"],
        ours,
    )
    return Section(rows, text, ("dppy",))


def measure(policy: Floats, k: int, small: bool) -> tuple[ConditionalPoisson, dict[str, Times]]:
    """Our times."""
    m, times = len(policy), 2 if small else 5
    n = 100_000 if m < 1000 else 10
    calls = 100 if m < 1000 else 1
    rng = np.random.default_rng(1)
    design = ConditionalPoisson.fit(policy)
    sets = design.sample(n, rng)

    def often(work):  # a call of microseconds is timed over many
        def many():
            for _ in range(calls):
                work()

        return repeat(many, times, per=calls)

    return design, {
        "fit": often(partial(ConditionalPoisson.fit, policy)),
        "marginals": often(partial(ConditionalPoisson.from_log_weights, design.log_weights, k)),
        "draw": repeat(partial(design.sample, n, rng), times, per=n),
        "log_prob": repeat(partial(design.log_prob, sets), times, per=n),
    }


def against(
    size: str, peer: str, ours: dict[str, Times], theirs: dict[str, Times] | str
) -> list[Row]:
    """Rows of one size against one peer."""
    goals = {"fit": FIT, "draw": DRAW, "marginals": None}
    if isinstance(theirs, str):
        return [Row(f"conditional Poisson {size}", peer, in_words(ours["fit"].median), theirs)]
    return [
        faster(f"conditional Poisson {size}: {what}", peer, ours[what], times, goals[what])
        for what, times in theirs.items()
    ]


def in_r(policy: Floats, small: bool) -> dict[str, Times] | str:
    """Times of R's routines, or why there are none."""
    if shutil.which("Rscript") is None:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        script, data = Path(folder, "peer.R"), Path(folder, "pik.txt")
        script.write_text(R_SCRIPT)
        np.savetxt(data, policy)
        done = subprocess.run(
            ["Rscript", script, data, *(("2", "0.001") if small else ("5", "0.2"))],
            capture_output=True,
            text=True,
            check=False,
        )
    if "there is no package called" in done.stderr:
        return "not installed"
    if done.returncode:
        why = [x for x in done.stderr.strip().splitlines() if "halted" not in x]
        return "breaks down: " + " ".join(" ".join(why[-2:]).split())
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: Times([float(x) for n, x in lines if n == name]) for name, _ in lines[:3]}


def r_version() -> str:
    """Version of R's package, or nothing."""
    if shutil.which("Rscript") is None:
        return ""
    command = ["Rscript", "-e", 'cat(as.character(packageVersion("sampling")))']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f" {done.stdout}" if done.returncode == 0 else ""


def in_dppy(design: ConditionalPoisson, small: bool) -> dict[str, Times] | str:
    """Times of DPPy's routines for the same law, or why there are none."""
    try:
        from dppy.exact_sampling import elementary_symmetric_polynomials, k_dpp_eig_vecs_selector
    except ImportError:
        return "not installed"
    odds, k, times = np.exp(design.log_weights), design.k, 2 if small else 5
    if not np.isfinite(odds).all():
        return "does not apply: some arms are always in"
    polynomials = elementary_symmetric_polynomials(odds, k)
    arms, rng = np.arange(design.m)[None, :], np.random.RandomState(1)

    def draw():
        return k_dpp_eig_vecs_selector(odds, arms, k, polynomials, rng)

    def draws():
        for _ in range(100):
            draw()

    return {
        "marginals": repeat(partial(elementary_symmetric_polynomials, odds, k), times),
        "draw": repeat(draws, times, per=100),
    }

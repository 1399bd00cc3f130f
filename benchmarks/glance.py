"""The table that the results page opens with: what people use today, they, we, and the ratio."""

from typing import NamedTuple

from benchmarks.harness import Row, number, plain_table

HEAD = ["work", "people use today", "they take", "we take", "ratio"]
NOTE = """Above 1 in the last column: how many times faster, more pairs a second, or smaller a mean
squared error. The best peer known for the work stands here, also where it is no slower.

"""


class Pick(NamedTuple):
    """A row to show: its words, and the section, work and peer by whose beginnings it is found."""

    words: str
    use: str
    section: str
    work: str
    peer: str


PICKS = [
    Pick("exact Shapley values of 20 arms", "shapiq", "merits", "exact K-Shapley", "shapiq"),
    Pick(
        "sampled Shapley values (largest of the members), mean squared error after 1000 queries",
        "shapiq (SVARM)",
        "merits",
        "sampled merits, largest of its members, M = K = 20, 1000",
        "shapiq SVARM",
    ),
    Pick(
        "the same",
        "pyDVL (delta-Shapley)",
        "merits",
        "sampled merits, largest of its members, M = K = 20, 1000",
        "pyDVL delta-Shapley",
    ),
    Pick(
        "fit a maximum-entropy design, 10 of 534",
        "R, `sampling`",
        "designs",
        "conditional Poisson (534, 10): fit",
        "R",
    ),
    Pick(
        "draw a set from it",
        "R, `sampling`",
        "designs",
        "conditional Poisson (534, 10): draw",
        "R",
    ),
    Pick("draw a set from it", "DPPy", "designs", "conditional Poisson (534, 10): draw", "DPPy"),
    Pick(
        "draw a balanced sample, 20 of 200",
        "R, `sampling`",
        "samples",
        "one draw of the cube method, three variables and the size, (M, K) = (200",
        "R",
    ),
    Pick("a cascade in a network of 534", "CyNetDiff", "cascades", "10-seed", "CyNetDiff, new"),
    Pick(
        "influence of the top 1000 of a million nodes",
        "CyNetDiff, extrapolated",
        "networks",
        "merits of",
        "CyNetDiff",
    ),
    Pick(
        "a reverse-reachable set, a million nodes",
        "SUBSIM (C++)",
        "networks",
        "a reverse-reachable set",
        "SUBSIM",
    ),
    Pick(
        "the paper's learner, a query of 1e7",
        "the paper, line by line in NumPy",
        "runs",
        "IW-KSVFair, synthetic",
        "NumPy",
    ),
    Pick(
        "the same, of 1e8",
        "one compiled loop, refitted every round",
        "runs",
        "IW-KSVFair, synthetic",
        "refitted every round",
    ),
    Pick(
        "values of a slow function, 2 workers",
        "joblib",
        "slow",
        "exact merits of 298 sets, a function that sleeps",
        "joblib",
    ),
    Pick(
        "ask and tell over HTTP, 4 clients, SQLite",
        "Optuna, RDB storage",
        "service",
        "pairs, 4 clients, SQLite",
        "Optuna, RDB",
    ),
    Pick(
        "the same",
        "Optuna, journal file",
        "service",
        "pairs, 4 clients, SQLite",
        "Optuna, journal",
    ),
]


def table(rows: dict[str, list[Row]]) -> str:
    """Return the table of the rows that were measured, given those of each section."""
    lines = []
    for pick in PICKS:
        found = [row for row in rows.get(pick.section, []) if _is(row, pick)]
        if found:
            row = found[0]
            lines.append([pick.words, pick.use, _short(row.theirs), _short(row.ours), _ratio(row)])
    return NOTE + plain_table(HEAD, lines) if lines else ""


def _is(row: Row, pick: Pick) -> bool:
    same = row.work.startswith(pick.work) and row.peer.startswith(pick.peer)
    return same and row.value is not None


def _short(times: str) -> str:
    """Leave out the range."""
    return times.split(" (")[0]


def _ratio(row: Row) -> str:
    assert row.value is not None
    return f"**{number(float(f'{row.value:.2g}'))}**"

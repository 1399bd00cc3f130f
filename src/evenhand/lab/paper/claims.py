"""Claims of the paper's experimental section and appendix beside what was measured."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment
from evenhand.lab.paper.differences import LOWEST, PER_DECADE
from evenhand.lab.paper.timing import timed
from evenhand.lab.series import Series, mean, series, shares_at_end
from evenhand.typing import Floats

LOW = ("IW-KSVFair", "IW-KSVFair (approx)", "MURaS")
OURS = "IW-KSVFair (approx)"


class Claim(NamedTuple):
    """What the paper says, what was measured, and whether they agree."""

    where: str
    paper: str
    measured: str
    agrees: bool


def check(
    experiments: dict[str, Experiment],
    results: pl.DataFrame,
    differences: dict[str, Any] | None = None,
) -> list[Claim]:
    """All claims that the results at hand can speak to."""
    claims: list[Claim] = []
    for name, experiment in experiments.items():
        if name in ("fig1", "fig2"):
            claims += _comparison(name, _lines(experiment, results))
            claims.append(_within_reach(experiment, results))
        elif name in ("fig4", "fig5"):
            claims += _ablation(experiment, results)
        elif name == "fig6":
            claims += _parameters(experiment, results)
        elif name in ("fig7", "fig8"):
            claims += _armwise(experiment, results)
        elif name == "timing":
            claims += _timing(experiment, results)
    if differences is not None:
        claims.append(_differences(differences))
    return claims


def _lines(experiment: Experiment, results: pl.DataFrame, panel: int = 0) -> dict[str, Series]:
    chosen = experiment.panels[panel]
    found = {x.label: series(results, experiment, chosen, x) for x in chosen.lines}
    return {label: one for label, one in found.items() if len(one.horizons)}


def _at(values: Floats, one: Series, horizon: int) -> float:
    """Mean over replications at a horizon."""
    return float(mean(values)[np.flatnonzero(one.horizons == horizon)[0]])


def _comparison(where: str, lines: dict[str, Series]) -> list[Claim]:
    """Claims about one of the two comparisons, at the horizons all lines have."""
    if OURS not in lines:
        return []
    shared = set.intersection(*(set(one.horizons.tolist()) for one in lines.values()))
    if not shared:
        return []
    horizon = max(shared)
    ends = {label: _at(one.regret, one, horizon) for label, one in lines.items()}
    at = f"at T = {horizon:.3g}"
    claims = [_lowest(where, lines, sorted(shared))]
    if "IW-KSVFair" in ends:
        gap = ends["IW-KSVFair"] / ends[OURS] - 1
        text = f"{at}: exact {ends['IW-KSVFair']:.4g}, approximate {ends[OURS]:.4g} ({gap:+.1%})"
        claims.append(
            Claim(where, "the approximation matches the exact version", text, abs(gap) < 0.15)
        )
    for label, paper in (
        ("NoIW", "without importance weights regret is substantially larger"),
        ("NoMix", "without mixing regret is substantially larger"),
        ("MURaS", "MURaS has substantially larger regret"),
    ):
        factor = ends[label] / ends[OURS]
        text = f"{at}: {factor:.2f} times IW-KSVFair's"
        claims.append(Claim(where, paper, text, factor > 1.2))
    low = max(ends[label] for label in LOW if label in ends)
    others = {label: end for label, end in ends.items() if label not in LOW}
    text = f"{at}: at most {low:.3g}; the others: " + _listed(others, ".3g")
    paper = "IW-KSVFair and MURaS are at a substantially lower scale than all other learners"
    claims.append(Claim(where, paper, text, 1.2 * low < min(others.values())))
    for label, one in lines.items():
        growth = one.growth()
        if growth is not None:
            wanted = 2 / 3 if label in LOW else 1.0
            paper = f"{label}: slope close to {'2/3' if label in LOW else '1'}"
            text = f"{growth.value:.3f} +- {growth.stderr:.3f}"
            claims.append(Claim(where, paper, text, abs(growth.value - wanted) <= 0.1))
    return claims + _alignment(where, lines, horizon)


def _lowest(where: str, lines: dict[str, Series], horizons: list[int]) -> Claim:
    """IW-KSVFair has the lowest regret, horizon by horizon."""
    beaten = []
    for horizon in horizons:
        ends = {label: _at(one.regret, one, horizon) for label, one in lines.items()}
        best = min(ends, key=lambda label: ends[label])
        if not best.startswith("IW-KSVFair"):
            beaten.append(f"T = {horizon:.3g} ({best}, {ends[best] / ends[OURS]:.2f} times)")
    text = "the lowest at every horizon" if not beaten else "not at " + ", ".join(beaten)
    return Claim(where, "IW-KSVFair has the lowest regret at every horizon", text, not beaten)


def _alignment(where: str, lines: dict[str, Series], horizon: int) -> list[Claim]:
    scores = {label: _at(one.alignment, one, horizon) for label, one in lines.items()}
    ours, text = scores[OURS], _listed(scores, ".3f")
    claims = [
        Claim(where, "IW-KSVFair's alignment is nearly perfect", text, ours > 0.95),
        Claim(where, "MURaS's alignment is high", f"{scores['MURaS']:.3f}", scores["MURaS"] > 0.9),
    ]
    for label in ("NoIW", "NoMix", "URS", "Fair-CMAB", "ETCG", "GAP-E"):
        text = f"{scores[label]:.3f} against {ours:.3f}"
        lower = scores[label] < ours - 0.005
        claims.append(Claim(where, f"{label} has lower alignment", text, lower))
    return claims


def _within_reach(experiment: Experiment, results: pl.DataFrame) -> Claim:
    """No arm is due more than one selection per round."""
    ids = [cell.id for cell in experiment.all_cells()]
    due = float(results.filter(pl.col("id").is_in(ids))["largest_due"].max())  # type: ignore[arg-type]
    text = f"the arm due most is due {due:.3f} selections per round"
    return Claim(experiment.name, "proportional marginals are at most 1", text, due <= 1.0)


def _ablation(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    """IW-KSVFair below MURaS in every panel at every horizon, and how regret grows with M or K."""
    claims: list[Claim] = []
    ends: dict[str, dict[str, float]] = {}
    gaps: dict[str, float] = {}
    for i, panel in enumerate(experiment.panels):
        lines = _lines(experiment, results, i)
        if not {OURS, "MURaS"} <= lines.keys():
            continue
        shared = np.intersect1d(lines["MURaS"].horizons, lines[OURS].horizons)
        if not len(shared):
            continue
        by = {x: np.array([_at(lines[x].regret, lines[x], h) for h in shared]) for x in lines}
        ratio = by["MURaS"] / by[OURS]
        text = "MURaS over IW-KSVFair by horizon: " + ", ".join(f"{r:.2f}" for r in ratio)
        paper = f"{panel.title}: IW-KSVFair has lower regret than MURaS at every horizon"
        claims.append(Claim(experiment.name, paper, text, bool(np.all(ratio > 1))))
        gaps[panel.title] = float(ratio[-1])
        for label in (OURS, "MURaS"):
            ends.setdefault(label, {})[panel.title] = float(by[label][-1])
            growth = lines[label].growth()
            if growth is not None:
                text = f"slope {growth.value:.3f} +- {growth.stderr:.3f}"
                paper = f"{panel.title}: {label} grows sublinearly"
                claims.append(Claim(experiment.name, paper, text, growth.value < 0.9))
    for label, by_panel in ends.items():
        rising = bool(np.all(np.diff(list(by_panel.values())) > 0))
        paper = f"{label}: regret increases from panel to panel"
        claims.append(Claim(experiment.name, paper, _listed(by_panel, ".3g"), rising))
    if experiment.name == "fig5" and gaps:
        falling = bool(np.all(np.diff(list(gaps.values())) < 0))
        text = "MURaS over IW-KSVFair: " + _listed(gaps, ".2f")
        claims.append(Claim("fig5", "the gap narrows as K increases", text, falling))
    return claims


def _parameters(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    """The chosen constants are low among those tried."""
    claims = []
    for i, chosen in ((0, "Lambda=8"), (1, "Gamma=0.8")):
        lines = _lines(experiment, results, i)
        if chosen in lines:
            ends = {label: float(mean(one.regret)[-1]) for label, one in lines.items()}
            good = ends[chosen] <= 1.25 * min(ends.values())
            paper = f"{chosen} gives low regret"
            claims.append(Claim("fig6", paper, _listed(ends, ".3g"), good))
    return claims


def _armwise(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    """Arm by arm: who follows merit, and who does what else instead."""
    panel, claims = experiment.panels[0], []
    for line in panel.lines:
        found = shares_at_end(results, experiment, panel, line)
        if found is None:
            continue
        order = np.argsort(-found[0], axis=1)
        merit, given = (np.take_along_axis(x, order, axis=1).mean(axis=0) for x in found)
        with np.errstate(divide="ignore"):
            ratio = merit / given
        top = np.arange(len(merit)) < panel.k
        if line.label in LOW:
            close = float(np.mean(np.abs(ratio - 1) < 0.1))
            paper = f"{line.label}: merit over selection is close to 1 for almost all arms"
            text, agrees = f"within 10 % for {close:.0%} of the arms", close >= 0.9
        elif line.label == "URS":
            gap = float(np.abs(given * len(given) - 1).max())
            paper = "URS: nearly the same share for every arm"
            text, agrees = f"shares within {gap:.1%} of 1/M", gap < 0.05
        elif line.label == "ETCG":
            paper = "ETCG: the top K are selected more than their merit, the others less"
            text = (
                f"ratio {ratio[top].mean():.2f} on the top K, median {np.median(ratio[~top]):.3g}"
            )
            text += " on the others"
            agrees = bool(ratio[top].max() < 1 and np.median(ratio[~top]) > 1)
        elif line.label == "GAP-E":
            width = max(1, panel.k // 2)
            near = np.abs(np.arange(len(merit)) - panel.k + 0.5) < width
            paper = "GAP-E: arms near the K-th are selected more than their merit, others less"
            text = f"mean share over merit {np.mean(given[near] / merit[near]):.2f} near the K-th, "
            text += f"{np.mean(given[~near] / merit[~near]):.2f} elsewhere"
            agrees = bool(np.mean(given[near] / merit[near]) > 1)
            agrees = agrees and bool(np.mean(given[~near] / merit[~near]) < 1)
        else:
            continue
        claims.append(Claim(experiment.name, paper, text, agrees))
    return claims


def _timing(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    return [
        Claim(
            "timing",
            f"{r.panel}: {r.label} takes about {r.paper:g} s at T = 1e8",
            f"{r.seconds:.3g} s at T = {r.horizon:.3g}, {r.paper / r.seconds:.3g} times faster",
            r.seconds <= r.paper,
        )
        for r in timed(experiment, results)
    ]


def _differences(record: dict[str, Any]) -> Claim:
    counts = np.array(record["counts"])
    powers = LOWEST + (np.arange(len(counts)) - 0.5) / PER_DECADE  # middles of the bins
    inside = counts[(powers > -14) & (powers < -10)].sum() / counts.sum()
    text = f"{inside:.0%} of the positive ones; the largest is {record['largest']:.2g}"
    paper = "most differences of set probabilities lie between 1e-14 and 1e-10"
    return Claim("fig3", paper, text, bool(inside > 0.5))


def _listed(numbers: dict[str, float], form: str) -> str:
    return ", ".join(f"{label} {number:{form}}" for label, number in numbers.items())

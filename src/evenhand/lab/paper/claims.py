"""Claims of the paper's experimental section and appendix beside what was measured."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment
from evenhand.lab.paper.differences import LOWEST, PER_DECADE
from evenhand.lab.paper.tables import timed
from evenhand.lab.series import Series, by_label, mean, shares_by_rank
from evenhand.typing import Floats

# learners whose regret the paper calls low
LOW = ("IW-KSVFair", "IW-KSVFair (approx)", "MURaS")
OURS = "IW-KSVFair (approx)"


class Claim(NamedTuple):
    """What the paper says, what was measured, and whether they agree."""

    where: str
    paper: str
    measured: str
    agrees: bool


def check(
    experiments: Iterable[Experiment],
    results: pl.DataFrame,
    differences: dict[str, Any] | None = None,
) -> list[Claim]:
    """All claims that the results speak to; every line of the experiments must have some."""
    found = [
        claim
        for experiment in experiments
        if experiment.name in CHECKS
        for claim in CHECKS[experiment.name](experiment, results)
    ]
    return found if differences is None else [*found, _differences(differences)]


def _comparison(experiment: Experiment, results: pl.DataFrame) -> Iterator[Claim]:
    """Claims about one of the two comparisons, at the horizons that all lines have."""
    where, lines = experiment.name, by_label(results, experiment, experiment.panels[0])
    regret = _regret(lines)
    if regret:
        horizon = max(regret)
        yield _lowest(where, regret)
        yield from _factors(where, horizon, regret[horizon])
        yield from _slopes(where, lines)
        yield from _alignment(where, lines, horizon)
    yield _within_reach(experiment, results)


def _regret(lines: dict[str, Series]) -> dict[int, dict[str, float]]:
    """Mean regret by horizon and label, at the horizons that all lines have."""
    shared = reduce(np.intersect1d, [one.horizons for one in lines.values()])
    return {
        horizon: {label: _at(one.regret, one, horizon) for label, one in lines.items()}
        for horizon in shared.tolist()
    }


def _at(values: Floats, one: Series, horizon: int) -> float:
    """Mean over replications at a horizon."""
    return float(mean(values)[one.horizons == horizon][0])


def _lowest(where: str, regret: dict[int, dict[str, float]]) -> Claim:
    """IW-KSVFair has the lowest regret, horizon by horizon."""
    beaten = []
    for horizon, ends in regret.items():
        best = min(ends, key=lambda label: ends[label])
        if not best.startswith("IW-KSVFair"):
            beaten.append(f"T = {horizon:.3g} ({best}, {ends[best] / ends[OURS]:.2f} times)")
    text = "the lowest at every horizon" if not beaten else "not at " + ", ".join(beaten)
    return Claim(where, "IW-KSVFair has the lowest regret at every horizon", text, not beaten)


def _factors(where: str, horizon: int, ends: dict[str, float]) -> Iterator[Claim]:
    """How the regrets at one horizon compare."""
    at, ours = f"at T = {horizon:.3g}", ends[OURS]
    if "IW-KSVFair" in ends:
        gap = ends["IW-KSVFair"] / ours - 1
        text = f"{at}: exact {ends['IW-KSVFair']:.4g}, approximate {ours:.4g} ({gap:+.1%})"
        yield Claim(where, "the approximation matches the exact version", text, abs(gap) < 0.15)
    for label, paper in (
        ("NoIW", "without importance weights regret is substantially larger"),
        ("NoMix", "without mixing regret is substantially larger"),
        ("MURaS", "MURaS has substantially larger regret"),
    ):
        factor = ends[label] / ours
        yield Claim(where, paper, f"{at}: {factor:.2f} times IW-KSVFair's", factor > 1.2)
    low = max(ends[label] for label in LOW if label in ends)
    others = {label: end for label, end in ends.items() if label not in LOW}
    text = f"{at}: at most {low:.3g}; the others: " + _listed(others, ".3g")
    paper = "IW-KSVFair and MURaS are at a substantially lower scale than all other learners"
    yield Claim(where, paper, text, 1.2 * low < min(others.values()))


def _slopes(where: str, lines: dict[str, Series]) -> Iterator[Claim]:
    """Regret of the low ones grows like T^(2/3), that of the others like T."""
    for label, one in lines.items():
        growth = one.growth()
        if growth is not None:
            wanted, shown = (2 / 3, "2/3") if label in LOW else (1.0, "1")
            text = f"{growth.value:.3f} +- {growth.stderr:.3f}"
            close = abs(growth.value - wanted) <= 0.1
            yield Claim(where, f"{label}: slope close to {shown}", text, close)


def _alignment(where: str, lines: dict[str, Series], horizon: int) -> Iterator[Claim]:
    scores = {label: _at(one.alignment, one, horizon) for label, one in lines.items()}
    ours, muras, text = scores[OURS], scores["MURaS"], _listed(scores, ".3f")
    yield Claim(where, "IW-KSVFair's alignment is nearly perfect", text, ours > 0.95)
    yield Claim(where, "MURaS's alignment is high", f"{muras:.3f}", muras > 0.9)
    for label in ("NoIW", "NoMix", "URS", "Fair-CMAB", "ETCG", "GAP-E"):
        text = f"{scores[label]:.3f} against {ours:.3f}"
        yield Claim(where, f"{label} has lower alignment", text, scores[label] < ours - 0.005)


def _within_reach(experiment: Experiment, results: pl.DataFrame) -> Claim:
    """No arm is due more than one selection per round."""
    ids = [cell.id for cell in experiment.all_cells()]
    due = float(results.filter(pl.col("id").is_in(ids))["largest_due"].max())  # type: ignore[arg-type]
    text = f"the arm due most is due {due:.3f} selections per round"
    return Claim(experiment.name, "proportional marginals are at most 1", text, due <= 1.0)


def _ablation(experiment: Experiment, results: pl.DataFrame) -> Iterator[Claim]:
    """IW-KSVFair below MURaS in every panel at every horizon, and how regret grows with M or K."""
    where, ends = experiment.name, {}
    for panel in experiment.panels:
        lines = by_label(results, experiment, panel)
        regret = _regret(lines)
        if not regret:
            continue
        ends[panel.title] = regret[max(regret)]
        ratios = [at["MURaS"] / at[OURS] for at in regret.values()]
        text = "MURaS over IW-KSVFair by horizon: " + ", ".join(f"{r:.2f}" for r in ratios)
        paper = f"{panel.title}: IW-KSVFair has lower regret than MURaS at every horizon"
        yield Claim(where, paper, text, min(ratios) > 1)
        for label, one in lines.items():
            growth = one.growth()
            if growth is not None:
                text = f"slope {growth.value:.3f} +- {growth.stderr:.3f}"
                yield Claim(
                    where, f"{panel.title}: {label} grows sublinearly", text, growth.value < 0.9
                )
    if not ends:
        return
    for label in (OURS, "MURaS"):
        by_panel = {title: end[label] for title, end in ends.items()}
        rising = bool(np.all(np.diff(list(by_panel.values())) > 0))
        paper = f"{label}: regret increases from panel to panel"
        yield Claim(where, paper, _listed(by_panel, ".3g"), rising)
    if where == "fig5":
        gaps = {title: end["MURaS"] / end[OURS] for title, end in ends.items()}
        text = "MURaS over IW-KSVFair: " + _listed(gaps, ".2f")
        falling = bool(np.all(np.diff(list(gaps.values())) < 0))
        yield Claim(where, "the gap narrows as K increases", text, falling)


def _parameters(experiment: Experiment, results: pl.DataFrame) -> Iterator[Claim]:
    """The chosen constants are low among those tried."""
    for panel, chosen in zip(experiment.panels, ("Lambda=8", "Gamma=0.8"), strict=True):
        regret = _regret(by_label(results, experiment, panel))
        if regret:
            ends = regret[max(regret)]
            good = ends[chosen] <= 1.25 * min(ends.values())
            yield Claim("fig6", f"{chosen} gives low regret", _listed(ends, ".3g"), good)


def _armwise(experiment: Experiment, results: pl.DataFrame) -> Iterator[Claim]:
    """Which learners select in proportion to merit, and what the others do instead."""
    where, panel = experiment.name, experiment.panels[0]
    for line in panel.lines:
        merit, given = shares_by_rank(results, experiment, panel, line)
        with np.errstate(divide="ignore"):
            ratio = merit / given
        if line.label in LOW:
            close = float(np.mean(np.abs(ratio - 1) < 0.1))
            paper = f"{line.label}: merit over selection is close to 1 for almost all arms"
            text = f"within 10 % for {close:.0%} of the arms"
            yield Claim(where, paper, text, close >= 0.9)
        elif line.label == "URS":
            gap = float(np.abs(given * len(given) - 1).max())
            paper = "URS: nearly the same share for every arm"
            yield Claim(where, paper, f"shares within {gap:.1%} of 1/M", gap < 0.05)
        elif line.label == "ETCG":
            top, rest = ratio[: panel.k], float(np.median(ratio[panel.k :]))
            paper = "ETCG: the top K are selected more than their merit, the others less"
            text = f"ratio {top.mean():.2f} on the top K, median {rest:.3g} on the others"
            yield Claim(where, paper, text, bool(top.max() < 1 < rest))
        elif line.label == "GAP-E":
            near = np.abs(np.arange(len(merit)) - panel.k + 0.5) < max(1, panel.k // 2)
            inside, outside = (float(np.mean(given[x] / merit[x])) for x in (near, ~near))
            paper = "GAP-E: arms near the K-th are selected more than their merit, others less"
            text = f"mean share over merit {inside:.2f} near the K-th, {outside:.2f} elsewhere"
            yield Claim(where, paper, text, outside < 1 < inside)


def _timing(experiment: Experiment, results: pl.DataFrame) -> Iterator[Claim]:
    for r in timed(experiment, results):
        paper = f"{r.panel}: {r.label} takes about {r.paper:g} s at T = 1e8"
        text = f"{r.seconds:.3g} s at T = {r.horizon:.3g}, {r.paper / r.seconds:.3g} times faster"
        yield Claim("timing", paper, text, r.seconds <= r.paper)


def _differences(record: dict[str, Any]) -> Claim:
    counts = np.array(record["counts"])
    powers = LOWEST + (np.arange(len(counts)) - 0.5) / PER_DECADE  # middles of the bins
    inside = counts[(powers > -14) & (powers < -10)].sum() / counts.sum()
    text = f"{inside:.0%} of the positive ones; the largest is {record['largest']:.2g}"
    paper = "most differences of set probabilities lie between 1e-14 and 1e-10"
    return Claim("fig3", paper, text, bool(inside > 0.5))


def _listed(numbers: dict[str, float], form: str) -> str:
    return ", ".join(f"{label} {number:{form}}" for label, number in numbers.items())


CHECKS = {
    "fig1": _comparison,
    "fig2": _comparison,
    "fig4": _ablation,
    "fig5": _ablation,
    "fig6": _parameters,
    "fig7": _armwise,
    "fig8": _armwise,
    "timing": _timing,
}

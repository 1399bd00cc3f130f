"""Claims of the paper's experimental section beside what was measured."""

from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.lab.experiments import Experiment
from evenhand.lab.series import Series, mean, series

LOW = ("IW-KSVFair", "IW-KSVFair (approx)", "MURaS")


class Claim(NamedTuple):
    """What the paper says, what was measured, and whether they agree."""

    where: str
    paper: str
    measured: str
    agrees: bool


def check(experiments: dict[str, Experiment], results: pl.DataFrame) -> list[Claim]:
    """All claims that the results at hand can speak to."""
    claims: list[Claim] = []
    for name in ("fig1", "fig2"):
        if name in experiments:
            claims += _comparison(name, _lines(experiments[name], results))
    for name in ("fig4", "fig5"):
        if name in experiments:
            claims += _ablation(experiments[name], results)
    if "fig6" in experiments:
        claims += _parameters(experiments["fig6"], results)
    return claims


def _lines(experiment: Experiment, results: pl.DataFrame, panel: int = 0) -> dict[str, Series]:
    chosen = experiment.panels[panel]
    found = {x.label: series(results, experiment, chosen, x) for x in chosen.lines}
    return {label: one for label, one in found.items() if len(one.horizons)}


def _comparison(where: str, lines: dict[str, Series]) -> list[Claim]:
    """Claims about one of the two comparisons, at the largest horizon all lines have."""
    if "IW-KSVFair (approx)" not in lines:
        return []
    horizon = min(int(one.horizons[-1]) for one in lines.values())
    ends = {
        label: float(mean(one.regret)[np.flatnonzero(one.horizons == horizon)[0]])
        for label, one in lines.items()
    }
    ours = ends["IW-KSVFair (approx)"]
    at = f"at T = {horizon:.3g}"
    others = {label: end for label, end in ends.items() if not label.startswith("IW-KSVFair")}
    best = min(others, key=lambda label: others[label])
    claims = [
        Claim(
            where,
            "IW-KSVFair has the lowest regret",
            f"{at}: {ours:.3g}; the lowest of the others is {best} with {others[best]:.3g}",
            ours < others[best],
        )
    ]
    if "IW-KSVFair" in ends:
        gap = ends["IW-KSVFair"] / ours - 1
        claims.append(
            Claim(where, "the approximation matches the exact version closely",
                  f"{at}: exact {ends['IW-KSVFair']:.4g}, approximate {ours:.4g} ({gap:+.1%})",
                  abs(gap) < 0.15)
        )  # fmt: skip
    for label, paper in (("NoIW", "without importance weights regret is substantially larger"),
                         ("NoMix", "without mixing regret is substantially larger"),
                         ("MURaS", "MURaS has substantially larger regret")):  # fmt: skip
        if label in ends:
            factor = ends[label] / ours
            claims.append(
                Claim(where, paper, f"{at}: {factor:.2f} times IW-KSVFair's", factor > 1.2)
            )
    for label, one in lines.items():
        growth = one.growth()
        if growth is None:
            continue
        low = label in LOW
        paper = "slope close to 2/3" if low else "slope close to 1"
        agrees = abs(growth.value - (2 / 3 if low else 1.0)) <= 0.1
        text = f"{growth.value:.3f} +- {growth.stderr:.3f}"
        claims.append(Claim(where, f"{label}: {paper}", text, agrees))
    return claims + _alignment(where, lines, horizon)


def _alignment(where: str, lines: dict[str, Series], horizon: int) -> list[Claim]:
    scores = {
        label: float(mean(one.alignment)[np.flatnonzero(one.horizons == horizon)[0]])
        for label, one in lines.items()
    }
    text = ", ".join(f"{label} {score:.3f}" for label, score in scores.items())
    ours = scores["IW-KSVFair (approx)"]
    claims = [Claim(where, "IW-KSVFair's alignment is nearly perfect", text, ours > 0.95)]
    for label in ("NoIW", "NoMix"):
        if label in scores:
            claims.append(
                Claim(
                    where,
                    f"{label} has lower alignment",
                    f"{scores[label]:.3f} against {ours:.3f}",
                    scores[label] < ours - 0.005,
                )
            )
    return claims


def _ablation(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    """IW-KSVFair below MURaS in every panel at every horizon."""
    claims = []
    for i, panel in enumerate(experiment.panels):
        lines = _lines(experiment, results, i)
        if {"IW-KSVFair (approx)", "MURaS"} <= lines.keys():
            ratio = mean(lines["MURaS"].regret) / mean(lines["IW-KSVFair (approx)"].regret)
            text = "MURaS over IW-KSVFair by horizon: " + ", ".join(f"{r:.2f}" for r in ratio)
            paper = f"{panel.title}: IW-KSVFair has lower regret than MURaS at every horizon"
            claims.append(Claim(experiment.name, paper, text, bool(np.all(ratio > 1))))
    return claims


def _parameters(experiment: Experiment, results: pl.DataFrame) -> list[Claim]:
    """The chosen constants are low among those tried."""
    claims = []
    for i, chosen in ((0, "Lambda=8"), (1, "Gamma=0.8")):
        lines = _lines(experiment, results, i)
        if chosen in lines:
            ends = {label: float(mean(one.regret)[-1]) for label, one in lines.items()}
            text = ", ".join(f"{label} {end:.3g}" for label, end in ends.items())
            good = ends[chosen] <= 1.25 * min(ends.values())
            claims.append(Claim("fig6", f"{chosen} gives low regret", text, good))
    return claims

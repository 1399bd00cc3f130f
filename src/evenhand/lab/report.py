"""One self-contained page with every figure, the numbers behind it, and the paper's claims."""

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment
from matplotlib.figure import Figure

from evenhand import __version__
from evenhand.files import replacing
from evenhand.lab.claims import check
from evenhand.lab.experiments import Experiment, load_preset, preset_names
from evenhand.lab.figures import draw, draw_differences
from evenhand.lab.fractions import HEAD, fractions
from evenhand.lab.series import mean, series, spread, timed
from evenhand.lab.store import Store

FORMATS = ("svg", "pdf", "png")


def write_report(folder: Path, experiments: list[Experiment] | None = None) -> Path:
    """Draw all figures and write the page into a directory of results, from those alone."""
    chosen = experiments or [load_preset(name) for name in preset_names()]
    store = Store(folder)
    results = store.read()
    sections, drawn = [], {}
    for experiment in chosen:
        figure = draw(experiment, results)
        if figure is not None:
            drawn[experiment.name] = experiment
            keep(figure, folder / "figures" / experiment.name)
            sections.append(_section(experiment, results, figure))
    differences = _read_differences(folder)
    if differences is not None:
        sections.append(_differences(differences, folder))
    sections.sort(key=lambda s: (not s["name"].startswith("fig"), s["name"]))
    page = Environment(autoescape=True).from_string(
        files("evenhand.lab").joinpath("templates", "report.html").read_text()
    )
    text = page.render(
        sections=sections,
        claims=check(drawn, results, differences),
        version=__version__,
        versions=results["versions"].unique().sort().to_list(),
        machines=results["machine"].unique().sort().to_list(),
        n_cells=len(results),
        hours=results["seconds"].sum() / 3600,
    )
    path = folder / "report.html"
    with replacing(path) as file:
        file.write(text.encode())
    return path


def keep(figure: Figure, stem: Path) -> None:
    """Save a figure in every format."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for ending in FORMATS:
        nothing = {"Date": None} if ending == "svg" else None
        if ending == "pdf":
            nothing = {"CreationDate": None}
        figure.savefig(stem.with_suffix(f".{ending}"), dpi=150, metadata=nothing)


def as_svg(figure: Figure) -> str:
    """Return a figure as SVG to stand in a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _section(experiment: Experiment, results: pl.DataFrame, figure: Figure) -> dict[str, Any]:
    section: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title,
        "note": experiment.note,
        "svg": as_svg(figure),
        "tables": [],
        "source": experiment.source,
    }
    if experiment.figure == "fractions":
        section["plain"] = {"head": HEAD, "rows": fractions(experiment, results)}
    if experiment.figure == "timing":
        section["plain"] = _timing(experiment, results)
    elif experiment.figure != "armwise":
        section["tables"] = _tables(experiment, results)
    return section


def _timing(experiment: Experiment, results: pl.DataFrame) -> dict[str, Any]:
    rows = [
        (r.panel, r.label, f"{r.horizon:.3g}", f"{r.seconds:.3g}", r.n, f"{r.paper:g}")
        for r in timed(experiment, results)
    ]
    head = ("game", "learner", "T", "seconds here (median)", "runs", "seconds in the paper")
    return {"head": head, "rows": rows}


def _tables(experiment: Experiment, results: pl.DataFrame) -> list[dict[str, Any]]:
    """Mean regret and its deviation, a table a panel, a row a line."""
    tables = []
    for panel in experiment.panels:
        rows: list[dict[str, Any]] = []
        horizons: list[int] = []
        for line in panel.lines:
            one = series(results, experiment, panel, line)
            if not len(one.horizons):
                continue
            horizons = max(horizons, one.horizons.tolist(), key=len)
            growth = one.growth()
            cells = {
                int(h): f"{a:.3g} ± {b:.2g}"
                for h, a, b in zip(one.horizons, mean(one.regret), spread(one.regret), strict=True)
            }
            rows.append(
                {
                    "label": line.label,
                    "cells": cells,
                    "slope": "" if growth is None else f"{growth.value:.3f} ± {growth.stderr:.3f}",
                    "alignment": f"{mean(one.alignment)[-1]:.4f}",
                    "n": int(np.sum(~np.isnan(one.regret), axis=1).min()),
                }
            )
        tables.append({"title": panel.title, "rows": rows, "horizons": horizons})
    return tables


def _read_differences(folder: Path) -> dict[str, Any] | None:
    path = folder / "differences.json"
    return json.loads(path.read_text()) if path.is_file() else None


def _differences(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    figure = draw_differences(record)
    keep(figure, folder / "figures" / "fig3")
    rows = [
        ("number of differences", f"{record['n']:,}", "1,550,400,000"),
        ("mean", f"{record['mean']:.3g}", "3.04e-10"),
        ("median of the positive (to a tenth of a decade)", f"{record['median']:.2g}", "4.84e-13"),
        ("largest", f"{record['largest']:.3g}", "2.98e-4"),
        ("exactly zero", f"{record['zero']:,}", "15,506"),
        ("positive, below 1e-24", f"{record['below']:,}", "1,356,087"),
    ]
    return {
        "name": "fig3",
        "title": "Set probabilities of the enumerated and the scalable design",
        "note": (
            "Both designs are given the same policies, those of a run of exact IW-KSVFair at "
            "T = 1e6 that refreshes every round. Where a policy is capped at exactly 1, sets "
            "without that arm have probability 0 in both designs: those are most of the zeros."
        ),
        "svg": as_svg(figure),
        "plain": {"head": ("", "here", "paper"), "rows": rows},
        "tables": [],
        "source": "",
    }

"""One self-contained page with the figures of experiments and the numbers behind them."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from jinja2 import Environment
from matplotlib.figure import Figure

from evenhand import __version__
from evenhand.display import in_minutes
from evenhand.files import replacing
from evenhand.lab.experiments import Experiment
from evenhand.lab.figures import KINDS, Draw, draw, looks_of
from evenhand.lab.series import Series, by_label, mean, spread
from evenhand.lab.store import Store
from evenhand.palette import Look, twins

METADATA: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
TWINS = twins()
Section = dict[str, Any]


def write_report(folder: Path, experiments: list[Experiment]) -> Path:
    """Draw experiments and write the page into a directory of results, from those alone."""
    results = Store(folder).read()
    found = (draw_section(one, results, folder) for one in experiments)
    return write_page(folder, results, [section for section in found if section is not None])


def write_page(
    folder: Path,
    results: pl.DataFrame,
    sections: list[Section],
    claims: Sequence[Any] = (),
    summary: Any = None,
) -> Path:
    """Write the page of some sections, and of a paper's claims and what they come to, if any."""
    if not sections:
        raise ValueError(f"there is nothing to show in {folder}; `evenhand reproduce` makes some")
    page = Environment(autoescape=True).from_string(
        files("evenhand.lab").joinpath("templates", "report.html").read_text()
    )
    used = {name: twin for name, twin in TWINS.items() if _uses(sections, name)}
    text = page.render(
        sections=sections,
        claims=claims,
        summary=summary,
        light={_variable(name): name for name in used},
        dark={_variable(name): twin for name, twin in used.items()},
        version=__version__,
        versions=results["versions"].unique().sort().to_list(),
        machines=results["machine"].unique().sort().to_list(),
        n_cells=len(results),
        spent=in_minutes(float(results["seconds"].sum())),
    )
    path = folder / "report.html"
    with replacing(path) as file:
        file.write(text.encode())
    return path


def draw_section(
    experiment: Experiment,
    results: pl.DataFrame,
    folder: Path,
    kinds: dict[str, Draw] = KINDS,
) -> Section | None:
    """Draw an experiment into ``figures/`` and return its section; None where results are missing.

    An experiment drawn arm by arm has no tables: its figure shows every number.
    """
    figure = draw(experiment, results, kinds)
    if figure is None:
        return None
    return {
        "name": experiment.name,
        "title": experiment.title,
        "note": experiment.note,
        "svg": keep(figure, folder / "figures" / experiment.name),
        "tables": [] if experiment.figure == "armwise" else _tables(experiment, results),
        "source": experiment.source,
    }


def keep(figure: Figure, stem: Path) -> str:
    """Save a figure in every format; returns its SVG to stand in a page."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    # the same ids every time, and words that can be searched
    with mpl.rc_context({"svg.hashsalt": "evenhand", "svg.fonttype": "none"}):
        for ending, metadata in METADATA.items():
            figure.savefig(stem.with_suffix(f".{ending}"), dpi=150, metadata=metadata)
    path = stem.with_suffix(".svg")
    text = shortened(path.read_text())
    path.write_text(text)
    return in_page(text[text.index("<svg") :])


def shortened(svg: str) -> str:
    """Leave out of an SVG what nobody sees: digits behind the second, line ends, who drew it."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def in_page(svg: str) -> str:
    """Let an SVG follow its page into the dark: colours become variables of the page's style."""

    def variable(found: re.Match[str]) -> str:
        return f"var({_variable(found[0])})" if found[0] in TWINS else found[0]

    return re.sub(r"#[0-9a-f]{6}\b", variable, svg)


def _variable(colour: str) -> str:
    return f"--on-{colour[1:]}"


def _uses(sections: list[Section], colour: str) -> bool:
    return any(_variable(colour) in text for s in sections for text in (s["svg"], str(s["tables"])))


def _tables(experiment: Experiment, results: pl.DataFrame) -> list[dict[str, Any]]:
    """Mean regret and its deviation: one table per panel, one row per line."""
    tables = []
    for panel in experiment.panels:
        lines = by_label(results, experiment, panel)
        rows = [_row(label, one, looks_of(panel)[label]) for label, one in lines.items()]
        horizons = max((row["cells"] for row in rows), key=len)
        sloped = any(row["slope"][0] for row in rows)
        tables.append({"title": panel.title, "rows": rows, "horizons": horizons, "sloped": sloped})
    return tables


def _row(label: str, one: Series, look: Look) -> dict[str, Any]:
    growth = one.growth()
    regret = zip(one.horizons.tolist(), mean(one.regret), spread(one.regret), strict=True)
    return {
        "label": label,
        "sign": look.sign,
        "colour": f"var({_variable(look.colour.lower())})",
        "cells": {horizon: (f"{a:.3g}", f"± {b:.2g}") for horizon, a, b in regret},
        "slope": ("", "") if growth is None else (f"{growth.value:.3f}", f"± {growth.stderr:.3f}"),
        "alignment": f"{mean(one.alignment)[-1]:.4f}",
        "n": int(np.sum(~np.isnan(one.regret), axis=1).min()),
    }

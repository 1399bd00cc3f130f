"""One self-contained page with the figures of experiments and the numbers behind them."""

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
from evenhand.files import replacing
from evenhand.lab.experiments import Experiment
from evenhand.lab.figures import KINDS, Draw, draw
from evenhand.lab.series import Series, by_label, mean, spread
from evenhand.lab.store import Store

METADATA: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
Section = dict[str, Any]


def write_report(folder: Path, experiments: list[Experiment]) -> Path:
    """Draw experiments and write the page into a directory of results, from those alone."""
    results = Store(folder).read()
    found = (draw_section(one, results, folder) for one in experiments)
    return write_page(folder, results, [section for section in found if section is not None])


def write_page(
    folder: Path, results: pl.DataFrame, sections: list[Section], claims: Sequence[Any] = ()
) -> Path:
    """Write the page of some sections, and of a paper's claims if there are any."""
    page = Environment(autoescape=True).from_string(
        files("evenhand.lab").joinpath("templates", "report.html").read_text()
    )
    text = page.render(
        sections=sections,
        claims=claims,
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
    with mpl.rc_context({"svg.hashsalt": "evenhand"}):  # the same ids every time
        for ending, metadata in METADATA.items():
            figure.savefig(stem.with_suffix(f".{ending}"), dpi=150, metadata=metadata)
    text = stem.with_suffix(".svg").read_text()
    return text[text.index("<svg") :]


def _tables(experiment: Experiment, results: pl.DataFrame) -> list[dict[str, Any]]:
    """Mean regret and its deviation: one table per panel, one row per line."""
    tables = []
    for panel in experiment.panels:
        rows = [_row(label, one) for label, one in by_label(results, experiment, panel).items()]
        horizons = max((row["cells"] for row in rows), key=len)
        tables.append({"title": panel.title, "rows": rows, "horizons": horizons})
    return tables


def _row(label: str, one: Series) -> dict[str, Any]:
    growth = one.growth()
    regret = zip(one.horizons.tolist(), mean(one.regret), spread(one.regret), strict=True)
    return {
        "label": label,
        "cells": {horizon: f"{a:.3g} ± {b:.2g}" for horizon, a, b in regret},
        "slope": "" if growth is None else f"{growth.value:.3f} ± {growth.stderr:.3f}",
        "alignment": f"{mean(one.alignment)[-1]:.4f}",
        "n": int(np.sum(~np.isnan(one.regret), axis=1).min()),
    }

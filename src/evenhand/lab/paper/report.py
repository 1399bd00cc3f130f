"""The report of the reproduction: the paper's figures and numbers, and its claims."""

import json
from pathlib import Path
from typing import Any

from evenhand.lab.earlier import with_earlier
from evenhand.lab.experiments import Experiment
from evenhand.lab.paper.claims import check
from evenhand.lab.paper.deployments import HONESTY, PAGES, honesty_rows, page_rows
from evenhand.lab.paper.drift import COURSES, course_rows
from evenhand.lab.paper.experiments import load_preset, preset_names
from evenhand.lab.paper.figures import KINDS, draw_differences
from evenhand.lab.paper.summary import summarise
from evenhand.lab.paper.tables import FRACTIONS, TIMING, fractions, timing
from evenhand.lab.report import Section, draw_section, keep, write_page
from evenhand.lab.store import Store


def write_report(folder: Path, experiments: list[Experiment] | None = None) -> Path:
    """Draw all figures and write the page into a directory of results, from those alone."""
    results = Store(folder).read()
    sections, drawn = [], []
    for experiment in experiments or map(load_preset, preset_names()):
        results, earlier = with_earlier(experiment, results)
        section = draw_section(experiment, results, folder, KINDS)
        if section is None:
            continue
        if earlier:
            section["note"] += (
                f" Runs of an earlier release: {', '.join(earlier)}. This one draws other random "
                "numbers, and its learners may have changed."
            )
        if experiment.figure == "fractions":
            section["plain"] = {"head": FRACTIONS, "rows": fractions(experiment, results)}
        elif experiment.figure == "honesty":
            section["plain"] = {"head": HONESTY, "rows": honesty_rows(experiment, results)}
            section["tables"] = []
        elif experiment.figure == "pages":
            section["plain"] = {"head": PAGES, "rows": page_rows(experiment, results)}
            section["tables"] = []
        elif experiment.figure == "course":
            section["plain"] = {"head": COURSES, "rows": course_rows(experiment, results)}
            section["tables"] = []
        elif experiment.figure == "timing":
            section["plain"] = {"head": TIMING, "rows": timing(experiment, results)}
            section["tables"] = []
        sections.append(section)
        drawn.append(experiment)
    differences, path = None, folder / "differences.json"
    if path.is_file():
        differences = json.loads(path.read_text())
        sections.append(_differences(differences, folder))
    sections.sort(key=lambda s: (not s["name"].startswith("fig"), s["name"]))
    claims = check(drawn, results, differences)
    summary = summarise(claims, max(results["horizon"].to_list())) if claims else None
    return write_page(folder, results, sections, claims, summary)


def _differences(record: dict[str, Any], folder: Path) -> Section:
    """The section of figure 3, with the paper's numbers."""
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
        "svg": keep(draw_differences(record), folder / "figures" / "fig3"),
        "plain": {"head": ("", "here", "paper"), "rows": rows},
        "tables": [],
        "source": "",
    }

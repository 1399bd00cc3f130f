"""Results that an earlier release made, for lines that have no others."""

import json

import polars as pl

from evenhand.lab.experiments import Experiment


def with_earlier(experiment: Experiment, results: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Let results of earlier releases stand for the lines of an experiment that have no others.

    A release that changes a learner's random numbers gives its cells other ids. Returns the results
    with the ids that the cells have now, and what was put in whose place, in words.
    """
    there, renamed, said = set(results["id"]), dict[str, str](), dict[str, None]()
    older: dict[str, str] | None = None
    for panel in experiment.panels:
        for line in panel.lines:
            cells = experiment.cells(panel, line)
            if not there.isdisjoint(cell.id for cell in cells):
                continue
            older = _by_content(results) if older is None else older
            found = {older[key]: c.id for c in cells if (key := _content(c.key)[0]) in older}
            if found:
                renamed |= found
                made = results.filter(pl.col("id").is_in(list(found)))["versions"]
                releases = sorted(set(made.str.extract(r"(evenhand \S+?),", 1).drop_nulls()))
                said[f"{line.label} ({', '.join(releases)})"] = None
    return results.with_columns(pl.col("id").replace(renamed)), list(said)


def _by_content(results: pl.DataFrame) -> dict[str, str]:
    """Ids by what the cells are, the latest random numbers first where there are several."""
    rows = [(*_content(key), name) for name, key in results.select("id", "key").iter_rows()]
    return {what: name for what, _, name in sorted(rows, key=lambda row: row[1])}


def _content(key: str) -> tuple[str, int]:
    """All of a cell's key but the version of its random numbers, and that version."""
    parts = json.loads(key)
    version = int(parts.pop("streams"))
    return json.dumps(parts, sort_keys=True), version

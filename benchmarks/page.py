"""The results: kept as data, shown as a page, compared with those committed."""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import glance
from benchmarks.harness import ROOT, TIMES_FASTER, Row, Section, plain_table

DATA = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("RESULTS.md")
HEAD = ["work", "against", "ours", "theirs", "measured", "goal", "met"]
PREFACE = """Made by `make bench`; one section again by `python -m benchmarks SECTION`. Times are
processor time on one core where nothing else is said, medians of repeated runs with their range in
brackets. Ratios ("times": how many times faster, or how many times smaller an error) are medians
over repetitions in which both took turns, with all but the outer tenths in brackets. Absolute
times depend on the machine and its load; the ratios of a section were measured in one run.

"""


def read(text: str) -> dict[str, Any]:
    """Sections by name from the data file's text."""
    return dict(json.loads(text)) if text else {}


def rows_of(section: dict[str, Any]) -> list[Row]:
    """Rows of a section as read."""
    return [Row(**row) for row in section["rows"]]


def keep(name: str, section: Section, measured_on: str, order: list[str]) -> None:
    """Put a section into the data file and write the page anew."""
    sections = read(DATA.read_text() if DATA.is_file() else "")
    sections[name] = {
        "measured_on": measured_on,
        "rows": [asdict(row) for row in section.rows],
        "text": section.text,
    }
    sections = {n: sections[n] for n in order if n in sections}
    DATA.write_text(json.dumps(sections, indent=1) + "\n")
    PAGE.write_text(render(sections))


def render(sections: dict[str, Any]) -> str:
    """Return the page."""
    shown = glance.table({name: rows_of(section) for name, section in sections.items()})
    parts = [PREFACE]
    for name, section in sections.items():
        title = {"gpu": "On a card"}.get(name, name.capitalize())
        parts.append(f"## {title}\n\nMeasured on {section['measured_on']}.\n\n")
        parts.append(plain_table(HEAD, [row.cells() for row in rows_of(section)]))
        if section["text"]:
            parts.append("\n" + section["text"])
        parts.append("\n")
    details = "".join(parts).rstrip("\n") + "\n"
    return "# Benchmarks\n\n" + _part("glance", shown) + "\n" + _part("details", details)


def _part(name: str, text: str) -> str:
    """A part of the page that documentation includes by its name."""
    return f"<!-- --8<-- [start:{name}] -->\n{text}<!-- --8<-- [end:{name}] -->\n"


def committed() -> dict[str, Any]:
    """Sections as last committed; without git, as they lie on disk."""
    done = subprocess.run(
        ["git", "show", f"HEAD:{DATA.relative_to(ROOT)}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return read(done.stdout)
    return read(DATA.read_text() if DATA.is_file() else "")


def complaints(before: list[Row], now: list[Row]) -> list[str]:
    """Say which ratios got worse by more than their spread, and which goals are missed.

    Only ratios are compared: seconds mean little on another machine or under another load.
    """
    old = {row.key: row for row in before if row.unit == TIMES_FASTER}
    found = []
    for row in now:
        was = old.get(row.key)
        if was is not None and _worse(was, row):
            found.append(f"worse: {row.key}: {_say(row)}, was {_say(was)}")
        if row.met is False:
            found.append(f"missed: {row.key}: {_say(row)}, goal {row.cells()[5]}")
    return found


def _worse(was: Row, now: Row) -> bool:
    if was.low is None or now.high is None:
        return False
    return now.high < was.low


def _say(row: Row) -> str:
    return row.cells()[4]

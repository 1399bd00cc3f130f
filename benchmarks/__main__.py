"""Run all benchmarks, or those named: ``python -m benchmarks [designs ...]``.

Sections of the results page that are not run again are kept.
"""

import re
import sys
from importlib import import_module

from benchmarks.harness import RESULTS, machine

ALL = ["designs", "learners"]
MARK = "<!-- {} -->\n"


def main(names: list[str]) -> None:
    unknown = set(names) - set(ALL)
    if unknown:
        sys.exit(f"unknown benchmarks {sorted(unknown)}; choose from {ALL}")
    old = RESULTS.read_text() if RESULTS.is_file() else ""
    sections = dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- |\Z)", old, re.DOTALL))
    for name in names or ALL:
        print(f"{name} ...", flush=True)
        section = import_module(f"benchmarks.bench_{name}").run()
        sections[name] = f"Measured on {machine()}.\n\n{section}\n"
        print(section)
        body = "".join(MARK.format(n) + sections[n] for n in ALL if n in sections)
        RESULTS.write_text("# Benchmarks\n\nMade by `make bench`. " + PREFACE + "\n\n" + body)


PREFACE = (
    "Medians of repeated runs with their range in brackets. Absolute times depend on the machine "
    "and its load; the ratios were measured in one run."
)

if __name__ == "__main__":
    main(sys.argv[1:])

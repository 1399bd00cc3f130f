"""Run all benchmarks, or those named: ``python -m benchmarks [cascades designs ...]``.

Sections of the results page that are not run again are kept.
"""

import sys
import time
from importlib import import_module

from benchmarks import page
from benchmarks.harness import machine

ALL = [
    "cascades",
    "networks",
    "runs",
    "designs",
    "samples",
    "merits",
    "slow",
    "footprint",
    "growth",
]
EVERY = [*ALL, "pages", "service", "gpu"]  # need wrk and free cores, or a card: only by name


def main(names: list[str]) -> None:
    """Run sections, write the page, and print what got worse."""
    unknown = set(names) - set(EVERY)
    if unknown:
        sys.exit(f"unknown benchmarks {sorted(unknown)}; choose from {EVERY}")
    before, found = page.committed(), []
    for name in names or ALL:
        start = time.perf_counter()
        print(f"{name} ...", flush=True)
        section = import_module(f"benchmarks.bench_{name}").run()
        page.keep(name, section, machine(section.packages), EVERY)
        for row in section.rows:
            print("  " + " | ".join(row.cells()))
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
        old = page.rows_of(before[name]) if name in before else []
        found += page.complaints(old, section.rows)
    print(
        "\n".join(found) if found else "nothing got worse by more than its spread, no goal missed"
    )


if __name__ == "__main__":
    main(sys.argv[1:])

"""The benchmarks run, at tiny size, and notice what got worse. No time is asserted."""

import json
from dataclasses import asdict
from importlib import import_module

import pytest
from benchmarks import bench_merits, glance, page
from benchmarks.__main__ import ALL, main
from benchmarks.harness import Row, Section, Times, faster


@pytest.fixture(autouse=True)
def no_download(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("urllib.request.urlopen", refuse)


# the baselines of "runs" take functions, so that their code is never kept: 25 s of compiling;
# "growth" and "footprint" start a process per point
SLOW = {"runs", "growth", "footprint", "slow"}
SECTIONS = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in ALL]


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_runs_with_or_without_its_peers(name, monkeypatch):
    monkeypatch.setattr(bench_merits, "PYDVL", bench_merits.ROOT / "nowhere")
    section = import_module(f"benchmarks.bench_{name}").run(small=True)
    assert section.rows
    for row in section.rows:
        assert len(row.cells()) == len(page.HEAD)
        assert "|" not in "".join(row.cells())
    keys = [row.key for row in section.rows]
    assert len(set(keys)) == len(keys)


def test_a_worse_ratio_is_noticed_and_noise_is_not():
    before = [faster("fit", "R", Times([1.0, 1.1, 1.2]), Times([100.0, 110.0, 120.0]))]
    same = [faster("fit", "R", Times([1.1, 1.1, 1.2]), Times([100.0, 110.0, 120.0]))]
    worse = [faster("fit", "R", Times([2.0, 2.2, 2.4]), Times([100.0, 110.0, 120.0]))]
    assert page.complaints(before, same) == []
    assert page.complaints(before, before) == []
    (found,) = page.complaints(before, worse)
    assert found.startswith("worse: fit / R: 50 times")
    assert page.complaints(worse, before) == []
    assert page.complaints([], worse) == []  # a new row has nothing to be compared with


def test_seconds_are_not_compared_but_missed_goals_are_named():
    def row(seconds):
        return Row("start", "", "", "", seconds, seconds, seconds, "s", 1.0, at_least=False)

    assert page.complaints([row(0.1)], [row(0.9)]) == []
    (found,) = page.complaints([row(0.1)], [row(1.5)])
    assert found == "missed: start / : 1.5 s, goal <= 1"


def test_the_page_opens_with_a_table_of_what_people_use_today():
    pick = glance.PICKS[0]
    ours = Row(pick.work + " values", pick.peer, "1 s (1 s to 2 s)", "7 s", 7.01, 6.0, 8.0)
    other = Row(pick.work + " values", "nobody", "1 s")
    sections = {
        pick.section: {"measured_on": "x", "rows": [asdict(ours), asdict(other)], "text": ""}
    }
    text = page.render(sections)
    assert text.index(f"| {pick.words} | {pick.use} | 7 s | 1 s | **7** |") < text.index("Made by")
    assert glance.table({}) == ""
    kept = {n: page.rows_of(s) for n, s in page.read(page.DATA.read_text()).items()}
    lines = glance.table(kept).splitlines()
    measured = [p for p in glance.PICKS if p.section in kept]
    assert len(lines) >= len(measured)  # every row that is picked is found


def test_a_peer_that_is_missing_gives_a_row():
    row = faster("draw", "R", Times([1.0]), "not installed", 100)
    assert row.met is None
    assert row.cells() == ["draw", "R", "1 s", "not installed", "", ">= 100", ""]


def test_a_section_rewrites_only_its_part(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page, "DATA", tmp_path / "results.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "RESULTS.md")
    ours = Row("draw", "R", "1 s", "2 s", 2.0, 1.9, 2.1, goal=1.0)
    page.keep("designs", Section([ours], "more"), "a machine", ALL)
    page.keep("cascades", Section([Row("spread", "C", "3 s")]), "another machine", ALL)
    text = page.PAGE.read_text()
    assert text.index("## Cascades") < text.index("## Designs")
    assert "| draw | R | 1 s | 2 s | 2 times (1.9 to 2.1) | >= 1 | yes |" in text
    assert "Measured on another machine." in text
    kept = page.read(page.DATA.read_text())
    assert page.rows_of(kept["designs"]) == [ours]
    assert json.loads(page.DATA.read_text())["designs"]["text"] == "more"


def test_an_unknown_section_is_refused():
    with pytest.raises(SystemExit, match="choose from"):
        main(["designes"])

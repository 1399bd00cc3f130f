"""The room of pages: geometry of charts, words, and escaping."""

import json
import re

import numpy as np
import pytest

from evenhand.pages.charts import Mark, bars, ticks, time_chart, time_ticks
from evenhand.pages.render import environment, render, static_files, static_url
from evenhand.pages.words import number, percent, rate, span

EVIL = "<script>alert('x')</script>"
CHART = '{% from "_charts.html" import time_chart %}{{ time_chart(chart, "c") }}'
ROWS = '{% from "_charts.html" import arm_rows %}{{ arm_rows(rows, bars, 0.5, none, "caption") }}'


def drawn(chart):
    return environment().from_string(CHART).render(chart=chart)


def test_lines_go_through_their_points_and_break_where_there_is_none():
    chart = time_chart("t", [0.0, 10.0, 20.0, 40.0], [("a", [0.0, np.nan, 0.2, 0.4])])
    assert chart.lines[0].path == "M0.0 200.0M500.0 100.0L1000.0 0.0"
    assert chart.lines[0].last == "40\u00a0%"
    assert [tick.words for tick in chart.ys] == [f"{x}\u00a0%" for x in (0, 10, 20, 30, 40)]
    assert chart.table[0][0] == "1970-01-01 00:00:40"  # newest first
    assert chart.table[-2][1] == "\u2013"


def test_marks_outside_the_axis_are_left_out_and_close_ones_share_a_flag():
    marks = [Mark(-1.0, "join", "before"), Mark(50.0, "join", "x joined"),
             Mark(50.5, "leave", "y left"), Mark(99.0, "terms", "terms")]  # fmt: skip
    chart = time_chart("t", [0.0, 100.0], [("a", [0.1, 0.2])], marks)
    assert [(f.place, f.number) for f in chart.flags] == [(50.0, 1), (99.0, 2)]
    assert [(n, words) for n, _, _, words in chart.legend] == [
        (1, "x joined"), (1, "y left"), (2, "terms"),
    ]  # fmt: skip


@pytest.mark.parametrize("low", [0.0, -0.3])
@pytest.mark.parametrize("high", [1e-9, 0.013, 0.5, 1.0, 37.0, 1e7])
def test_ticks_are_round_few_and_hold_all(low, high):
    found = ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high * 0.999
    assert 2 <= len(found) <= 8
    assert np.allclose(np.diff(found), found[1] - found[0])


@pytest.mark.parametrize("width", [3.0, 60.0, 4000.0, 86400.0, 3e6, 1e9])
def test_ticks_of_time_are_few_and_inside(width):
    start = 1.7e9
    found = time_ticks(start, start + width)
    assert 1 <= len(found) <= 32
    assert all(0.0 <= tick.place <= 100.0 for tick in found)


def test_a_chart_of_nothing_says_so():
    assert "Not enough points yet" in drawn(time_chart("t", [], [("a", [])]))
    assert "Not enough points yet" in drawn(time_chart("t", [5.0], [("a", [1.0])]))


def test_names_are_escaped_everywhere():
    end = "</script><b>"
    text = drawn(time_chart(EVIL, [0.0, 1.0], [(EVIL, [0.1, 0.2]), (end, [0.2, 0.1])],
                            [Mark(0.5, "join", EVIL)]))  # fmt: skip
    assert "<script>alert" not in text
    assert "</script><b>" not in text
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.S)[1])
    assert data["names"] == [EVIL, end]  # and is still what it was
    row = {"id": 1, "name": EVIL, "href": "/x?a=1&b=2", "due": 0.1, "given": 0.2, "gap_words": "",
           "merit": None, "stderr": None, "shown": 3,
           "tags": [{"kind": "", "words": EVIL}]}  # fmt: skip
    some, top = bars([0.1], [0.2], [0.05], [0.3])
    text = environment().from_string(ROWS).render(rows=[row], bars=some)
    assert "<script>" not in text
    assert "/x?a=1&amp;b=2" in text
    problem = render("problem.html", frame="service.html", title=EVIL, detail=EVIL, status=404,
                     user=None, version="", alone=False)  # fmt: skip
    assert "<script>alert" not in problem
    assert top >= 0.3


def test_no_page_has_inline_script_or_style():
    loader = environment().loader
    for name in loader.list_templates():
        source = loader.get_source(environment(), name)[0]
        inlined = [line for line in source.splitlines() if "inlined(" in line]
        assert not inlined or name == "base.html"  # there only for pages that stand alone
        assert " style=" not in source
        assert not re.search(r"\son[a-z]+=", source), name
        for tag in re.findall(r"<script[^>]*>", source):
            assert "src=" in tag or "application/json" in tag or name == "base.html"


def test_nothing_is_fetched_from_elsewhere():
    for name, content in static_files().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$|/\*.*?\*/", "", text, flags=re.M | re.S), name
    assert static_url("style.css") != static_url("page.js")


def test_bars_are_parts_of_the_widest():
    found, top = bars([0.1, None], [0.2, 0.0], [0.05, None], [0.4, None])
    assert top == pytest.approx(0.4)
    assert found[0] == (25.0, 12.5, 100.0, 50.0)
    assert found[1] == (None, None, None, 0.0)


def test_words():
    assert percent(1.0) == "100\u00a0%"
    assert number(float("nan")) == "\u2013"
    assert rate(1500.0) == "1\u202f500 per second"
    assert span(86400 * 400) == "400 days"

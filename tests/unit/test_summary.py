"""The report's summary: counts are those of the claims, and every failure has its place."""

import re
from pathlib import Path

import pytest

from evenhand.lab.earlier import with_earlier
from evenhand.lab.paper.claims import Claim
from evenhand.lab.paper.experiments import load_preset
from evenhand.lab.paper.summary import THEMES, summarise, theme_of
from evenhand.lab.report import in_page, shortened
from evenhand.lab.store import Store
from evenhand.learners import EvenHand

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def test_counts_are_those_of_the_claims():
    claims = [
        Claim("fig3", "most differences lie between", "72 %", True),
        Claim("fig6", "Gamma=0.8 gives low regret", "others are lower", False),
        Claim("fig6", "Lambda=8 gives low regret", "the lowest", True),
        Claim("fig7", "GAP-E: arms near the K-th", "1.14 and 1.13", False),
    ]
    found = summarise(claims, 10**5)
    assert (found.confirmed, found.n, found.short) == (2, 4, True)
    assert not summarise(claims, 10**8).short
    assert [len(x) for x in (found.whole, found.part, found.none)] == [1, 1, 1]
    assert found.part[0].confirmed == 1
    assert found.part[0].against == [claims[1]]
    better = summarise([claim._replace(agrees=True) for claim in claims], 10**8)
    assert (better.confirmed, better.part, better.none) == (4, [], [])


def test_a_claim_without_a_theme_is_refused():
    with pytest.raises(ValueError, match="every claim must have a theme, got none for fig9"):
        theme_of(Claim("fig9", "something new", "", True))


def test_the_page_kept_says_what_its_table_says():
    """Counted again from the table of claims, which stands below the summary."""
    page = (KEPT / "report.html").read_text()
    table = page[page.index('id="claims"') : page.index('id="fig1"')]
    rows = re.findall(r'<tr><td>(\w+)</td>.*?<td class="(yes|no)">', table)
    agree = sum(answer == "yes" for _, answer in rows)
    assert f"These runs speak to {len(rows)} statements" in page
    assert f">{agree} are confirmed<" in page
    assert f">{len(rows) - agree} are not<" in page
    summary = page[page.index('id="summary"') : page.index('id="claims"')]
    assert summary.count("&ndash;") == len(rows) - agree  # each failure is named
    assert "We have no explanation." not in summary
    reasons = sum(bool(theme.why) for theme in THEMES)
    assert summary.count("Why, we think") == reasons  # none is left over


def test_results_of_an_earlier_release_are_drawn_and_said_to_be(monkeypatch):
    results, preset = Store(KEPT).read(), load_preset("evenhand")
    found, said = with_earlier(preset, results)
    assert said == ["EvenHand (evenhand 0.1.0)", "EvenHand, the paper's sizes (evenhand 0.1.0)"]
    assert len(found) == len(results)
    panel = preset.panels[0]
    ids = {cell.id for cell in preset.cells(panel, panel.lines[1])}
    assert ids.isdisjoint(results["id"])
    assert not ids.isdisjoint(found["id"])
    monkeypatch.setattr(EvenHand, "trajectory", 2)  # what they were made with
    again, said = with_earlier(load_preset("evenhand"), results)
    assert said == []
    assert again.equals(results)


def test_a_figure_keeps_its_words_and_follows_the_page():
    svg = '<svg><metadata>who</metadata>\n <path d="M 1.23456 2.5" style="fill: #d55e00"/>'
    svg += '<text x="0.123456">0.99512 #zzzzzz</text><path style="stroke: #123456"/></svg>'
    text = in_page(shortened(svg))
    assert "0.99512" in text
    assert 'd="M 1.23 2.5"' in text
    assert 'x="0.12"' in text
    assert "who" not in text
    assert "fill: var(--on-d55e00)" in text
    assert "stroke: #123456" in text

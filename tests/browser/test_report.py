"""The report of the reproduction, as it is kept, in a real browser, from a file."""

from pathlib import Path

import pytest

from tests.browser.conftest import listened
from tests.browser.test_browser import LOOKS, findings

REPORT = Path(__file__).parents[2] / "docs" / "reproduction" / "report.html"
CUT_OFF = """[...document.querySelectorAll('.wide')].filter(
    one => one.scrollWidth > one.clientWidth + 1).length"""
GROUND = "getComputedStyle(document.querySelector('figure')).backgroundColor"


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_the_report_fits_and_asks_nobody(browser, look):
    context = browser.new_context(**look)
    seen, asked, wrong = listened(context, REPORT.as_uri())
    width, phone = look["viewport"]["width"], look["color_scheme"] == "dark"
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    assert (seen.evaluate(CUT_OFF) > 0) is phone  # tables fit a page, and scroll on a phone
    assert seen.evaluate(GROUND) == ("rgb(28, 32, 40)" if phone else "rgb(255, 255, 255)")
    assert seen.locator("#summary ~ ul").first.is_visible()
    assert asked == [REPORT.as_uri()]
    assert wrong == []
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_it_is_fit_for_assistive_software(browser, look):
    context = browser.new_context(**look)
    seen = context.new_page()
    seen.goto(REPORT.as_uri())
    assert findings(seen) == []
    context.close()


def test_a_table_too_wide_would_be_seen(browser):
    context = browser.new_context(**LOOKS[0])
    seen = context.new_page()
    seen.goto(REPORT.as_uri())
    seen.evaluate("document.querySelector('.wide table').style.width = '2000px'")
    assert seen.evaluate(CUT_OFF) == 1
    seen.evaluate("document.querySelector('.wide').style.overflow = 'visible'")
    assert seen.evaluate("document.documentElement.scrollWidth") > 1200
    context.close()

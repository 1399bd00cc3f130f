"""The page of a saved learner in a real browser, from a file."""

import numpy as np
import pytest

from evenhand.learners import EvenHand
from evenhand.policy import Terms
from evenhand.portrait import page
from tests.browser.conftest import EVIL, listened
from tests.browser.test_browser import LOOKS, findings

END = "</script></title><img src=x onerror='window.evil=1'>"
NAMES = [EVIL, END, "dee & co", *(f"seller {i}" for i in range(9))]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page of a learner that has seen some."""
    terms = Terms(floors=0.02, unit="shares")
    learner, rng = EvenHand(m=12, k=3, names=NAMES, terms=terms, seed=1), np.random.default_rng(1)
    for _ in range(60):
        batch = learner.ask()
        learner.tell(batch, rng.random(batch.sizes.shape) < 0.3)
    learner.pause("seller 8")
    path = tmp_path_factory.mktemp("alone") / "page.html"
    path.write_text(page(learner, title=END, lead=EVIL))
    return path


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_a_page_without_a_server(browser, file, look):
    context = browser.new_context(**look)
    seen, asked, wrong = listened(context, file.as_uri())
    assert seen.inner_text("h1") == END
    assert seen.evaluate("document.documentElement.scrollWidth") <= look["viewport"]["width"]
    seen.fill("#find", "SELLER")
    assert seen.locator("#arms-list tbody tr:visible").count() == 9
    assert seen.locator("#why > details:visible").count() == 9
    seen.fill("#find", "")
    seen.click("#arm-0")
    assert seen.locator("#why-0").evaluate("one => one.open")
    assert "It is due" in seen.inner_text("#why-0")
    assert EVIL in seen.inner_text("#why-0")
    assert seen.evaluate("window.evil") is None
    assert asked == [file.as_uri()]
    assert wrong == []
    context.close()


def test_it_is_fit_for_assistive_software(browser, file):
    context = browser.new_context(bypass_csp=True)
    seen = context.new_page()
    seen.goto(file.as_uri())
    assert findings(seen) == []
    context.close()


def test_it_works_without_scripts(browser, file):
    context = browser.new_context(java_script_enabled=False)
    seen = context.new_page()
    seen.goto(file.as_uri())
    assert not seen.locator("#find").is_visible()
    seen.locator("#why-3 > summary").click()
    assert "It is due" in seen.inner_text("#why-3")
    context.close()

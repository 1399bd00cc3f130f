"""The documentation in a real browser, over http: search finds, formulas can be read."""

import functools
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.browser.conftest import Visitor

ROOT = Path(__file__).parents[2]
LOOKS = [
    {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
]
ENTRANCES = ["index", "service", "federated", "data-values", "influence", "survey", "researchers"]
FORMULAS = ["merits", "designs", "theorem", "full-sets"]


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a line per request."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as ``make docs`` builds it, served on loopback."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(port=server.server_port)
    server.shutdown()
    server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_search_finds_what_is_typed(browser, site, look):
    visitor = Visitor(browser, site, **look)
    visitor.go("/index.html")
    if look["viewport"]["width"] < 900:
        visitor.page.click("label[for=__search] >> visible=true")
    visitor.page.click(".md-search__input")
    visitor.page.keyboard.type("Sampford")
    visitor.page.wait_for_selector(".md-search-result__item a")
    found = visitor.page.eval_on_selector_all(
        ".md-search-result__item a", "all => all.map(one => one.href)"
    )
    assert any(re.search(r"/(survey|designs)\.html", href) for href in found)
    assert visitor.wrong == []
    visitor.context.close()


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_pages_fit_and_formulas_are_as_large_as_the_text(browser, site, look):
    visitor = Visitor(browser, site, **look)
    for name in [*ENTRANCES, *FORMULAS]:
        assert visitor.go(f"/{name}.html") == 200
        width = visitor.page.evaluate("document.documentElement.scrollWidth")
        assert width <= look["viewport"]["width"], name
        sizes = visitor.page.eval_on_selector_all(
            "article math",
            "all => all.filter(one => one.offsetParent !== null || one.getClientRects().length)"
            ".map(one => [one.getBoundingClientRect().height,"
            " parseFloat(getComputedStyle(one).fontSize),"
            " parseFloat(getComputedStyle(one.closest('p, li, td, th, div')).fontSize)])",
        )
        assert bool(sizes) >= (name in FORMULAS), name
        for height, own, around in sizes:
            assert height >= 8, name
            assert own >= 0.99 * around, name
    assert visitor.wrong == []
    visitor.context.close()

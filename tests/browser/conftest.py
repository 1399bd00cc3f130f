"""A browser and a service with something to see. Without a browser tests skip, and say so."""

import shutil
import time
import warnings

import pytest

from tests.service.running import Service

EVIL = "<script>window.evil=1</script>"
FIVE = ["ada", "bob", EVIL, "dee & co", "eve"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
WHERE = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")  # Playwright's event loop is in the way of tests that run their own
def browser():
    """Debian's Chromium, or a skip that cannot be overlooked."""
    program = next(filter(None, map(shutil.which, WHERE)), None)
    sync_api = pytest.importorskip("playwright.sync_api")
    if program is None:
        warnings.warn(pytest.PytestWarning("NO BROWSER: pages are not tested"), stacklevel=1)
        pytest.skip("NO BROWSER: apt install chromium; pages are not tested in one")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """A service with an experiment of five arms and one of 300, both with some history."""
    running = Service(tmp_path_factory.mktemp("pages")).start()
    many = [f"item {i:03d}" for i in range(300)]
    for name, arms, k in (("home", FIVE, 2), ("many", many, 5)):
        new = {"name": name, "arms": arms, "k": k, "seed": 3}
        assert running.call("POST", "/v1/experiments", new)[0] == 201
    end, n = time.monotonic() + 60, 0
    while n < 4:  # points are two seconds apart
        assert time.monotonic() < end, running.said()
        for name in ("home", "many"):
            traffic(running, name, 100)
        n = min(
            len(running.call("GET", f"/v1/experiments/{name}/series")[1]["points"])
            for name in ("home", "many")
        )
    pause = {"call": "pause", "arms": ["eve"]}
    assert running.change("/v1/experiments/home", pause)[0] == 200
    yield running
    running.stop()


def traffic(service, name, n):
    """Ask and tell some rows."""
    status, said = service.call("POST", f"/v1/experiments/{name}/ask", {"n": n})
    assert status == 200, said
    tells = [
        {"id": row["id"], "reward": float("ada" in row["arms"] or "item 007" in row["arms"])}
        for row in said["decisions"] if row["learns"]
    ]  # fmt: skip
    if tells:
        assert service.call("POST", f"/v1/experiments/{name}/tell", {"tells": tells})[0] == 200


def follow(page, where, key=None):
    """Click on something, or press a key there, and wait for the page it leads to."""
    with page.expect_navigation():
        page.press(where, key) if key else page.click(where)


class Visitor:
    """A page of a browser that notes all that goes wrong."""

    def __init__(self, browser, service, **options):
        self.base = f"http://127.0.0.1:{service.port}"
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.wrong = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._asked)

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _asked(self, request):
        if not request.url.startswith(self.base):
            self.wrong.append(f"another host: {request.url}")

    def go(self, path):
        answer = self.page.goto(self.base + path)
        return answer.status

    def log_in(self, key):
        assert self.go("/login") == 200, self.page.content()
        self.page.fill("#key", key)
        follow(self.page, "text=Log in >> nth=-1")
        return self


@pytest.fixture
def visit(browser, service):
    """Make visitors, logged in with the first key unless another is given."""
    made = []

    def come(key=None, **options):
        visitor = Visitor(browser, service, **options)
        made.append(visitor)
        return visitor.log_in(key or service.key)

    yield come
    for visitor in made:
        visitor.context.close()


def listened(context, url):
    """Open a page; return it, what it asked for, and what it complained of."""
    seen, asked, wrong = context.new_page(), [], []
    seen.on("request", lambda request: asked.append(request.url))
    seen.on("console", lambda message: wrong.append(message.text))
    seen.on("pageerror", lambda error: wrong.append(str(error)))
    seen.goto(url)
    return seen, asked, wrong

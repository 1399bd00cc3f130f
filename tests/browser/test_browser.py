"""Pages in a real browser."""

from pathlib import Path

import pytest

from tests.browser.conftest import EVIL, Visitor, follow, traffic

PAGES = [
    "/", "/experiments/home", "/experiments/many", "/experiments/home/arms/0",
    "/experiments/home/arms/2", "/experiments/home/audit", "/experiments/home/plans", "/audit",
]  # fmt: skip
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
LOOKS = [
    {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
]


def findings(page):
    """Serious findings of axe-core, in words."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in found["violations"] if one["impact"] in ("serious", "critical")
    ]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark-phone"])
def test_every_page_is_sound(visit, look):
    """No console errors, no other host, nothing serious for assistive software, no overflow."""
    visitor = visit(**look, bypass_csp=False)
    for path in PAGES if look is LOOKS[0] else [*PAGES[:4], PAGES[-1]]:
        assert visitor.go(path) == 200, path
        width = visitor.page.evaluate("document.documentElement.scrollWidth")
        assert width <= look["viewport"]["width"], path
        assert findings(visitor.page) == [], path
        assert visitor.page.evaluate("window.evil") is None
    assert visitor.wrong == []


def test_axe_would_find_something(visit):
    page = visit().page
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"/static/x\"><button>')"
    )
    assert {one.split(":")[0] for one in findings(page)} >= {"image-alt", "button-name"}


def test_login_and_logout(browser, service, visit):
    stranger = Visitor(browser, service)
    stranger.go("/experiments/home?sort=merit")
    assert stranger.page.url.startswith(stranger.base + "/login?to=")
    stranger.page.fill("#key", "eh_wrong")
    follow(stranger.page, "#key", "Enter")
    assert "unknown, revoked or expired" in stranger.page.inner_text("[role=alert]")
    stranger.page.fill("#key", service.key)
    follow(stranger.page, "#key", "Enter")
    assert stranger.page.url.endswith("/experiments/home?sort=merit")  # where it wanted to go
    (cookie,) = stranger.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert service.key not in cookie["value"]
    follow(stranger.page, "text=Log out")
    assert stranger.page.url.endswith("/login")
    stranger.go("/")
    assert "/login" in stranger.page.url
    stranger.context.clear_cookies()
    stranger.context.add_cookies([cookie])  # the old cookie opens nothing any more
    stranger.go("/")
    assert "/login" in stranger.page.url
    stranger.context.close()


def test_a_link_can_hold_a_key_behind_its_hash(browser, service):
    stranger = Visitor(browser, service)
    asked = []
    stranger.page.on("request", lambda request: asked.append(request.url))
    stranger.go("/login#key=" + service.key)
    stranger.page.wait_for_url(stranger.base + "/")
    assert "Experiments" in stranger.page.inner_text("h1")
    assert not any(service.key in url.split("#")[0] for url in asked)
    assert stranger.wrong == []
    stranger.context.close()


def test_keys_see_what_they_may(service, visit):
    asker = service.call("POST", "/v1/keys", {"name": "asker", "scopes": ["ask"]})[1]["key"]
    visitor = visit(asker)
    assert visitor.go("/") == 403
    assert "the key must have the scope read" in visitor.page.inner_text("main")
    new = {"name": "one", "scopes": ["read"], "experiment": "home"}
    visitor = visit(service.call("POST", "/v1/keys", new)[1]["key"])
    visitor.go("/")
    assert "home" in visitor.page.inner_text("table")
    assert "many" not in visitor.page.inner_text("table")
    assert visitor.go("/experiments/many") == 403
    assert visitor.go("/audit") == 403
    assert visitor.go("/experiments/home") == 200
    assert visitor.page.query_selector("text=Pause the experiment") is None


def names(page):
    return [cell.strip() for cell in page.locator("table.arms tbody th a").all_inner_texts()]


def test_arms_are_sorted_searched_and_paged_on_the_server(visit):
    visitor = visit()
    page = visitor.page
    visitor.go("/experiments/many")
    assert len(names(page)) == 25
    follow(page, "#sort-name")
    assert names(page) == [f"item {i:03d}" for i in range(25)]
    assert page.get_attribute("th[aria-sort]", "aria-sort") == "ascending"
    follow(page, "#sort-name")
    assert names(page)[0] == "item 299"
    follow(page, "text=next")
    assert names(page)[0] == "item 274"
    page.fill("#q", "ITEM 12")
    follow(page, "#q", "Enter")
    assert names(page) == [f"item {i}" for i in range(129, 119, -1)]
    assert "10" in page.inner_text("#table p")
    page.fill("#q", "nobody")
    follow(page, "#q", "Enter")
    assert "No arm fits" in page.inner_text("table.arms")
    visitor.go("/experiments/many?sort=due&order=up")
    shares = [
        float(x.split()[0]) for x in page.locator("table.arms td:nth-child(2)").all_inner_texts()
    ]
    assert shares == sorted(shares)
    visitor.go("/experiments/many?page=999999&sort=nonsense&order=x&window=x")
    assert names(page)  # the last page
    assert visitor.wrong == []


def test_pages_update_by_themselves(service, visit):
    visitor = visit()
    page = visitor.page
    visitor.go("/experiments/home")
    page.evaluate("window.stayed = 1")
    page.focus("#sort-merit")
    page.click("#numbers summary")
    page.focus("#sort-merit")
    before = page.inner_text("#facts")
    traffic(service, "home", 200)
    page.wait_for_function("was => document.getElementById('facts').innerText !== was", arg=before)
    assert page.evaluate("window.stayed") == 1  # not loaded again
    assert page.evaluate("document.activeElement.id") == "sort-merit"
    assert page.evaluate("document.getElementById('numbers').open")
    assert visitor.wrong == []


def test_names_are_shown_as_they_are(visit):
    visitor = visit()
    for path in ("/experiments/home", "/experiments/home/plans"):
        visitor.go(path)
        assert EVIL in visitor.page.inner_text("main")
    visitor.go("/experiments/home/arms/2")
    assert EVIL in visitor.page.inner_text("h1")
    visitor.page.hover(".plot > svg >> nth=0")
    visitor.page.wait_for_function("document.querySelector('.readout').innerText.startsWith('20')")
    assert visitor.page.evaluate("window.evil") is None
    assert visitor.wrong == []


def test_all_works_without_script(visit):
    visitor = visit(java_script_enabled=False)
    visitor.go("/experiments/many")
    follow(visitor.page, "#sort-name")
    assert names(visitor.page)[0] == "item 000"
    assert visitor.page.locator("figure path").count() > 5
    visitor.page.click("#chart-1-table summary")
    assert visitor.page.is_visible("#chart-1-table table")


def test_by_keyboard(visit):
    visitor = visit()
    visitor.go("/experiments/many")
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("document.activeElement.innerText") == "Skip to content"
    visitor.page.keyboard.press("Enter")
    assert visitor.page.url.endswith("#main")
    visitor.page.focus("#sort-name")
    with visitor.page.expect_navigation():
        visitor.page.keyboard.press("Enter")
    assert names(visitor.page)[0] == "item 000"


def test_an_administrator_pauses_and_resumes_and_the_audit_says_so(visit):
    visitor = visit()
    page = visitor.page
    visitor.go("/experiments/home")
    follow(page, "text=Pause the experiment")
    assert "paused" in page.inner_text("h1")
    follow(page, "text=Resume the experiment")
    assert "running" in page.inner_text("h1")
    visitor.go("/experiments/home/arms/4")
    follow(page, "text=Show it again")
    follow(page, "text=Pause this arm")
    follow(page, "text=home >> nth=0")
    follow(page, "text=Who changed what")
    said = page.inner_text("table")
    for words in ("eve paused", "eve shown again", "paused the experiment", "1 first"):
        assert words in said


@pytest.mark.slow
def test_a_past_plan_is_shown_and_recomputed(visit):
    visitor = visit()
    page = visitor.page
    visitor.go("/experiments/home/plans?number=1")
    assert "Plan 1" in page.inner_text("h2 >> nth=0")
    follow(page, "text=The plan after")
    assert "Plan 2" in page.inner_text("h2 >> nth=0")
    page.set_default_timeout(60_000)  # a process that loads the compiler
    follow(page, "text=Recompute this plan")
    assert "bit for bit" in page.inner_text("[role=status]")
    assert visitor.wrong == []

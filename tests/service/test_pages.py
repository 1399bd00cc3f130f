"""Pages over HTTP: who gets in, what forms need, and what is said about experiments."""

import http.client
import re
import time
from dataclasses import replace
from functools import cache
from urllib.parse import urlencode

import numpy as np
import pytest

from evenhand.convergence import nearness
from evenhand.games import NoisyOr
from evenhand.learners import EvenHand
from evenhand.policy import fair_policy
from evenhand.service import pages_experiment, pages_overview, pages_plans
from evenhand.service.history import Point
from evenhand.service.pages_overview import Facts, attention
from evenhand.service.problems import Problem
from evenhand.service.standing import Standing
from evenhand.service.worker import View

EVIL = "<script>alert(1)</script>"


class Browser:
    """What a browser keeps: one cookie."""

    def __init__(self, service):
        self.service, self.cookie = service, None

    def send(self, method, path, form=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            named["Cookie"] = self.cookie
        body = None if form is None else urlencode(form)
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        if said := answer.headers.get("set-cookie"):
            self.cookie = said.split(";")[0]
        connection.close()
        return answer.status, answer.headers, text

    def word(self, path):
        """The word that forms of a page carry."""
        return re.search(r'name="csrf" value="(\w+)"', self.send("GET", path)[2])[1]

    def log_in(self, key, **headers):
        form = {"csrf": self.word("/login"), "key": key}
        return self.send("POST", "/login", form, **headers)


@pytest.fixture(scope="session")  # like the service, which would refuse its name a second time
def home(service):
    """An experiment."""
    new = {"name": "pages", "arms": ["ada", "bob", EVIL], "k": 2, "seed": 1}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    assert service.call("POST", "/v1/experiments/pages/ask", {"n": 5})[0] == 200
    return "/experiments/pages"


@pytest.fixture
def inside(service):
    browser = Browser(service)
    assert browser.log_in(service.key)[0] == 303
    return browser


def test_strangers_are_sent_to_the_login(service, home):
    stranger = Browser(service)
    for path in ("/", home, f"{home}/arms/1", f"{home}/audit", "/audit", f"{home}/plan.csv"):
        status, headers, _ = stranger.send("GET", path)
        assert (status, headers["location"][:10]) == (303, "/login?to="), path
    assert stranger.send("POST", f"{home}/pause", {})[0] == 403
    assert stranger.send("GET", "/static/none.css")[0] == 404
    assert service.call("GET", "/nothing/here", key=None)[0] == 401  # the API's own answer


def test_the_cookie_is_for_pages_alone(service, inside):
    assert service.call("GET", "/v1/experiments", key=None, Cookie=inside.cookie)[0] == 401
    assert inside.send("GET", "/")[0] == 200


def test_headers_keep_other_sites_out(service, inside, home):
    _, headers, text = inside.send("GET", home)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert EVIL not in text
    _, headers, _ = Browser(service).log_in(service.key, X_Forwarded_Proto="https")
    for word in ("HttpOnly", "SameSite=Strict", "Secure"):
        assert word in headers["set-cookie"]
    style = re.search(r'href="(/static/\w+/style.css)"', text)[1]
    assert "immutable" in inside.send("GET", style)[1]["cache-control"]


def test_a_login_leads_to_no_other_site(service, home):
    for to, found in (
        (home, home),
        (f"{home}?sort=name", f"{home}?sort=name"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),  # browsers drop the tab
        ("/a\r\nx: y", "/"),
        ("https://evil.example", "/"),
    ):
        browser = Browser(service)
        form = {"csrf": browser.word("/login"), "key": service.key, "to": to}
        status, headers, _ = browser.send("POST", "/login", form)
        assert (status, headers["location"]) == (303, found)


def test_cookies_of_strangers_take_no_time(service):
    """Python's own parser of cookies takes half a minute for such a one, and all would wait."""
    stranger, began = Browser(service), time.monotonic()
    for cookie in ('evenhand="' + "\\" * 60_000 + '"', "a=1;" * 15_000, "evenhand=" + "x" * 60_000):
        stranger.cookie = cookie
        assert stranger.send("GET", "/")[0] == 303
    assert time.monotonic() - began < 5.0


def test_forms_need_their_word(service, inside, home):
    assert inside.send("POST", f"{home}/pause", {})[0] == 403
    assert inside.send("POST", f"{home}/pause", {"csrf": "0" * 40})[0] == 403
    word = inside.word(home)
    foreign = {"Origin": "http://evil.example"}
    assert inside.send("POST", f"{home}/pause", {"csrf": word}, **foreign)[0] == 403
    assert Browser(service).send("POST", "/logout", {"csrf": word})[0] == 403
    assert service.call("GET", "/v1/experiments/pages")[1]["paused"] is False
    assert inside.send("POST", f"{home}/pause", {"csrf": word})[0] == 303
    assert service.call("GET", "/v1/experiments/pages")[1]["paused"] is True
    assert inside.send("POST", f"{home}/resume", {"csrf": word})[0] == 303
    assert inside.send("GET", f"{home}/pause")[0] == 405


def test_a_login_goes_to_no_other_site(service):
    for to in ("https://evil.example", "//evil.example", "/\\evil.example"):
        browser = Browser(service)
        form = {"csrf": browser.word("/login"), "key": service.key, "to": to}
        assert browser.send("POST", "/login", form)[1]["location"] == "/"


def test_a_revoked_key_is_out_at_once(service, home):
    made = service.call("POST", "/v1/keys", {"name": "gone", "scopes": ["read"]})[1]
    browser = Browser(service)
    assert browser.log_in(made["key"])[0] == 303
    assert browser.send("GET", home)[0] == 200
    assert browser.send("POST", f"{home}/pause", {"csrf": browser.word(home)})[0] == 403
    assert service.call("DELETE", f"/v1/keys/{made['id']}")[0] == 200
    assert browser.send("GET", home)[0] == 303


def test_odd_addresses_are_answered_kindly(inside, home):
    for path in (
        f"{home}?page=-1&sort=%00&q=%ff%fe",
        f"{home}?window=x&order=%3Cb%3E",
        "/?page=9999",
    ):
        assert inside.send("GET", path)[0] == 200, path
    for path in (f"{home}/arms/99", f"{home}/arms/x", f"{home}/arms/{'9' * 30}", f"{home}/nothing",
                 "/experiments/none", "/experiments/%ff"):  # fmt: skip
        status, headers, _ = inside.send("GET", path)
        assert status == 404, path
        assert "text/html" in headers["content-type"]
    assert inside.send("GET", f"{home}/plans?day=x")[0] == 400
    assert inside.send("GET", f"{home}?" + "a=1&" * 60)[0] == 400
    assert inside.send("GET", f"{home}/plans?day=1971-01-01")[0] == 404
    assert inside.send("GET", f"{home}/plans?day=2999-01-01&clock=10:00")[0] == 200


def test_audit_and_plans_are_exported(service, inside, home):
    service.change("/v1/experiments/pages", {"call": "add", "arms": ["=1+1"]})
    status, headers, text = inside.send("GET", f"{home}/audit.csv")
    assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert "=1+1 joined" in text
    assert text.splitlines()[1].split(",")[2] == "1 first"
    status, _, text = inside.send("GET", f"{home}/plan.csv")
    rows = [line.split(",") for line in text.splitlines()[1:]]
    assert sum(float(row[-2]) for row in rows) == pytest.approx(2.0)
    assert rows[-1][3] == "'=1+1"  # no formula
    assert inside.send("GET", "/audit.csv")[0] == 200


@pytest.mark.parametrize("learner", ["urs", "full-sets"])
def test_pages_of_every_learner(service, inside, learner):
    new = {"name": learner, "arms": ["a", "b", "c", "d"], "k": 2, "seed": 1, "learner": learner}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    path = f"/v1/experiments/{learner}"
    end = time.monotonic() + 20
    while service.call("GET", f"{path}/policy")[0] != 200 and time.monotonic() < end:
        rows = service.call("POST", f"{path}/ask", {"n": 20})[1]["decisions"]
        tells = [{"id": row["id"], "reward": 1} for row in rows if row["learns"]]
        service.call("POST", f"{path}/tell", {"tells": tells})
    for place in ("", "/arms/1", "/plans", "/audit", "?sort=given&order=up"):
        assert inside.send("GET", f"/experiments/{learner}{place}")[0] == 200, place


def test_a_day_and_a_time_are_read():
    assert pages_plans.moment("1970-01-01", "00:00:01") == pytest.approx(1.999)
    with pytest.raises(Problem, match="the day must be like"):
        pages_plans.moment("yesterday", "")


# ---- what needs attention, and how far it is: from plain values ----

NUMBERS = {"told": 1000, "total": 100.0, "unlearnt": 0, "epoch": 3, "starved": 0, "last": None}


def view(**more):
    made = View(1, "x", {"k": 2}, {"mode": "explicit"}, 0.0, None, None)
    made.known([(0, "ada", False, False), (1, "bob", False, False)])
    for name, value in more.items():
        setattr(made, name, value)
    return made


def facts(numbers=NUMBERS, **more):
    usual = Facts(
        1000.0, numbers, Point(0.0, 0, {"told": 0, "total": 0.0}), 1000, 1.0, 0, None, True
    )
    return usual._replace(**more)


@pytest.mark.parametrize(
    ("words", "seen", "found"),
    [
        ("cannot go on: out of ink", view(broken="out of ink"), facts()),
        ("No folder is at work", view(), facts(folder=False)),
        ("70 of 1\u202f070 answers of the last hour taught", view(), facts(unlearnt=70)),
        ("bob gets less than half", view(), facts(NUMBERS | {"starved": 1, "starving": [1]})),
        ("and 2 more get less", view(),
         facts(NUMBERS | {"starved": 5, "starving": [0, 1, 0, 1, 0]})),
        ("Rewards are missing", view(), facts(handed=5000)),
        ("ada brings something else alone", view(),
         facts(NUMBERS | {"last": {"arm": 0, "alone": True, "queries": 3}}, noticed_at=900.0)),
        ("No report for 100 seconds", view(), facts(at=900.0)),
        ("Paused", view(paused=True), facts()),
        ("No rewards yet", view(), facts({}, before=None)),
    ],
)  # fmt: skip
def test_what_needs_attention_is_said(words, seen, found):
    said = [note.words for note in attention(seen, found, 1000.0)]
    assert len(said) == 1
    assert words in said[0]


def test_all_is_well_and_nothing_is_said():
    assert attention(view(), facts(unlearnt=7), 1000.0) == []  # of a thousand
    assert attention(view(), facts(), 1000.0) == []
    assert attention(view(archived=True, broken="x"), facts(), 1000.0) == []
    late = facts(NUMBERS | {"last": {"arm": 0, "alone": True, "queries": 3}}, noticed_at=-1e6)
    assert attention(view(), late, 1000.0) == []
    assert pages_overview.state(view(), facts()).words == "running"


@cache
def played(told, seed=1):
    rng = np.random.default_rng(seed)
    game, learner = NoisyOr(rng.uniform(0.02, 0.3, 12), 1.0), EvenHand(m=12, k=3, seed=seed)
    while learner.queries < told:
        batch = learner.ask()
        learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return game, learner.account()


def test_the_distance_is_about_what_it_is_said_to_be():
    """Over some runs the truth is about what is said; with errors of a quarter it is not."""
    ratios, wrong, inside = [], [], 0
    for seed in range(5):
        game, account = played(1500, seed)
        truth = fair_policy(game.kshapley(3), 3)
        apart = 0.5 * np.abs(account.due - truth).sum() / 3
        said = nearness(account)
        assert said.low < said.distance < said.high
        ratios.append(said.distance / apart)
        inside += said.low <= apart <= said.high
        wrong.append(nearness(replace(account, stderr=account.stderr / 4)).distance / apart)
    assert 0.6 < np.median(ratios) < 1.6
    assert inside >= 2
    assert np.median(wrong) < 0.6


def test_the_distance_shrinks_and_arms_without_errors_say_nothing():
    few, many = (nearness(played(n)[1]).distance for n in (100, 1500))
    assert many < 0.6 * few
    assert nearness(EvenHand(m=4, k=2, seed=1).account()) is None
    assert pages_experiment.wait(0.1, 100, 1.0) == pytest.approx(300.0)
    assert pages_experiment.wait(0.04, 100, 1.0) == 0.0


def test_it_is_said_when_it_will_be_near():
    account = played(100)[1]

    def said(rate, **numbers):
        usual = {"told": 10_000, "distance": 0.10, "low": 0.08, "high": 0.12}
        found = Standing(1000.0, account, None, usual | numbers)
        before = Point(0.0, 0, {"told": 10_000 - 1000 * rate, "total": 0.0})
        return " ".join(pages_experiment.convergence(found, facts(before=before), 1000.0))

    assert "within 5\u00a0% in about 50 minutes" in said(10)  # three times as many again
    assert "That is within 5\u00a0%" in said(10, distance=0.04, low=0.03)
    assert "No rewards come in" in said(0)
    assert "more than ten years" in said(0.00001)
    assert "cannot be said yet" in said(10, distance=None)

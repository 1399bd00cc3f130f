"""The demonstration: its shop, its rivals, and processes that end with it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from evenhand import kshapley
from evenhand.demo import rivals
from evenhand.demo.client import Row
from evenhand.demo.page import charts
from evenhand.demo.rivals import Outcome
from evenhand.demo.run import Demo, Point
from evenhand.demo.shop import JOINS, LEAVES, SELLERS, Shop
from evenhand.demo.traffic import Seen, purchases
from evenhand.exchange import Batch


@pytest.fixture(scope="module")
def shop():
    return Shop()


def test_the_shop_is_as_it_is_told(shop):
    assert len(set(shop.names)) == SELLERS + 1
    assert len(shop.world.present(0)) == SELLERS
    assert SELLERS in shop.world.present(JOINS)
    assert shop.leaver not in shop.world.present(LEAVES)
    assert [one.what for one in shop.changes(0, LEAVES)] == ["join", "leave"]
    assert shop.changes(JOINS, LEAVES - 1) == []
    assert shop.world.at(0).value(np.eye(SELLERS + 1, dtype=bool)).mean() < 0.12  # rare
    for t in (0, JOINS, LEAVES, 60_000):
        due = shop.due(t)
        assert due.sum() == pytest.approx(1.0)
        here = shop.world.present(t)
        assert due[here].min() == pytest.approx(0.01)
        assert set(np.flatnonzero(due)) == set(here)
        merit = kshapley(shop.world.at(t).among(here), 6)
        free = due[here] > 0.0101
        ratio = due[here][free] / merit[free]
        assert ratio == pytest.approx(np.full(free.sum(), ratio[0]))  # in proportion
    summer = shop.names.index("summer 1")
    assert shop.due(60_000)[summer] > 1.3 * shop.due(0)[summer]


def test_purchases_are_those_of_the_sellers_shown(shop):
    number = {name: i for i, name in enumerate(shop.names)}
    one, many = shop.names[:1], tuple(shop.names[i] for i in (3, 16, 22))
    rows = [Row("a", one, True)] * 3000 + [Row("b", many, False)] * 3000
    bought = purchases(rows, number, shop, 0, np.random.default_rng(1))
    sets = np.zeros((2, SELLERS + 1), bool)
    sets[0, 0] = sets[1, [3, 16, 22]] = True
    for part, value in zip(
        (bought[:3000], bought[3000:]), shop.world.at(0).value(sets), strict=True
    ):
        assert part.mean() == pytest.approx(value, abs=4 * np.sqrt(value * (1 - value) / 3000))
    seen = Seen()
    seen.add(rows, bought)
    assert (seen.queries, seen.unlearnt, seen.bought) == (6000, 3000, bought.sum())
    assert seen.given[one[0]] == 3000
    assert seen.given[many[1]] == pytest.approx(1000)


def test_places_and_purchases_of_a_batch(shop):
    rng = np.random.default_rng(1)
    arms = shop.world.present(0)
    game = shop.world.at(0).among(arms)
    orders = np.array([rng.permutation(SELLERS)[:6] for _ in range(5)])
    sizes, times = rng.integers(1, 7, (5, 3)), rng.integers(1, 4, 5)
    batch = Batch(orders, sizes, times, False, "", np.empty(0, np.int64))
    places, total = np.zeros(SELLERS), 0.0
    for order, own, n in zip(orders, sizes, times, strict=True):
        for size in own:
            one = np.zeros((1, SELLERS), bool)
            one[0, order[:size]] = True
            places[order[:size]] += n / size
            total += n * game.value(one)[0]
    assert rivals._places(batch, SELLERS) == pytest.approx(places)
    assert rivals._expected(batch, game) == pytest.approx(total)


def test_rules_are_measured_against_what_is_true(shop):
    outcome = Outcome.of("x", "", np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.25, 0.35, 0.4, 0]), 1)
    assert outcome.off == pytest.approx(0.25)
    assert outcome.worst == pytest.approx(0.5)
    queries = 21_000
    words, make = rivals.RULES["uniform"]
    found = rivals.play("uniform", words, make, shop, queries, seed=1)
    due = np.mean([shop.due(t) for t in range(14_000, queries, 500)], axis=0)
    even = np.zeros(SELLERS + 1)
    for t in range(14_000, queries, 500):
        here = shop.world.present(t)
        even[here] += 1 / len(here)
    even /= even.sum()
    assert found.off == pytest.approx(0.5 * np.abs(even - due).sum(), abs=0.01)
    greedy = rivals.play("greedy", *rivals.RULES["most reward"], shop, queries, seed=1)
    assert greedy.off > found.off
    assert greedy.bought > found.bought


def test_the_page_shows_what_happened(shop, tmp_path):
    demo = Demo(tmp_path, 1, 100.0, shop)
    for i in range(12):
        t = 2000 * (i + 1)
        share = np.where(shop.due(t) > 0, 1 / SELLERS, 0)
        demo.points.append(Point(1e9 + i, t, 800 * (i + 1), t * share, shop.due(t), share))
    demo.events = [(1e9 + 5.5, "join", "newcomer"), (1e9 + 9.5, "leave", "<b>")]
    off, bought, in_force, due = charts(demo)
    assert float(off.table[0][1].split()[0]) == pytest.approx(100 * demo.points[-1].off, rel=0.05)
    assert bought.lines[0].last.startswith("40")
    assert [line.name for line in in_force.lines][:2] == ["newcomer", shop.names[shop.leaver]]
    assert [words for *_, words in due.legend] == ["newcomer joined", "<b> left"]
    outcome = demo.outcome()
    window = [p.due for p in demo.points if p.queries >= 16_000]
    given = demo.points[-1].given - demo.points[7].given
    right = 0.5 * np.abs(given / given.sum() - np.mean(window, axis=0)).sum()
    assert outcome.off == pytest.approx(right)


# ---- processes ----


def descendants(pid):
    """Process ids of all that a process has started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def alive(pids):
    """Those that run still."""
    running = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        running += [] if state == "Z" else [pid]
    return running


def started(folder, *options):
    command = [sys.executable, "-m", "evenhand", "demo", *options]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )  # fmt: skip
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("It ends after") or line.startswith("Ctrl-C ends it"):
            break
    return process, lines


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_killed_it_leaves_no_process_behind(tmp_path):
    process, lines = started(tmp_path)
    assert re.search(r"http://127\.0\.0\.1:\d+/login\S*#key=eh_", "".join(lines)), lines
    children = descendants(process.pid)
    assert len(children) >= 6  # service, web, folder, three of traffic
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 30
    while alive(children) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(children)


@pytest.mark.slow
def test_unattended_it_leaves_a_page(tmp_path):
    process, _ = started(tmp_path, "--seconds", "12", "--page", "out.html", "--rate", "500")
    rest = process.communicate()[0]
    assert process.returncode == 0, rest
    assert "kept: the page out.html" in rest
    assert re.search(r"\d+ s +[\d,]+ queries, [\d.]+% bought, shares [\d.]+% off", rest)
    made = (tmp_path / "out.html").read_text()
    for words in ("Beside other rules", "the paper", "Off what is truly due", "seller 2"):
        assert words in made
    assert list(tmp_path.iterdir()) == [tmp_path / "out.html"]


@pytest.mark.slow
def test_ctrl_c_ends_it_and_says_what_is_kept(tmp_path):
    process, _ = started(tmp_path, "--page", "out.html", "--folder", "kept")
    while not re.search(r" s +[1-9][\d,]* queries", process.stdout.readline()):
        pass
    children, began = descendants(process.pid), time.monotonic()
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[0]
    assert process.returncode == 130, rest
    assert time.monotonic() - began < 15.0  # two on an idle machine
    assert "kept: the page out.html and kept, of which evenhand serve" in rest
    assert (tmp_path / "kept" / "evenhand.db").exists()
    assert not alive(children)
    again = subprocess.run(
        [sys.executable, "-m", "evenhand", "demo", "--folder", "kept"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert again.returncode == 1
    assert "--folder must be a new one, but kept has an evenhand.db" in again.stderr

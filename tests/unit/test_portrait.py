"""A learner as one page: everything inside, names escaped, sensible with many arms."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import evenhand
from evenhand import plot, storage
from evenhand.account import Account, figures
from evenhand.cli import app
from evenhand.learners import URS, EvenHand
from evenhand.pages.charts import time_chart
from evenhand.portrait import Table, page

EVIL = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'&",
    "$x$",
    "e",
    "f",
]


def told(learner, asks=30):
    rng = np.random.default_rng(1)
    for _ in range(asks):
        batch = learner.ask()
        learner.tell(batch, rng.random(batch.sizes.shape) < 0.3)
    return learner


def account_of(n, k=3, seed=1):
    """An account of n arms, made up."""
    rng = np.random.default_rng(seed)
    merit = rng.gamma(1.0, 0.1, n)
    zero = np.zeros(n, np.int64)
    return Account(
        learner="even-hand", k=k, queries=5000, told=5000, rewards=(0.0, 1.0),
        arms=np.arange(n), names=None, paused=zero > 0, joined=zero,
        due=k * merit / merit.sum(), given=np.full(n, k / n), by_merit=k * merit / merit.sum(),
        merit=merit, stderr=0.1 * merit, asked=zero + 30, last=zero + 4000,
        settled=np.full(n, 0.9),
    )  # fmt: skip


def test_a_page_stands_alone():
    text = page(told(EvenHand(m=6, k=2, seed=1)))
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b", text)
    assert not re.search(r"\b(src|srcset|poster|action)\s*=", text)
    assert not re.search(r"url\(|@import|//(?!www\.w3\.org/2000/svg)[a-z]+\.[a-z]", text)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', text))
    assert "default-src 'none'" in text  # and the browser holds us to it


def test_names_cannot_break_out():
    learner = told(EvenHand(m=6, k=2, names=EVIL, seed=1))
    made = page(learner, title=EVIL[0], lead=EVIL[1], tables=[Table(*EVIL[:2], EVIL, [EVIL], EVIL)])
    assert "<script>alert" not in made
    assert "<img" not in made
    assert made.count("<script") == made.count("</script>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in made
    chart = time_chart("t", [0.0, 1.0], [(EVIL[1], [0.1, 0.2])])
    made = page(learner, charts=[chart])
    (held,) = re.findall(r'<script type="application/json">(.*?)</script>', made, re.DOTALL)
    assert json.loads(held)["names"] == [EVIL[1]]


def test_every_arm_has_its_reasons():
    learner = told(EvenHand(m=6, k=2, names=list("abcdef"), seed=1))
    learner.pause("c")
    made = page(learner)
    for arm, name in enumerate("abcdef"):
        assert f'href="#why-{arm}"' in made
        assert f'<details id="why-{arm}" class="why"><summary>{name} ' in made
    assert "It gets nothing now: it is paused." in made


def test_of_many_arms_the_telling_ones_are_shown():
    account = account_of(10_000)
    gap = np.abs(account.given - account.due)
    rows = figures.chosen(account, 300)
    assert len(rows) == len(set(rows.tolist())) == 300
    order = sorted(range(10_000), key=lambda i: (-account.due[i], i))
    assert set(order[:100]) | set(order[-100:]) <= set(rows.tolist())
    others = set(rows.tolist()) - set(order[:100]) - set(order[-100:])
    left = set(range(10_000)) - set(rows.tolist())
    assert min(gap[list(others)]) >= max(gap[list(left)])
    assert rows.tolist() == [i for i in order if i in set(rows.tolist())]
    assert figures.chosen(account_of(20), 300).tolist() == sorted(
        range(20), key=lambda i: (-account_of(20).due[i], i)
    )
    made = page(account)
    assert made.count("<details id=") == 300
    assert "300 of 10\u202f000 arms are in this file" in made
    assert len(made) < 700_000


def test_how_far_given_is_from_due():
    account = account_of(12)
    share = account.given / account.given.sum()
    naive = sum(abs(s - d) for s, d in zip(share, account.due / account.due.sum(), strict=True)) / 2
    assert figures.off_due(account) == pytest.approx(naive)
    assert figures.off_due(replace(account, given=np.full(12, np.nan))) is None
    paused = replace(account, paused=np.arange(12) == 0, due=np.where(np.arange(12) == 0, 0, 1.0))
    rest = share[1:] / share[1:].sum()
    assert figures.off_due(paused) == pytest.approx(0.5 * np.abs(rest - 1 / 11).sum())


def test_what_happened_is_told_in_order():
    learner = told(EvenHand(m=6, k=2, names=list("abcdef"), seed=1))
    before = learner.queries
    learner.add(["g"])
    learner._changes = np.array([[3, 1, 1], [before + 2, 2, 0], [5, 77, 1]])
    assert figures.happenings(learner.account()) == [
        (3, "b", "was noticed to bring something else"),
        (before, "g", "joined"),
        (before + 2, "c", "was noticed to bring something else with others"),
    ]


def test_pages_of_learners_that_know_little():
    assert "cannot be said" in page(URS(m=6, k=2, seed=1))
    assert "It has not been shown yet" in page(EvenHand(m=6, k=2, seed=1))
    with pytest.raises(TypeError, match="source must be a learner or an account, got str"):
        page("learner.npz")


def test_the_command_writes_a_page(tmp_path):
    file, run = tmp_path / "mine.npz", CliRunner()
    evenhand.save(told(EvenHand(m=6, k=2, names=EVIL, seed=1)), file)
    said = run.invoke(app, ["page", str(file)])
    assert said.exit_code == 0, said.output
    assert "<h1>mine</h1>" in (tmp_path / "mine.html").read_text()
    run.invoke(app, ["page", str(file), "-o", str(tmp_path / "x.html"), "--title", "The <shop>"])
    assert "<h1>The &lt;shop&gt;</h1>" in (tmp_path / "x.html").read_text()


def test_files_that_are_no_learner_are_named_kindly(tmp_path):
    good = tmp_path / "good.npz"
    evenhand.save(EvenHand(m=6, k=2, seed=1), good)
    data, bad = good.read_bytes(), tmp_path / "bad.npz"
    arrays, values = storage.read_arrays(good)

    def refused(words):
        said = CliRunner().invoke(app, ["page", str(bad)])
        assert isinstance(said.exception, ValueError)
        assert str(bad) in str(said.exception)
        assert words in str(said.exception)

    for content, words in (
        (b"hello", "must be a file written by evenhand.save, got another kind of file"),
        (b"", "must be a file written by evenhand.save, got an empty file"),
        (data[: len(data) // 2], "got a damaged one, or only a part of it"),
    ):
        bad.write_bytes(content)
        refused(words)
    np.savez(bad, a=np.ones(3))
    refused("got arrays without a learner")
    storage.write_arrays(bad, arrays, values | {"version": 9})
    refused("snapshot must have version 3, got 9")
    storage.write_arrays(bad, arrays, values | {"owner": "another"})
    refused("its checksum is wrong")
    said = CliRunner().invoke(app, ["page", str(tmp_path / "none.npz")])
    assert said.exit_code == 2
    assert "does not exist" in said.output


# ---- the same with matplotlib ----


def test_pictures_of_a_live_and_a_saved_learner_are_the_same(tmp_path):
    learner = told(EvenHand(m=6, k=2, names=EVIL, seed=1))
    evenhand.save(learner, tmp_path / "x.npz")
    live, saved = plot.portrait(learner), plot.portrait(tmp_path / "x.npz")
    for ax in (live, saved):
        assert isinstance(ax.figure, Figure)
        ax.figure.canvas.draw()
    account = learner.account()
    order = np.lexsort((account.arms, -account.due))
    names = [label.get_text() for label in live.get_yticklabels()]
    assert names == [EVIL[i] for i in order]
    bars = live.containers[-1]
    assert [bar.get_width() for bar in bars] == pytest.approx(account.given[order] / 2)
    (line,) = live.lines
    assert line.get_xdata() == pytest.approx(account.due[order] / 2)
    assert saved.lines[0].get_xdata() == pytest.approx(line.get_xdata())


def test_of_many_arms_a_picture_shows_both_ends():
    account = account_of(500)
    ax = plot.portrait(account, most=11)
    order = np.argsort(-account.due)
    due = np.append(account.due[order[:6]], account.due[order[-5:]]) / 3
    assert ax.lines[0].get_xdata() == pytest.approx(due)
    with pytest.raises(ValueError, match="most must"):
        plot.portrait(account, most=1)


def test_merits_are_drawn_with_their_errors():
    account = replace(account_of(8), merit=np.array([0.3, np.nan, *np.linspace(0.1, 0.2, 6)]))
    ax = plot.merits(account)
    drawn = ax.containers[0].lines[0]
    assert drawn.get_xdata() == pytest.approx(np.sort(account.merit[[0, *range(2, 8)]])[::-1])
    with pytest.raises(ValueError, match="source must have estimated a merit, got none from urs"):
        plot.merits(URS(m=6, k=2, seed=1))
    with pytest.raises(TypeError, match="source must be a learner, its account or the file"):
        plot.merits(3)

"""Points over time: written, read back, thinned; terms and rosters by plan."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from evenhand.account import Noticed
from evenhand.service import (
    agreements,
    experiments,
    happenings,
    history,
    pages_audit,
    pages_overview,
    report,
    standing,
    summary,
    upkeep,
)
from evenhand.service.audit import audit
from evenhand.service.database import database
from evenhand.service.keys import Key
from evenhand.service.messages import New
from evenhand.service.recompute import recompute
from evenhand.service.seat import Seat, elect
from evenhand.service.stock import lease, write_unlearnt
from evenhand.service.tells import Told, record
from evenhand.service.worker import View
from tests.service.conftest import new_file


def entries(n, value):
    return history.by_id(n, np.arange(n), np.full(n, value), due=value, merit=value, stderr=value)


def put(c, times, n=70):
    with c.transaction():
        for i, at in enumerate(times):
            history.write(c, 1, at, {"queries": i, "told": i}, entries(n, float(i)))


def test_arms_are_read_back_from_their_blocks(c):
    put(c, [10.0, 20.0, 30.0])
    found = history.traces(c, 1, [0, 31, 32, 69, 500], [10.0, 30.0])
    assert found[69]["given"].tolist() == [0.0, 2.0]
    assert found[31]["due"].tolist() == [0.0, 2.0]
    assert np.isnan(found[500]["due"]).all()  # never there
    every = history.all_arms(c, 1, 20.0, 100)
    assert every["merit"][:70].tolist() == [1.0] * 70
    assert np.isnan(every["merit"][70:]).all()
    assert [p.at for p in history.points(c, 1, 15.0)] == [20.0, 30.0]
    assert history.point_before(c, 1, 25.0).at == 20.0
    assert history.point_before(c, 1, 5.0).at == 10.0  # none older: the oldest
    assert history.point_before(c, 2, 5.0) is None


def naive(times, now):
    """Keep a point if none before it is in the same stretch of the same width."""
    kept = []
    for at in times:
        widths = [width for age, width in history.TIERS if now - at >= age]
        width = max(widths) if widths else None
        same = [
            other for other in kept
            if width is not None
            and other // width == at // width
            and max([w for a, w in history.TIERS if now - other >= a], default=None) == width
        ]  # fmt: skip
        if not same or at == times[-1]:
            kept.append(at)
    return kept


def test_old_points_are_thinned_and_few_stay_for_ever():
    rng = np.random.default_rng(1)
    now = 400 * 86400.0
    spans = (300.0, 3000.0, 3e5, 3e6, 3e7)
    times = sorted({round(now - rng.random() * span, 1) for span in spans for _ in range(300)})
    gone = set(history.superfluous(times, now))
    left = [at for at in times if at not in gone]
    assert left == naive(times, now)
    assert len(left) < len(times)
    assert history.superfluous(left, now) == []  # nothing more to do
    # however long it runs, minute by minute: some thousand points
    every = np.arange(now - 120 * 86400.0, now, 60.0).tolist()
    assert len(every) - len(history.superfluous(every, now)) < 1440 + 90 * 24 + 40


def test_thinning_deletes_arms_with_their_points(c):
    now = c.clock()
    put(c, [now - 7000.0 + i for i in range(100)] + [now])
    with c.transaction():
        dropped = history.thin(c, 1, now)
    assert 90 <= dropped < 100
    times = {at for (at,) in c.execute("select at from stats where exp=1")}
    assert times == {at for (at,) in c.execute("select distinct at from traces where exp=1")}
    assert len(times) == 101 - dropped


@pytest.fixture
def seat(c):
    """An experiment of four arms with some rewards, led here."""
    new = New(name="x", arms=["a", "b", "c", "d"], k=2, seed=1)
    ready = experiments.prepare(new)
    with c.transaction():
        number = experiments.create(c, ready)
    seat = Seat(c, number, elect(c, number, "me"))
    for _ in range(3):
        seat.work(20)
    return seat


def change(seat, call, arguments):
    with seat.c.transaction():
        (row,) = seat.c.execute(
            "insert into changes(exp, call, arguments, key, at) values(?,?,?,'me',0) returning id",
            (seat.experiment, call, json.dumps(arguments)),
        )
    seat.change(row[0], call, arguments)


def test_every_plan_can_be_shown_with_its_terms_and_arms(c, seat):
    first = agreements.published(c, seat.experiment, 0)
    assert first.terms is None
    assert first.arms == [0, 1, 2, 3]
    assert sum(first.marginals) == pytest.approx(2.0)
    change(seat, "pause", {"arms": [1]})
    change(seat, "terms", {"terms": {"floors": {"0": 0.3}, "unit": "shares"}})
    newest = seat.replica.next - 1
    last = agreements.published(c, seat.experiment, newest)
    assert last.paused == [1]
    assert last.arms == [0, 2, 3]
    assert last.terms["floors"] == [[0, 0.3]]
    assert last.marginals[0] >= 0.6 - 1e-9
    before = agreements.published(c, seat.experiment, newest - 1)
    assert (before.terms, before.paused) == (None, [1])
    assert agreements.published(c, seat.experiment, newest + 5) is None
    assert agreements.neighbours(c, seat.experiment, 0) == (None, 1)


def seen(number):
    """An experiment as a web worker knows it."""
    view = View(number, "x", {"k": 2}, {"mode": "explicit"}, 0.0, None, None)
    view.known(
        [(i, name, False, False) for i, name in enumerate("abcd")] + [(4, None, True, False)]
    )
    return view


def test_what_happened_is_said_with_names(c, seat):
    change(seat, "pause", {"arms": [1]})
    change(seat, "terms", {"terms": {"floors": {"0": 0.3}, "caps": 0.5, "unit": "shares"}})
    change(seat, "terms", {"terms": {"floors": {"0": 3}, "unit": "shares"}})  # refused
    with c.transaction():
        audit(c, Key(7, "kim", frozenset(), None, None, 1.0), "pause", seat.experiment, {})
        audit(c, Key(7, "kim", frozenset(), None, None, 1.0), "change x", seat.experiment,
              {"change": 3})  # fmt: skip
    view = seen(seat.experiment)
    said = [mark.words for mark in happenings.happened(c, view, 0.0)]
    terms = (
        "terms: at least 30\u00a0% for a; at most 50\u00a0% for every arm (of all places) (key me)"
    )
    assert sorted(said) == sorted(["b paused (key me)", terms, "experiment: pause (key kim)"])
    assert [m.kind for m in happenings.happened(c, view, 0.0, arm=2)] == ["terms"]  # of all arms
    assert happenings.happened(c, view, c.clock() + 1.0) == []
    total, (newest, older) = pages_audit.lines(c, view, {view.id: view}, 0, 10)
    assert (total, newest.key, older.what) == (2, "7 kim", "paused the experiment")
    assert newest.outcome.startswith("refused: floors must lie")
    points = [history.Point(10.0 * i, 100 * i, {}) for i in range(5)]
    account = replace(report.reading(seat), changes=(Noticed(250, 2, True), Noticed(900, 1, False)))
    (mark,) = happenings.noticed(view, account, points)
    assert (mark.at, mark.words) == (30.0, "noticed: c brings something else by itself")
    assert happenings.noticed(view, account, points, arm=1) == []


def test_a_plan_is_found_by_its_time(c, seat):
    for number in range(seat.replica.next):
        c.execute("update epochs set at=? where number=?", (100.0 * number, number))
    c.execute("update epochs set plan=null where number=1")
    find = agreements.number_at
    found = [find(c, seat.experiment, at) for at in (-1.0, 0.0, 150.0, 200.0, 1e9)]
    assert found == [None, 0, 0, 2, seat.replica.next - 1]


def test_of_every_day_a_plan_stays(source, c, seat):
    for _ in range(5):
        seat.work(5)
    seat.snapshot()
    last, now = seat.replica.next - 1, time.time()
    for number in range(last):  # two a day, long ago, and told no more
        at = now - 86400.0 * (200 - number // 2) + 10.0 * (number % 2)
        c.execute("update epochs set at=? where number=?", (at, number))
    c.execute("update experiments set oldest=?", (last,))
    upkeep.compact(source, 90.0)
    left = [n for (n,) in c.execute("select number from epochs order by number")]
    days = {int((now - 86400.0 * (200 - n // 2) + 10.0 * (n % 2)) // 86400) for n in range(last)}
    assert len(left) == len(days) + 1
    assert agreements.published(c, seat.experiment, left[0]).arms == [0, 1, 2, 3]
    assert recompute(c, seat.experiment, left[0]).word == "cannot"


def test_plans_are_recomputed_bit_for_bit_where_that_can_be(c, seat):
    with c.transaction():
        record(c, [Told(seat.experiment, 0, i, 0.5) for i in range(10)])
    seat.work(10)
    number = seat.replica.next - 1
    assert recompute(c, seat.experiment, number).word == "same"
    assert recompute(c, seat.experiment, number + 1).word == "cannot"
    seat.snapshot()
    seat.work(10)
    said = recompute(c, seat.experiment, number + 1)
    assert (said.word, said.words[:2]) == ("same", "1 ")  # from the snapshot
    c.execute("update snapshots set release='evenhand=0 machine=abacus'")
    said = recompute(c, seat.experiment, number + 1)
    assert said.word == "cannot"
    assert "abacus" in said.words
    c.execute("update snapshots set release=?", ("x",))
    c.execute("delete from snapshots")
    plan = bytearray(c.execute("select plan from epochs where number=?", (number,))[0][0])
    plan[-9] ^= 1
    c.execute("update epochs set plan=? where number=?", (bytes(plan), number))
    assert recompute(c, seat.experiment, number).word == "other"


def test_rows_handed_out_and_never_told_are_counted_when_they_expire(c, seat, monkeypatch):
    with c.transaction():
        got = lease(c, seat.experiment, "w", 30, 1.0)
    assert sum(stop - first for _, first, stop in got) == 30
    with c.transaction():
        record(c, [Told(seat.experiment, *got[0][:2], 0.5)])
    seat.work(None)
    assert seat.waiting() == 29
    monkeypatch.setattr(type(seat.replica), "most_epochs", 2)
    for _ in range(40):
        seat.work(1)
    expired = c.execute("select expired from experiments")[0][0]
    assert expired + seat.waiting() == 29
    assert expired > 0


def test_a_report_is_written_and_read_back(c, seat):
    with c.transaction():
        record(c, [Told(seat.experiment, 0, i, float(i % 2)) for i in range(20)])
    seat.work(10)
    report.write_if_due(seat)
    found = standing.read(c, seat.experiment)
    assert found.account.arms.tolist() == [0, 1, 2, 3]
    assert found.account.due.sum() == pytest.approx(2.0)
    assert (found.numbers["told"], found.numbers["total"]) == (20, 10.0)
    assert found.ends.shape == (4, 2)
    assert (found.ends[:, 0] <= found.ends[:, 1]).all()
    assert standing.read(c, seat.experiment, found) is found  # not taken apart twice
    (point,) = history.points(c, seat.experiment, 0.0)
    assert point.numbers == found.numbers
    said = pages_overview.facts(c, [seat.experiment])[seat.experiment]
    assert (said.numbers, said.before) == (found.numbers, point)
    with c.transaction():
        write_unlearnt(c, seat.experiment, "w", 7)
    assert pages_overview.facts(c, [seat.experiment])[seat.experiment].unlearnt == 7
    assert seat.cost > 0.0
    assert report.load([seat, seat]) == 2 * seat.cost
    seat.work(1)
    seat.reported -= 5.0
    report.write_if_due(seat, load=1.0)  # ten seconds between reports then
    assert standing.read(c, seat.experiment).at == found.at
    report.write_if_due(seat, load=0.1)
    assert standing.read(c, seat.experiment).at > found.at


def test_an_arm_that_gets_too_little_is_noticed(c, seat):
    account, now = report.reading(seat), c.clock()
    given = account.due * 1000.0
    with c.transaction():
        old = history.by_id(4, account.arms, np.zeros(4), due=account.due)
        history.write(c, seat.experiment, now - 4000.0, {"queries": 0, "told": 0}, old)
    account = replace(account, told=1000)
    seat.replica.tally.given[:] = given
    assert summary.starving(seat, account, now) == []
    seat.replica.tally.given[2] = 0.4 * given[2]
    assert summary.starving(seat, account, now) == [2]
    assert summary.starving(seat, replace(account, paused=account.arms == 2), now) == []
    assert summary.starving(seat, replace(account, due=5 * account.due), now) == [2]
    more = np.where(account.arms == 0, 5.0, 1.0) * account.due  # due more now than then
    assert summary.starving(seat, replace(account, due=more), now) == [2]
    few = replace(account, told=50)  # of so few it may be chance
    assert summary.starving(seat, few, now) == []


def test_sessions_are_not_in_backups(tmp_path):
    assert "sessions" not in upkeep.TABLES
    source = new_file(tmp_path)
    c = source.connect()
    put(c, [1.0, 2.0])
    upkeep.backup(source, tmp_path / "b.gz")
    other = database(str(tmp_path / "y.db"))
    upkeep.restore(tmp_path / "b.gz", other)
    twin = other.connect()
    assert history.traces(twin, 1, [5], [2.0])[5]["due"].tolist() == [1.0]
    c.close()
    twin.close()

"""Log, replica, folder: the same bits from the log, whatever fails on the way."""

import contextlib
import gzip
import random
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evenhand.exchange import SetPlan
from evenhand.learners import EvenHand, FullSets
from evenhand.service import check, experiments, keys, recovery, rows, stock, tells, upkeep
from evenhand.service.database import ERRORS, database
from evenhand.service.folder import Folder
from evenhand.service.messages import New
from evenhand.service.replica import Replica
from evenhand.service.seat import Lost, Seat, elect
from evenhand.service.tells import Told
from tests.service.conftest import new_file, new_postgresql


def new_experiment(c, **options):
    asked = {"name": "x", "arms": [f"arm {i}" for i in range(12)], "k": 3, "seed": 5} | options
    ready = experiments.prepare(New(**asked))
    with c.transaction():
        return experiments.create(c, ready)


def seated(c, experiment):
    """Lead an experiment; whoever did so has been away for too long."""
    free_leases(c)
    return Seat(c, experiment, elect(c, experiment, "test"))


def free_leases(c):
    with c.transaction():
        c.execute("update folders set until=0")


def tell_some(c, experiment, rng, share=0.9):
    """Lease all there is and tell a share of it."""
    with c.transaction():
        got = stock.lease(c, experiment, "test", 1000, 10.0)
        rows = [(e, r) for e, first, stop in got for r in range(first, stop)]
        told = [Told(experiment, e, r, float(rng.random() < 0.4)) for e, r in rows
                if rng.random() < share]  # fmt: skip
        words = tells.record(c, told) if told else []
    return dict(zip(told, words, strict=True))


@pytest.mark.parametrize("learner", ["even-hand", "full-sets", "urs"])
def test_replay_gives_the_same_bits_as_snapshot_and_tail(c, learner, monkeypatch):
    monkeypatch.setattr(recovery, "EVERY", 7)
    experiment, rng = new_experiment(c, learner=learner), random.Random(1)
    seat = seated(c, experiment)
    for _ in range(12):
        seat.work(least=3)
        tell_some(c, experiment, rng)
        seat.snapshot_if_due()
    seat.work(None)
    found = recovery.recover(c, experiment)
    assert found.snapshot > 0
    assert 0 < found.replayed < 14
    assert found.replica.digest() == seat.replica.digest()
    said = check.check(c, experiment)
    assert said.wrong == []
    assert said.rewards > 20
    other = Replica.new(recovery.configuration(c, experiment))
    recovery.replay(c, experiment, other, upto=5)
    assert other.digest() != seat.replica.digest()  # the comparison can fail


def test_damage_is_found(c):
    experiment, rng = new_experiment(c), random.Random(2)
    seat = seated(c, experiment)
    for _ in range(4):
        seat.work(least=3)
        tell_some(c, experiment, rng)
    seat.work(None)
    for statement, words in (
        ("update log set payload=(select payload from log where seq=2) where seq=1", "entry 1"),
        ("update epochs set rows=plan where number=1", "epoch 1"),
        ("update tells set reward=0.125 where fold is not null", "0.125"),
        ("update tells set fold=null", "not marked"),
        ("insert into leases(exp,epoch,first,stop,worker,at) values(1,1,1,2,'a',0)", "twice"),
    ):
        with contextlib.suppress(Undo), c.transaction():
            c.execute(statement)
            assert words in " ".join(check.check(c, experiment).wrong), statement
            raise Undo
    assert check.check(c, experiment).wrong == []


class Undo(Exception):  # noqa: N818
    pass


class Faulty:
    """A connection whose n-th commit fails, before or after it has happened."""

    def __init__(self, c, n, after):
        self._c, self._n, self._after = c, n, after

    def __getattr__(self, name):
        return getattr(self._c, name)

    @contextlib.contextmanager
    def transaction(self):
        self._n -= 1
        with self._c.transaction():
            yield
            if self._n == 0 and not self._after:
                raise sqlite3.OperationalError("disk I/O error")
        if self._n == 0:
            raise sqlite3.OperationalError("disk I/O error")

    def alone(self, *given):
        """One statement, and its commit."""
        self._n -= 1
        if self._n == 0 and not self._after:
            raise sqlite3.OperationalError("disk I/O error")
        found = self._c.alone(*given)
        if self._n == 0:
            raise sqlite3.OperationalError("disk I/O error")
        return found


class FaultySource:
    many_hosts = False  # no waiting for leases of folders that failed

    def __init__(self, source, n, after):
        self._source, self._n, self._after = source, n, after

    def connect(self):
        return Faulty(self._source.connect(), self._n, self._after)


@pytest.mark.parametrize("after", [False, True])
def test_a_folder_whose_commits_fail_loses_and_doubles_nothing(source, c, after, monkeypatch):
    """Failure before and after each of the first commits, then at every third."""
    monkeypatch.setattr(recovery, "EVERY", 4)
    monkeypatch.setattr("evenhand.service.folder.FOLD_EVERY", 0.0)
    monkeypatch.setattr("evenhand.service.folder.LOOK_EVERY", 0.0)
    experiment, rng, acked = new_experiment(c), random.Random(3), {}
    for n in range(1, 16):
        free_leases(c)
        folder = Folder(FaultySource(source, n, after))
        folder.c = folder.source.connect()
        failed = False
        for _ in range(20):
            try:
                folder.step(folder.c)
            except ERRORS:
                failed = True
                folder._forget()
                break
            acked |= tell_some(c, experiment, rng)
        assert failed
    free_leases(c)
    folder = Folder(source)
    folder.c = source.connect()
    folder.step(folder.c)
    folder.step(folder.c)
    folder.leave()
    said = check.check(c, experiment)
    assert said.wrong == []
    assert said.unfolded == 0
    assert said.rewards == sum(word == tells.ACCEPTED for word in acked.values()) > 30


def test_a_folder_that_was_away_too_long_can_write_nothing(source, c):
    experiment = new_experiment(c)
    old = seated(c, experiment)
    old.work(least=3)
    before = c.execute("select max(seq) from log")
    other = source.connect()
    new = seated(other, experiment)
    for act in (lambda: old.work(3), old.snapshot, lambda: old.change(1, "expire", {"before": 0})):
        with pytest.raises(Lost):
            act()
    assert c.execute("select max(seq) from log") == before
    new.work(least=3)
    other.close()
    assert check.check(c, experiment).wrong == []


def test_old_rows_expire_in_the_log_and_their_tellers_hear_it(c, monkeypatch):
    monkeypatch.setattr(Replica, "most_epochs", 8)
    experiment, rng = new_experiment(c), random.Random(4)
    seat = seated(c, experiment)
    for _ in range(20):
        seat.work(least=2)
        tell_some(c, experiment, rng, share=0.5)
    assert 0 < seat.oldest <= 12
    with c.transaction():
        old = [Told(experiment, e, r, 0.5) for e in range(seat.oldest) for r in range(2)]
        late = tells.record(c, old)
    assert set(late) <= {tells.EXPIRED, tells.DUPLICATE, tells.CONFLICT}
    assert tells.EXPIRED in late
    assert c.execute(
        "select count(*) from tells where fold is null and epoch<?", (seat.oldest,)
    ) == [(0,)]
    seat.work(None)
    said = check.check(c, experiment)
    assert said.wrong == []
    assert said.unfolded == 0


def test_changes_are_logged_and_close_all_older_rows(c):
    experiment, rng = new_experiment(c), random.Random(5)
    seat = seated(c, experiment)
    seat.work(least=5)
    tell_some(c, experiment, rng)
    seat.work(least=5)
    seat.change(1, "learn", {"sets": [[0], [1, 2]], "rewards": [1, None], "chances": [0.1, 0.1]})
    floor = c.execute("select floor from experiments")[0][0]
    with c.transaction():
        got = stock.lease(c, experiment, "test", 100, 1.0)
    assert got
    assert all(epoch >= floor for epoch, _, _ in got)
    digest = seat.replica.digest()
    seat.change(2, "learn", {"sets": [[0, 0]], "rewards": [1], "chances": [0.1]})  # refused
    assert seat.replica.digest() == digest
    assert check.check(c, experiment).wrong == []


CALLS = [
    ("add", {"n": 2, "names": ["new", "newer"]}),
    ("retire", {"arms": [3]}),
    ("pause", {"arms": [0, 5]}),
    ("learn", {"sets": [[13], [1, 2]], "rewards": [1, 0], "chances": [0.1, 0.1]}),
    ("terms", {"terms": {"floors": {"12": 0.1, "*": 0.02}, "unit": "shares"}}),
    ("resume", {"arms": [5]}),
    ("prior", {"merit": {"1": 0.3}, "stderr": {"1": 0.1}}),
    ("terms", {"terms": None}),
    ("shadow", {"on": True}),
    ("add", {"n": 1, "names": ["newest"]}),
    ("shadow", {"on": False}),
    ("shares", {"shares": {str(a): 1 / 13 for a in (1, 2, *range(4, 15))}}),
]


def test_every_kind_of_change_is_replayed_to_the_same_bits(c):
    experiment, rng = new_experiment(c), random.Random(8)
    seat = seated(c, experiment)
    for number, (call, arguments) in enumerate(CALLS):
        seat.work(least=20)
        tell_some(c, experiment, rng, share=0.7)
        with c.transaction():
            c.execute(
                "insert into changes(id,exp,call,arguments,key,at) values(?,?,?,'{}','',0)",
                (number, experiment, call),
            )
        seat.change(number, call, dict(arguments))
        answer = c.execute("select answer from changes where id=?", (number,))[0][0]
        assert "refused" not in answer, (call, answer)
    plan = seat.replica.learner.plan
    np.testing.assert_allclose(plan.marginals, 3 / 13)
    assert plan.arms.tolist() == [1, 2, *range(4, 15)]
    tell_some(c, experiment, rng)
    seat.work(None)
    assert check.check(c, experiment).wrong == []
    said = c.execute("select id, name from arms where retired is null and paused=0 order by id")
    assert said[-3:] == [(12, "new"), (13, "newer"), (14, "newest")]
    assert [arm for arm, _ in said] == plan.arms.tolist()
    logged = b"".join(bytes(p) for (p,) in c.execute("select payload from log"))
    assert b"new" not in logged  # names can be erased, the log cannot


def test_rows_shown_and_not_told_in_their_window_count_as_the_default(c):
    experiment = new_experiment(c, mode="window", window=60.0, default=0.25)
    seat = seated(c, experiment)
    seat.work(least=4)
    with c.transaction():
        for row, age in ((0, 100), (1, 100), (2, 10)):
            c.execute(
                f"insert into shown(exp,epoch,row,at) values(?,0,?,{c.now}-?)",
                (experiment, row, age),
            )
        assert tells.record(c, [Told(experiment, 0, 1, 1.0)]) == [tells.ACCEPTED]
    seat.settle_window()
    seat.work(None)
    assert c.execute("select row, reward from tells order by row") == [(0, 0.25), (1, 1.0)]
    assert seat.replica.tally.total == 1.25
    with c.transaction():
        words = tells.record(c, [Told(experiment, 0, r, 0.25) for r in (0, 2)])
    assert words == [tells.EXPIRED, tells.ACCEPTED]
    assert check.check(c, experiment).wrong == []


class TellMachine(RuleBasedStateMachine):
    """Tells in any order, again, with other values, too late: compared with a dictionary."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.c = new_file(Path(self.folder.name)).connect()
        self.c._db.execute("pragma synchronous=off")  # many examples, no power cuts
        self.experiment = new_experiment(self.c)
        self.seat = seated(self.c, self.experiment)
        self.seat.work(least=4)
        self.kept, self.folded = {}, set()

    @rule(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3),
                                  st.sampled_from([0.0, 0.5, 1.0, None])), max_size=6),
          alone=st.booleans())  # fmt: skip
    def tell(self, rows, alone):
        published = self.seat.replica.next
        rows = [row for row in rows if row[0] < published]
        told = [Told(self.experiment, *row) for row in rows]
        if alone and told:
            words = tells.record_alone(self.c, told)
        else:
            with self.c.transaction():
                words = tells.record(self.c, told)
        for (epoch, row, reward), word in zip(rows, words, strict=True):
            if (epoch, row) in self.kept:
                same = self.kept[epoch, row] == reward
                assert word == (tells.DUPLICATE if same else tells.CONFLICT)
            elif epoch < self.seat.oldest:
                assert word == tells.EXPIRED
            else:
                assert word == tells.ACCEPTED
                self.kept[epoch, row] = reward

    @rule(publish=st.booleans())
    def work(self, publish):
        self.seat.work(4 if publish and self.seat.replica.next < 4 else None)

    @precondition(lambda self: self.seat.replica.next > 2)
    @rule()
    def expire(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Replica, "most_epochs", len(self.seat.replica.epochs))
            with self.seat.proven():
                self.seat._make_room()

    @rule()
    def restart(self):
        digest = self.seat.replica.digest()
        self.seat = seated(self.c, self.experiment)
        assert self.seat.replica.digest() == digest

    @invariant()
    def nothing_is_lost(self):
        found = self.c.execute("select epoch, row, reward from tells")
        assert {(e, r): y for e, r, y in found} == self.kept

    def teardown(self):
        self.seat.work(None)
        told = [y for y in self.kept.values() if y is not None]
        assert self.seat.replica.tally.told == len(told)
        assert self.seat.replica.tally.total == pytest.approx(sum(told))
        assert check.check(self.c, self.experiment).wrong == []
        self.c.close()
        self.folder.cleanup()


TellMachine.TestCase.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
TestTells = TellMachine.TestCase


def mean_excess(c, experiment, choose):
    """How far arms are from their marginals among the rows of a plan that are chosen, in sigmas."""
    from evenhand.exchange import Plan

    total, variance = 0.0, 0.0
    for plan, data in c.execute("select plan, rows from epochs where exp=?", (experiment,)):
        law, flat = Plan.from_bytes(bytes(plan)), rows.from_bytes(bytes(data))
        for i in range(len(flat.begins) - 1):
            arms = flat.row(i)
            if choose(arms):
                there = np.zeros(law.m)
                there[arms] = 1.0
                share = len(arms) / law.k * law.marginals
                total, variance = total + there - share, variance + share * (1 - share)
    return float(np.abs(total / np.sqrt(variance)).max())


def test_rows_chosen_blindly_have_the_marginals_of_their_plans(c):
    experiment, rng = new_experiment(c), random.Random(6)
    seat = seated(c, experiment)
    for _ in range(8):
        seat.work(least=400)
        tell_some(c, experiment, rng)
    assert mean_excess(c, experiment, lambda arms: rng.random() < 0.7) < 4.0
    looked = mean_excess(c, experiment, lambda arms: rng.random() < (0.7 if 0 in arms else 0.5))
    assert looked > 5.0  # a choice that looks at the arms shows


def test_rows_drawn_without_stock_have_the_marginals_of_the_plan(c):
    experiment, rng = new_experiment(c), np.random.default_rng(7)
    seat = seated(c, experiment)
    seat.work(least=400)
    tell_some(c, experiment, random.Random(7))
    seat.work(least=1)
    plan = seat.replica.learner.plan
    drawn = [d for _ in range(12) for d in stock.draw(1, plan.to_bytes(), rng)]
    counts, expected, variance = np.zeros(12), np.zeros(12), np.zeros(12)
    for one in drawn:
        counts[one.arms] += 1
        share = len(one.arms) / plan.k * plan.marginals
        expected, variance = expected + share, variance + share * (1 - share)
    assert not any(one.learns for one in drawn)
    assert np.abs((counts - expected) / np.sqrt(variance)).max() < 4.0
    uniform = np.full(12, expected.mean())
    assert np.abs((counts - uniform) / np.sqrt(variance)).max() > 4.0  # and not of others


def test_a_backup_is_restored_into_either_kind(c, source, tmp_path, postgresql):
    experiment, rng = new_experiment(c), random.Random(9)
    seat = seated(c, experiment)
    for _ in range(4):
        seat.work(least=5)
        tell_some(c, experiment, rng)
    seat.snapshot()
    with c.transaction():
        keys.issue(c, "one", ["read"])
    n = upkeep.backup(source, tmp_path / "all.gz")
    assert (tmp_path / "all.gz").stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    url = str(tmp_path / "other" / "y.db")
    for place in (database(url), database(new_postgresql(postgresql))):
        assert upkeep.restore(tmp_path / "all.gz", place) == n
        with pytest.raises((ValueError, FileExistsError)):
            upkeep.restore(tmp_path / "all.gz", place)
        other = place.connect()
        assert check.check(other, experiment).wrong == []
        twin = seated(other, experiment)
        assert twin.replica.digest() == seat.replica.digest()
        twin.work(least=3)
        new_experiment(other, name="second")
        other.close()


def test_compacting_forgets_what_is_old_and_keeps_the_state(c, source, monkeypatch):
    monkeypatch.setattr(Replica, "most_epochs", 6)
    monkeypatch.setattr(recovery, "EVERY", 5)
    experiment, rng = new_experiment(c), random.Random(10)
    seat = seated(c, experiment)
    for _ in range(20):
        seat.work(least=5)
        tell_some(c, experiment, rng)
        seat.snapshot_if_due()
    digest = seat.replica.digest()
    gone = upkeep.compact(source, days=-1.0)
    assert min(gone[name] for name in ("tells", "leases", "epochs", "log")) > 0
    seat = seated(c, experiment)
    assert seat.replica.digest() == digest
    seat.work(least=5)
    assert check.check(c, experiment).wrong == []


def test_a_release_that_draws_other_rows_goes_on_from_those_stored(c, monkeypatch):
    experiment, rng = new_experiment(c), random.Random(11)
    seat = seated(c, experiment)
    for i in range(6):
        seat.work(least=6)
        tell_some(c, experiment, rng, share=0.6)
        if i == 3:
            seat.snapshot()
    seat.work(least=6)
    before = seat.replica.tally.told
    exact = SetPlan.draw

    def other(self, n, rng):
        rng.random()
        return exact(self, n, rng)

    monkeypatch.setattr(SetPlan, "draw", other)
    monkeypatch.setattr("evenhand.service.seat.release", lambda: "another")
    monkeypatch.setattr("evenhand.service.recovery.release", lambda: "another")
    late = [
        (e, r) for e, n in c.execute("select number, n from epochs") for r in range(n)
        if not c.execute("select 1 from tells where epoch=? and row=?", (e, r))
    ]  # fmt: skip
    merit = seat.replica.learner.merit
    seat = seated(c, experiment)
    np.testing.assert_allclose(seat.replica.learner.merit, merit)
    kinds = c.execute("select kind, payload from log order by seq desc limit 1")
    assert kinds[0][0] == "migrate"
    assert b"from the rows that were stored" in bytes(kinds[0][1])
    with c.transaction():
        tells.record(c, [Told(experiment, e, r, 1.0) for e, r in late])
    seat.work(least=6)  # rows of plans from before, weighed as they were stored
    assert seat.replica.tally.told == before + len(late)
    tell_some(c, experiment, rng)
    seat.work(least=None)
    assert check.check(c, experiment).wrong == []
    assert seated(c, experiment).replica.digest() == seat.replica.digest()


def test_rows_drawn_elsewhere_have_the_weights_of_their_plan():
    for kind in (EvenHand, FullSets):
        learner = kind(9, 3, seed=2)
        for _ in range(30):
            batch = learner.ask()
            learner.tell(batch, np.linspace(0, 1, batch.sizes.size).reshape(batch.sizes.shape))
        made = learner.publish(50)
        again = rows.drawn_elsewhere(made.plan, rows.to_bytes(made.plan, made.rows))
        for one, other in zip(made.rows, again, strict=True):
            np.testing.assert_allclose(one, other)


def test_a_running_experiment_of_the_first_release_goes_on(source, postgresql, tmp_path):
    """Stored with rows out and rewards not yet counted; drawn here with the same bits or not.

    Its tables are those of the first release, with a point over time that has no place in later
    ones: migrations find data in them.
    """
    kept = gzip.decompress((Path(__file__).with_name("data") / "first.gz").read_bytes())
    head, stats, rest = kept.partition(b'{"table": "stats", "columns": ["exp", "at", "data"]}\n')
    old = tmp_path / "old.gz"
    old.write_bytes(gzip.compress(head + stats + b'[1, 5.0, {"hex": "00"}]\n' + rest))
    place = database(str(tmp_path / "old.db"))
    if source.many_hosts:
        place = database(new_postgresql(postgresql, "template1"))
        with pytest.raises(ValueError, match="must be new, but it has tables already"):
            upkeep.restore(old, source)
    assert upkeep.restore(old, place) == upkeep.backup(place, tmp_path / "new.gz") + 1
    c = place.connect()
    told = c.execute("select count(*) from tells where reward is not null")[0][0]
    seat = seated(c, 1)
    seat.work(least=5)
    tell_some(c, 1, random.Random(1))
    seat.work(None)
    assert seat.replica.tally.told > told > 30
    assert 12 in seat.replica.learner.roster.ids
    assert check.check(c, 1).wrong == []
    c.close()


def test_a_database_of_a_newer_release_is_refused(source, c, tmp_path):
    with c.transaction():
        c.execute("update alembic_version set version_num='9999'")
    upkeep.backup(source, tmp_path / "newer.gz")
    for work in (
        source.migrate,
        lambda: upkeep.restore(tmp_path / "newer.gz", database(str(tmp_path / "z.db"))),
    ):
        with pytest.raises(ValueError, match="'9999'; it is a newer release's"):
            work()


def test_a_backup_is_taken_before_the_new_release_has_run(tmp_path):
    old = database(str(tmp_path / "old.db"))
    old.migrate("0001")
    c = old.connect()
    with c.transaction():
        _, token = keys.issue(c, "mine", ["ask"])
    c.close()
    assert upkeep.backup(old, tmp_path / "old.gz") == 1
    new = database(str(tmp_path / "new.db"))
    assert upkeep.restore(tmp_path / "old.gz", new) == 1
    c = new.connect()
    assert bytes(keys.read(c)[0][2]) == keys.hashed(token.encode())
    assert c.execute("select count(*) from traces") == [(0,)]
    c.close()


def test_rewards_move_with_their_table(tmp_path):
    """On SQLite, from a release that had it without row ids."""
    source = database(str(tmp_path / "old.db"))
    source.migrate("0003")
    c = source.connect()
    every = [
        (1, e, r, None if r == 2 else 0.5, 1.5, r % 2, e or None)
        for e in range(3)
        for r in range(4)
    ]
    c.many("insert into tells values(?,?,?,?,?,?,?)", every)
    with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
        c.execute("select rowid from tells")
    c.execute("create table moved (x)")  # as a migration that is killed leaves it
    c.close()
    source.migrate()
    c = source.connect()
    assert c.execute("select * from tells order by epoch, row") == every
    assert len(c.execute("select rowid from tells")) == len(every)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        c.execute("insert into tells(exp, epoch, row, at) values(1, 2, 3, 0)")
    plan = c.execute("explain query plan select row from tells where exp=1 and fold is null")
    assert "inbox" in plan[0][-1]
    c.close()


def test_a_snapshot_that_is_not_understood_is_passed_over(c, monkeypatch):
    """A release with another estimator learns again from all that was told."""
    experiment, rng = new_experiment(c), random.Random(13)
    seat = seated(c, experiment)
    for _ in range(5):
        seat.work(least=6)
        tell_some(c, experiment, rng)
    seat.work(None)
    seat.snapshot()
    merit, told = seat.replica.learner.merit, seat.replica.tally.told
    with c.transaction():
        c.execute("update snapshots set data=?, crc=?, release='older'", (b"x", 0))
        extra = c.execute("select extra from snapshots")[0][0]
        c.execute("update snapshots set crc=?", (recovery.checksum(b"x", extra),))
    seat = seated(c, experiment)
    np.testing.assert_allclose(seat.replica.learner.merit, merit)
    assert seat.replica.tally.told == told
    assert c.execute("select kind from log order by seq desc limit 1") == [("migrate",)]
    seat.work(least=3)
    tell_some(c, experiment, rng)
    seat.work(None)
    assert check.check(c, experiment).wrong == []


def test_what_was_told_before_an_experiment_was_archived_is_counted(source, c, monkeypatch):
    monkeypatch.setattr("evenhand.service.folder.LOOK_EVERY", 0.0)
    experiment, rng = new_experiment(c), random.Random(14)
    seat = seated(c, experiment)
    seat.work(least=9)
    tell_some(c, experiment, rng)
    with c.transaction():
        c.execute("update experiments set archived=1")
    free_leases(c)
    folder = Folder(source)
    folder.c = source.connect()
    for _ in range(3):
        folder.step(folder.c)
    assert folder.seats == {}
    folder.leave()
    said = check.check(c, experiment)
    assert (said.unfolded, said.wrong) == (0, [])
    assert c.execute("select count(*) from epochs") == [(1,)]  # and no row more is published

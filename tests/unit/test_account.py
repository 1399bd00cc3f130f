"""Accounts of arms, against naive counting; and what they say in words."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import evenhand
from evenhand.account import Account, Noticed, explain
from evenhand.account.words import count, percent
from evenhand.exchange.snapshot import sealed
from evenhand.games import shop
from evenhand.learners import ETCG, URS, EvenHand, FullSets, IWKSVFair
from evenhand.learners.accounting import own_part, part_after_shrinking
from evenhand.policy import Terms, fair_policy
from evenhand.service import report, rows
from evenhand.service.replica import Replica
from evenhand.service.tally import Tally
from evenhand.storage import from_bytes, to_bytes

NAMES = [f"seller {i}" for i in range(12)]
TERMS = Terms(
    floors={"seller 2": 0.05, "*": 0.02},
    caps={"seller 0": 0.1},
    groups={"new": {"arms": ["seller 7", "seller 8"], "floor": 0.3}},
    power=0.5,
    unit="shares",
)


def play(learner, queries, seed=1, limit=50, watch=lambda batch: None):
    """Let a learner run a shop; rewards are 0 or 1."""
    rng = np.random.default_rng(seed)
    game = shop(20, np.random.default_rng(3))
    while learner.queries < queries:
        batch = learner.ask(min(limit, queries - learner.queries))
        watch(batch)
        if batch.learns:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return learner


@cache
def _saved(termed):
    terms = TERMS if termed else None
    return to_bytes(play(EvenHand(m=12, k=3, names=NAMES, terms=terms, seed=1), 600))


def played(terms=None):
    """EvenHand after some hundred queries."""
    return from_bytes(_saved(terms is not None))


class Counts:
    """Counts arms set by set."""

    def __init__(self, learner):
        self.learner = learner
        self.queries, self.places = 0, {}
        self.asked, self.last, self.there = {}, {}, {}

    def __call__(self, batch):
        ids = self.learner.roster.ids.tolist()
        for order, sizes, times in zip(batch.orders, batch.sizes, batch.times, strict=True):
            for size in sizes:
                self.queries += int(times)
                for arm in order[:size].tolist():
                    self.asked[arm] = self.asked.get(arm, 0) + int(times)
                    self.last[arm] = self.queries
                for arm in ids:
                    self.there[arm] = self.there.get(arm, 0) + int(size * times)

    def check(self):
        account = self.learner.account()
        assert account.queries == self.queries
        for i, arm in enumerate(account.arms.tolist()):
            assert account.asked[i] == self.asked.get(arm, 0)
            assert account.last[i] == self.last.get(arm, -1)
            if self.there.get(arm):
                given = account.k * self.asked.get(arm, 0) / self.there[arm]
                assert account.given[i] == pytest.approx(given, rel=1e-12)
            else:
                assert np.isnan(account.given[i])


def test_who_was_given_what_and_looked_at_when_while_arms_come_and_go(tmp_path):
    learner = EvenHand(m=12, k=3, names=NAMES, seed=1)
    counts = Counts(learner)
    counts.check()
    play(learner, 150, watch=counts)
    learner.pause(["seller 3", "seller 4"])
    learner.add(["dee"])
    counts.check()
    play(learner, 250, watch=counts)
    learner.resume("seller 3")
    learner.retire(["seller 5"])
    play(learner, 400, watch=counts)
    counts.check()
    evenhand.save(learner, tmp_path / "x.npz")
    restored = counts.learner = evenhand.load(tmp_path / "x.npz")
    counts.check()
    assert restored.account().to_json() == learner.account().to_json()
    restored.add(["seller 5"])  # back, with what it had before
    play(restored, 450, watch=counts)
    counts.check()
    counts.last[0] -= 1
    with pytest.raises(AssertionError):
        counts.check()


@pytest.mark.parametrize(
    "learner",
    [
        URS(m=12, k=3, seed=1),
        IWKSVFair(m=12, k=3, horizon=900, gamma=2.0, seed=1),
        ETCG(m=12, k=3, horizon=900, seed=1),
        FullSets(m=12, k=3, seed=1),
    ],
    ids=lambda x: x.name,
)
def test_the_same_for_prefixes_tallies_and_full_sets(learner):
    counts = Counts(learner)
    play(learner, 600, watch=counts)
    counts.check()
    account = learner.account()
    assert Account.from_json(account.to_json()).to_json() == account.to_json()
    assert "Share: It is due" in str(learner.explain(3))


def test_rows_that_are_published_count_too():
    for learner in (URS(m=6, k=2, seed=1), EvenHand(m=6, k=2, seed=1)):
        counts = Counts(learner)
        for _ in range(3):
            found = learner.publish(least=40)
            once = np.ones(len(found.rows.sizes), np.int64)
            orders = np.where(found.rows.orders < 0, -1, found.plan.arms[found.rows.orders])
            counts(evenhand.Batch(orders, found.rows.sizes, once, True, "", once))
        counts.check()


def test_a_file_from_before_looks_were_noted_is_read():
    learner = play(EvenHand(m=12, k=3, seed=1), 100)
    snapshot = learner.snapshot()
    frame = {n: x for n, x in snapshot.items() if n not in ("format", "version", "checksum")}
    del frame["arrays"]["looks"]
    restored = EvenHand.restore(sealed(frame))
    assert (restored.account().last == -1).all()
    assert "when last is not known" in str(restored.explain(0))
    frame["arrays"]["looks"] = np.zeros((2, 5), np.int64)
    with pytest.raises(ValueError, match="looks must hold two numbers per id"):
        EvenHand.restore(sealed(frame))


def test_json_holds_everything_and_no_nan():
    learner = played(TERMS)
    learner.pause("seller 1")
    account = learner.account()
    said = json.loads(json.dumps(account.to_json(), allow_nan=False))
    again = Account.from_json(said | {"seq": 3})  # others may add to it
    assert again.to_json() == said
    for name in ("due", "given", "merit", "stderr", "floors", "by_merit", "settled"):
        one, other = getattr(account, name), getattr(again, name)
        assert np.allclose(one, other, rtol=5.1e-7, atol=0, equal_nan=True), name
    assert again.names == account.names
    assert again.groups[0].cap == np.inf
    assert np.isnan(again.merit).sum() == np.isnan(account.merit).sum()
    with pytest.raises(ValueError, match="'due' is missing"):
        Account.from_json({n: x for n, x in said.items() if n != "due"})
    assert repr(again) == repr(account)


def test_what_terms_did_is_what_changes_without_them():
    learner = played(TERMS)
    account = learner.account()
    found = learner.estimate()
    assert account.by_merit == pytest.approx(fair_policy(np.maximum(found.merit, 0.0), 3))
    low, high = np.full(12, 3 * 0.02), np.ones(12)
    low[2], high[0] = 3 * 0.05, 3 * 0.1
    assert account.floors == pytest.approx(low)
    assert account.caps == pytest.approx(high)
    assert account.group.tolist() == [0 if i in (7, 8) else -1 for i in range(12)]
    learner.change_terms(None)
    assert account.without_terms == pytest.approx(learner.marginals, rel=1e-12)
    assert learner.account().without_terms is None
    assert np.abs(account.without_terms - account.due).max() > 0.05  # they do something


def test_full_sets_know_what_terms_did():
    terms = Terms(floors=0.05, unit="shares")
    learner = play(FullSets(m=12, k=3, terms=terms, seed=1), 600)
    account = learner.account()
    learner.change_terms(None)
    assert account.without_terms == pytest.approx(learner.marginals, rel=1e-12)
    assert account.company.tolist() == account.asked.tolist()
    assert account.alone is None


def test_numbers_of_an_explanation():
    learner = played(TERMS)
    learner.pause("seller 11")
    account = learner.account()
    shown = [i for i in range(12) if i != 11]
    for i in shown:
        why = explain(account, NAMES[i])
        assert (why.arm, why.name, why.of) == (i, NAMES[i], 11)
        assert why.rank == 1 + sum(account.merit[j] > account.merit[i] for j in shown)
        apart = [abs(account.merit[j] - account.merit[i]) for j in shown if j != i]
        error = [np.hypot(account.stderr[j], account.stderr[i]) for j in shown if j != i]
        assert why.near == sum(a < 2 * e for a, e in zip(apart, error, strict=True))
        assert why.share == account.due[i] / 3
        assert why.average == pytest.approx(np.mean([account.merit[j] for j in shown]))
        grouped = i in (7, 8)
        assert (why.group_due is not None) == grouped
        if grouped:
            assert why.group_due == pytest.approx(account.due[7] + account.due[8])
        json.dumps(why.to_json(), allow_nan=False)
    assert learner.explain(3).text == learner.explain("seller 3").text


def test_rewards_alone_and_in_company_are_counted():
    learner = EvenHand(m=12, k=3, seed=1)
    alone, company = np.zeros(12), np.zeros(12)

    def watch(batch):
        for order, (size,) in zip(batch.orders, batch.sizes, strict=True):
            (alone if size == 1 else company)[order[:size]] += 1

    account = play(learner, 250, watch=watch).account()
    assert account.alone.tolist() == alone.tolist()
    assert account.company.tolist() == company.tolist()
    assert account.told == 250


def test_how_far_own_rewards_decide():
    """In a normal model both parts are prior over prior plus noise."""
    rng, m, noise, prior = np.random.default_rng(5), 20_000, 0.3, 0.8
    truth = rng.normal(0.1, np.sqrt(prior), m)
    seen = truth + rng.normal(0.0, np.sqrt(noise), m)
    right = prior / (prior + noise)
    variance = np.full(m, noise)
    assert part_after_shrinking(seen, variance)[0] == pytest.approx(right, abs=0.01)
    posterior = 0.1 + right * (seen - 0.1)
    assert own_part(posterior, right * variance)[0] == pytest.approx(right, abs=0.01)
    assert abs(own_part(seen, variance)[0] - right) > 0.02  # the other one is another
    assert (own_part(seen, np.full(m, np.inf)) == 0.0).all()
    assert (part_after_shrinking(seen, np.full(m, np.inf)) == 0.0).all()


# ---- words ----


def test_words_of_an_arm_that_joins_pauses_and_is_barred():
    learner = played()
    learner.add(["dee"])
    said = str(learner.explain("dee"))
    assert "Nothing is known of it yet, so it is treated like the average arm." in said
    assert "It joined after 600 queries." in said
    assert "It has not been shown yet" in said
    while not learner.account().company[-1]:
        play(learner, learner.queries + 5)
    why = learner.explain("dee")
    times = count(why.asked, "time")
    assert why.settled < 0.5
    assert f"Shown {times} so far: its share is still mostly the starting share" in why.text
    learner.pause("dee")
    assert "It gets nothing now: it is paused." in learner.explain("dee").text
    learner.change_terms(Terms(caps={"seller 1": 0.0}, unit="shares"))
    assert "the terms give it a cap of 0" in learner.explain("seller 1").text
    after = count(learner.queries, "query")
    assert f"Terms were last changed after {after}." in learner.explain("seller 2").text


def test_words_of_terms():
    learner = played(TERMS)
    said = learner.explain("seller 7").text
    assert "It is in the group new, which is to have at least 30 % together, and is due" in said
    assert "merit to the power 0.5: they are more alike than merits" in said
    why = learner.explain("seller 2")
    assert "Its floor is 5 % of all places, and that is what it gets." in why.text
    assert why.due == pytest.approx(0.15)
    gives = f"so they give it {percent((why.due - why.without_terms) / 3)} of all places"
    assert gives in why.text
    assert "Terms:" not in play(EvenHand(m=12, k=3, seed=1), 100).explain(0).text


def test_words_of_changes_and_of_shadow():
    learner = played()
    account = learner.account()
    changed = replace(account, changes=(Noticed(400, 3, True), Noticed(450, 4, False)))
    assert "After 400 queries it was noticed that what it brings had" in explain(changed, 3).text
    assert "what it brings together with others had changed" in explain(changed, 4).text
    assert "No change of what it brings was noticed." in explain(changed, 5).text
    shadow = replace(account, shadow=True)
    assert "All arms are shown alike for now" in explain(shadow, 5).text
    negative = replace(account, merit=account.merit - 1.0)
    assert "less with it than without it; that counts as 0" in explain(negative, 5).text


def test_words_of_other_learners():
    assert "no merits are estimated" in play(URS(m=12, k=3, seed=1), 60).explain(0).text
    assert "Its full-set value is" in play(FullSets(m=12, k=3, seed=1), 300).explain(0).text
    paper = play(IWKSVFair(m=12, k=3, horizon=900, gamma=2.0, seed=1), 600)
    assert "This learner does not say how sure that is." in paper.explain(0).text
    greedy = play(ETCG(m=12, k=3, horizon=900, seed=1), 600)
    assert "This learner estimates no merit for it." in greedy.explain(0).text


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ("nobody", "arm must be one of the 12 that are there, such as 'seller 0', .* got 'nobody'"),
        (99, "arm must be one of the 12 that are there, such as 0, 1, 2, got 99"),
    ],
)
def test_an_arm_that_is_not_there(arm, words):
    with pytest.raises(ValueError, match=words):
        EvenHand(m=12, k=3, names=NAMES, seed=1).explain(arm)
    with pytest.raises(ValueError, match="arm must be an id, as arms have no names, got 'ada'"):
        EvenHand(m=12, k=3, seed=1).explain("ada")


def test_numbers_in_words():
    assert [count(n, "query") for n in (1, 2, 12000)] == ["1 query", "2 queries", "12,000 queries"]
    assert count(1, "arm") == "1 arm"
    assert [percent(x) for x in (0.0312, 0.5, 1.0, 0.00001)] == [
        "3.12 %",
        "50 %",
        "100 %",
        "0.001 %",
    ]


def test_accounts_do_not_load_the_compiler():
    code = "import sys, evenhand.account; print('numba' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.strip() == "False", said.stderr


def test_the_service_gives_the_same_account_with_what_was_told():
    replica = Replica.new(
        {"learner": "even-hand", "m": 6, "k": 2, "seed": 1, "owner": "x", "options": {}}
    )
    rng, given, there = np.random.default_rng(1), np.zeros(7), np.zeros(7)
    brought, shown, total = np.zeros(7), np.zeros(7), 0.0
    for step in range(6):
        if step == 2:
            replica.change("add", {"n": 1})
        if step == 4:
            replica.change("pause", {"arms": [0]})
        _, epoch = replica.publish(20)
        flat = rows.from_bytes(epoch.rows)
        told = []
        for row in range(epoch.n):
            arms, reward = list(flat.row(row)), float(rng.random() < 0.4)
            if rng.random() < 0.8:
                told.append((epoch.number, row, reward))
                given[arms] += 2 / len(arms)
                shown[arms] += 1
                brought[arms] += reward
                there[replica.learner.roster.ids] += 1
                total += reward
        replica.fold(told)
    seat = SimpleNamespace(replica=replica)
    said = json.dumps(report.reading(seat).to_json(), allow_nan=False)
    account = Account.from_json(json.loads(said))
    assert account.given == pytest.approx(given / there, rel=1e-6)
    assert account.shown.tolist() == shown.tolist()
    assert account.brought == pytest.approx(brought)
    assert account.total == pytest.approx(total)
    why = explain(account, 6)
    assert why.mean_reward_with_it == pytest.approx(brought[6] / shown[6])
    assert "the others in a set have a part in that" in why.text
    assert explain(account, 0).paused
    restored = Tally.from_json(json.loads(json.dumps(replica.tally.as_json())))
    assert restored.there.tolist() == there.tolist()
    old = Tally.from_json(replica.tally.as_json()[:-1])  # from before this was counted
    assert set(old.there) == {replica.tally.told}

"""Rosters, plans, ledgers and shelves: the parts a learner is made of."""

from functools import cache
from itertools import combinations
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy, Mixture
from evenhand.exchange import Batch, Ledger, Plan, PrefixPlan, Roster, SetPlan, shelf
from evenhand.exchange import plan as plan_module
from evenhand.games import NoisyOr
from evenhand.learners import ETCG, URS, EvenHand, IWKSVFair, inference
from evenhand.learners.means import Means
from evenhand.learners.proportional import uniform_shares
from evenhand.learners.sizes import size_shares
from evenhand.policy import clip_to_sum

M, K = 6, 3
MARGINALS = np.array([0.85, 0.75, 0.55, 0.4, 0.3, 0.15])
GAME = NoisyOr(np.linspace(0.1, 0.9, M))


SIZES, UNIFORM = np.array([0.5, 0.25, 0.25]), np.array([0.3, 0.5, 0.1])


def set_plan():
    return SetPlan(4, np.arange(M), K, MARGINALS.copy(), SIZES.copy(), UNIFORM.copy())


PLANS = {
    "sets": set_plan,
    "uniform": lambda: URS(M, K, seed=1).plan,
    "prefixes": lambda: PrefixPlan.of(
        7, np.arange(M), Mixture(ConditionalPoisson.fit(MARGINALS), 0.3), True
    ),
    "certain": lambda: PrefixPlan.of(
        7, np.arange(3), Mixture(ConditionalPoisson.fit([1.0, 0.5, 0.5]), 0.3), True
    ),
    "enumerated": lambda: PrefixPlan.of(
        0, np.arange(M), Mixture(EnumeratedMaxEntropy.fit(MARGINALS), 0.3), False
    ),
}
plans = pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)


def test_sets_of_all_sizes_together_give_each_arm_its_marginal():
    """By listing all sets: an arm's share of the places, and the uniform part of each law."""
    plan, places = set_plan(), np.zeros(M)
    assert plan.mixing == pytest.approx((0.5 * 0.3 + 0.5 * 0.5 + 0.75 * 0.1) / 1.75)
    for r in range(1, K + 1):
        sets = np.array(list(combinations(range(M), r)))
        chances = np.exp(plan.law(r).log_prob(sets))
        given = chances @ (sets[:, :, None] == np.arange(M)).any(axis=1)
        np.testing.assert_allclose(given, r / K * plan.given(r), atol=1e-9)
        assert chances.min() >= UNIFORM[r - 1] / len(sets) - 1e-12
        places += SIZES[r - 1] * given
    np.testing.assert_allclose(places / places.sum(), MARGINALS / K, atol=1e-9)
    assert np.abs(plan.given(2) - MARGINALS).max() > 0.05  # one size alone does not


@pytest.mark.parametrize("mixing", [0.0, 1e-4, 0.03, 0.3, 0.5])
@pytest.mark.parametrize(
    "sizes", [[1.0], [0.6, 0.1, 0.1, 0.1, 0.1], [0.025, 0.0125, 0.0125, 0.95], [0.2] * 5]
)
def test_all_sizes_have_as_many_places_in_uniform_sets_or_all_they_have(sizes, mixing):
    """And no other shares leave a smaller sum of 1/(number of uniform sets) over r."""
    sizes = np.array(sizes)
    r = np.arange(1.0, len(sizes) + 1)
    uniform, places = uniform_shares(sizes, mixing), r * sizes
    assert places @ uniform == pytest.approx(mixing * places.sum())
    some = (uniform * places)[uniform < 1.0]
    assert np.ptp(some) < 1e-12
    assert np.all(places[uniform == 1.0] <= some.max() + 1e-12)
    if mixing:
        rng, least = np.random.default_rng(1), (1 / (r * sizes * uniform)).sum()
        for _ in range(200):
            other = uniform * np.exp(rng.normal(0.0, 0.3, len(sizes)))
            other *= mixing * places.sum() / (places @ other)
            if other.max() <= 1.0:
                assert (1 / (r * sizes * other)).sum() >= least - 1e-9


@pytest.mark.parametrize("sizes", [np.ones(5), size_shares(5, 0.4, None), [9, 3, 1], [1] * 20])
def test_where_a_size_has_just_as_many_places_as_uniform_sets_are_to_have(sizes):
    """Then rounding decides whether there are others, which must not be noise."""
    k = len(sizes)
    m, sizes = k + 3, np.array(sizes) / np.sum(sizes)
    rng = np.random.default_rng(1)
    marginals = clip_to_sum(rng.exponential(size=m), 0.5 * k / m, 1.0 - 0.5 * (1.0 - k / m), k)
    plan = SetPlan(0, np.arange(m), k, marginals, sizes, uniform_shares(sizes, 0.5))
    for r in range(1, k + 1):
        assert plan.law(r).k == r
        np.testing.assert_allclose(plan.law(r).marginals, r / k * plan.given(r), atol=1e-9)
    rows = plan.draw(300, rng)
    assert ((rows.orders >= 0).sum(axis=1) == rows.sizes[:, 0]).all()


@pytest.mark.parametrize("digit", [-1e-14, -1e-16, 0.0, 1e-16, 1e-14])
def test_an_arm_with_no_more_than_its_part_of_uniform_sets_has_none_of_the_others(digit):
    """Whatever rounding leaves: else one kind of processor draws other sets than the next."""
    mixing, even = 0.3, 3 / 8
    marginals = np.array([0.0, 0.2, 0.3, 0.3, 0.4, 0.4, 0.4, 1.0]) * (1 - mixing) + mixing * even
    marginals[[0, -1]] += digit, -digit
    rest = plan_module.beside_uniform(marginals, 3, mixing)
    assert rest[0] == 0.0
    assert rest[-1] == 1.0
    np.testing.assert_allclose(rest[1:-1], [0.2, 0.3, 0.3, 0.4, 0.4, 0.4], atol=1e-14)


@plans
def test_plans_go_to_bytes_and_back(make):
    plan = make()
    twin = Plan.from_bytes(plan.to_bytes())
    assert twin.to_bytes() == plan.to_bytes()
    assert (twin.number, twin.m, twin.k) == (plan.number, plan.m, plan.k)
    np.testing.assert_array_equal(twin.marginals, plan.marginals)
    for one, other in zip(
        plan.draw(300, np.random.default_rng(5)),
        twin.draw(300, np.random.default_rng(5)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_plans_as_they_were_first_kept_are_read():
    """One share of uniform sets for all sizes, in the header: rows that are out keep their law."""
    plan = SetPlan(4, np.arange(M), K, MARGINALS.copy(), SIZES.copy(), np.full(K, 0.2))
    head = plan_module.HEADER.pack(b"EHP1", 1, M, K, 4, 0.2, 0.0)
    body = head + np.arange(M, dtype="<u4").tobytes() + MARGINALS.tobytes() + SIZES.tobytes()
    twin = Plan.from_bytes(body + crc32(body).to_bytes(4, "little"))
    assert twin.to_bytes() == plan.to_bytes()
    short = body[:-8]
    with pytest.raises(ValueError, match="its length is wrong"):
        Plan.from_bytes(short + crc32(short).to_bytes(4, "little"))


@plans
def test_a_draw_depends_on_plan_and_stream_alone(make):
    plan = make()
    first = plan.draw(50, np.random.default_rng(5))
    plan.draw(7, np.random.default_rng(6))
    np.testing.assert_array_equal(plan.draw(50, np.random.default_rng(5)).orders, first.orders)
    assert not np.array_equal(plan.draw(50, np.random.default_rng(6)).orders, first.orders)


@plans
def test_plans_cannot_be_changed_and_damage_is_named(make):
    plan, data = make(), make().to_bytes()
    with pytest.raises(ValueError, match="read-only"):
        plan.marginals[0] = 0.5
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(ValueError, match="data must come from Plan"):
            Plan.from_bytes(bytes(damaged))
    with pytest.raises(ValueError, match="checksum"):
        Plan.from_bytes(b"")


FIELDS = ("singles", "weighted", "cells", "curve", "saturation", "scatter", "weight", "orders")


def sums_of(taken):
    names = ("totals", "counts") if isinstance(taken, Means) else FIELDS
    return [getattr(taken, name) for name in names]


@cache  # of 51 seeds in a hundred examples many come again
def played(seed):
    """Learners that know something, and rows they draw next, with their rewards."""
    rng, found = np.random.default_rng(seed), []
    for learner in (EvenHand(M, K, seed=seed), IWKSVFair(M, K, 9000, eta=0.4, seed=seed)):
        for _ in range(30):
            batch = learner.ask()
            learner.tell(batch, GAME.pull(batch.orders, batch.sizes, rng))
        rows = learner.plan.draw(200, rng)
        found.append((learner, rows, GAME.pull(rows.orders, rows.sizes, rng)))
    return found


@given(cut=st.integers(1, 199), seed=st.integers(0, 50), missing=st.floats(0.0, 0.5))
def test_evidence_absorbed_in_halves_and_merged_is_that_of_one_after_the_other(cut, seed, missing):
    rng = np.random.default_rng(seed)
    for learner, rows, pulled in played(seed):
        rewards = np.where(rng.random(pulled.shape) < missing, np.nan, pulled)
        whole, first, half = (learner.evidence.branch() for _ in range(3))
        half.absorb(rows.pick(slice(cut, None)), rewards[cut:])
        first.absorb(rows.pick(slice(cut)), rewards[:cut])
        first.merge(half)
        whole.absorb(rows, rewards)
        for one, other in zip(sums_of(first), sums_of(whole), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        merits = [
            found if isinstance(found := e.estimate(), np.ndarray) else found.merit
            for e in (first, whole)
        ]
        np.testing.assert_allclose(*merits, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("room", [0.0, 30.0, 60.0])
def test_halves_with_more_larger_sets_than_are_kept_merge_as_well(room, monkeypatch):
    """Far too many, some too many, or just too many."""
    learner, rng = EvenHand(M, K, seed=4), np.random.default_rng(5)
    for _ in range(20):
        learner.tell(batch := learner.ask(), GAME.pull(batch.orders, batch.sizes, rng))
    monkeypatch.setattr(inference, "BELIEFS", inference.Beliefs(kept=room))
    rows = learner.plan.draw(200, rng)
    rewards = GAME.pull(rows.orders, rows.sizes, rng)
    for cut in (20, 100, 180):
        whole, first, half = (learner.evidence.branch() for _ in range(3))
        half.absorb(rows.pick(slice(cut, None)), rewards[cut:])
        first.absorb(rows.pick(slice(cut)), rewards[:cut])
        first.merge(half)
        whole.absorb(rows, rewards)
        for evidence in (first, whole):
            evidence.due = 0
            evidence.renew()
        assert first.keeping == whole.keeping == 0
        for one, other in zip(sums_of(first), sums_of(whole), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_evidence_of_another_forecast_is_not_merged():
    learner = EvenHand(M, K, seed=1)
    half = learner.evidence.branch()
    for _ in range(5):
        learner.tell(batch := learner.ask(), np.full(batch.sizes.shape, 0.5))
    with pytest.raises(ValueError, match="evidence must have the same forecast to be merged"):
        learner.evidence.merge(half)


# ---- roster ----


def test_rosters_never_reuse_an_id():
    roster = Roster.of(3, ["a", "b", "c"])
    later = roster.retire([2]).add(["d", "c"], joined=50)
    assert later.ids.tolist() == [0, 1, 2, 3]  # a name that was here has its own again
    assert later.names == ("a", "b", "c", "d")
    assert later.joined.tolist() == [0, 0, 50, 50]
    assert later.retire([1]).add(["e"], joined=60).ids.tolist() == [0, 2, 3, 4]
    assert later.columns([3, 0]).tolist() == [3, 0]
    assert roster.ids.tolist() == [0, 1, 2]  # the old one is as it was
    assert Roster.of(2).add(2, joined=0).ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Roster.of(2, ["a"]), ValueError, "names must hold one name per arm, m=2, got 1"),
        (lambda: Roster.of(2, ["a", "a"]), ValueError, "names must be different, got 'a' twice"),
        (lambda: Roster.of(2, "ab"), TypeError, "names must be a list of non-empty strings"),
        (lambda: Roster.of(2, ["a", ""]), TypeError, "names must be a list of non-empty strings"),
        (lambda: Roster.of(2, [1, 2]), TypeError, "names must be a list of non-empty strings"),
        (lambda: Roster.of(2, 3), TypeError, "names must be a list of non-empty strings"),
        (lambda: Roster.of(2, {"a", "b"}), TypeError, "names must be a list of non-empty strings"),
        (lambda: Roster.of(2).columns([2]), ValueError, "ids must be of arms present, got 2"),
        (
            lambda: Roster.of(2).retire([0]).retire([0]),
            ValueError,
            "must be on the roster, got 0",
        ),
        (
            lambda: Roster.of(2).add(["a"], joined=0),
            ValueError,
            "the arms have no names: pass",
        ),
        (lambda: EvenHand(3, 1, names=["a"], seed=1), ValueError, "one name per arm, m=3, got 1"),
    ],
)
def test_bad_rosters_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- ledger ----


def test_a_ledger_says_what_a_row_is():
    ledger = Ledger(keep=6)
    ledger.open(5)
    ledger.settle(np.array([1, 2]), missing=[False, True])
    cases = [
        ([1], evenhand.AlreadyTold, "rows must be told once, got row 1 again"),
        ([0, 2], evenhand.AlreadyTold, "row 2 was closed: its reward was told as missing"),
        ([5], ValueError, "row 5 was never asked"),
        ([-1], ValueError, "row -1 was never asked"),
        ([0, 0], ValueError, "its rows are not distinct"),
        ([[0]], ValueError, "its rows are not distinct"),
    ]
    for rows, error, message in cases:
        with pytest.raises(error, match=message):
            ledger.check(np.array(rows))
    ledger.check(np.array([4, 0, 3]))
    ledger.open(3)
    with pytest.raises(evenhand.Expired, match="row 1 has expired: only the newest 6 rows"):
        ledger.check(np.array([1]))
    assert ledger.n_open == 5
    assert repr(ledger) == "Ledger(open=5, rows=6, first=2, keep=6)"


@given(st.lists(st.tuples(st.integers(1, 40), st.lists(st.integers(0, 200))), max_size=30))
def test_a_ledger_does_what_a_dictionary_would(steps):
    """Against the plainest book there is: a dictionary of the newest rows."""
    ledger, book, n = Ledger(keep=50, notes={"arms": 300}), {}, 0
    for opened, told in steps:
        ledger.open(opened, arms=np.arange(n, n + opened) % 300)
        book |= {row: ("open", row % 300) for row in range(n, n + opened)}
        n += opened
        book = {row: state for row, state in book.items() if row >= n - 50}
        rows = [row for row in dict.fromkeys(told) if book.get(row, ("", 0))[0] == "open"]
        ledger.check(np.array(rows, np.int64))
        ledger.settle(np.array(rows, np.int64), missing=np.arange(len(rows)) % 2 == 1)
        for i, row in enumerate(rows):
            book[row] = (("closed" if i % 2 else "told"), row % 300)
    again = Ledger(notes={"arms": 300})
    again.set_arrays(ledger.arrays())
    for one in (ledger, again):
        assert (one.next, one.first, one.keep) == (n, max(0, n - 50), 50)
        assert one.n_open == sum(state == "open" for state, _ in book.values())
        for row, (state, arm) in book.items():
            assert one.read("arms", np.array([row]))[0] == arm
            if state == "open":
                one.check(np.array([row]))
            else:
                with pytest.raises(
                    evenhand.AlreadyTold, match="closed" if state == "closed" else "once"
                ):
                    one.check(np.array([row]))


# ---- rows that are told late ----


def asked(learner, n):
    batches = []
    while learner.queries < n:
        batches.append(learner.ask(7))
    return batches


@pytest.mark.parametrize(
    "make",
    [
        lambda: EvenHand(M, K, seed=2),
        lambda: IWKSVFair(M, K, 3000, eta=0.4, seed=2),
        lambda: IWKSVFair(M, K, 3000, eta=0.4, design=EnumeratedMaxEntropy, growth=0.1, seed=2),
    ],
)
def test_rows_drawn_again_are_the_rows_that_were_asked(make, monkeypatch):
    kept, again = make(), make()
    batches = [asked(learner, 900) for learner in (kept, again)]
    monkeypatch.setattr(shelf, "CACHED_ROWS", 3)
    order = np.random.default_rng(1).permutation(len(batches[0]))
    for learner, own in zip((kept, again), batches, strict=True):
        for i in order:
            rewards = GAME.pull(
                np.maximum(own[i].orders, 0), own[i].sizes, np.random.default_rng(i)
            )
            learner.tell(own[i], rewards)
        monkeypatch.setattr(shelf, "CACHED_ROWS", 2**15)
    np.testing.assert_array_equal(kept.merit, again.merit)
    assert kept.ledger.n_open == again.ledger.n_open == 0
    assert len(kept._shelf._entries) == 1  # nothing is kept for rows that have been told


def test_plans_expire_and_say_so():
    learner = EvenHand(M, K, seed=2)
    learner._shelf.keep = 3
    batches = [learner.ask(1) for _ in range(6)]
    for batch in batches[:3]:
        with pytest.raises(evenhand.Expired, match="has expired: only the newest 3 rows"):
            learner.tell(batch, 0.5)
    for batch in batches[3:]:
        learner.tell(batch, 0.5)


def test_rows_that_come_out_differently_elsewhere_are_refused(monkeypatch):
    learner = EvenHand(M, K, seed=2)
    batches = asked(learner, 900)
    saved = learner.snapshot()
    draw = SetPlan.draw

    def other(self, n, rng):
        rows = draw(self, n, rng)
        rows.orders[:, 0] = rows.orders[::-1, 0]
        return rows

    monkeypatch.setattr(SetPlan, "draw", other)
    moved = EvenHand.restore(saved)
    early = next(b for b in batches if len(b.orders) > 1 and len(set(b.orders[:, 0])) > 1)
    with pytest.raises(ValueError, match="come out differently here: they were drawn by another"):
        moved.tell(early, np.full(early.sizes.shape, 0.5))
    moved.ask()  # goes on with a plan of its own
    assert moved.queries > learner.queries


def test_a_million_rows_never_told_are_bounded():
    learner, n = EvenHand(20, 5, seed=1), 0
    while n < 10**6:
        n += len(learner.ask().orders)
    arrays = learner.snapshot()["arrays"]
    assert sum(array.nbytes for array in arrays.values()) < 10**6
    assert learner.ledger._rows["state"].nbytes <= 4 * 2**20
    in_memory = [e.n for e in learner._shelf._entries[:-1] if e.drawn is not None]
    assert sum(in_memory) <= shelf.CACHED_ROWS


# ---- batches ----


def test_rewards_may_be_a_number_a_list_or_a_table():
    learner = IWKSVFair(M, K, 3000, eta=0.4, names=list("abcdef"), seed=2)
    one, two, three = learner.ask(3), learner.ask(3), learner.ask(3)
    assert [len(arms) for arms in one.sets()] == [1, 2, 3]
    assert {name for arms in one.sets() for name in arms} <= set("abcdef")
    learner.tell(one, [[0.1, 0.2, 0.3]])
    learner.tell(two, [0, True, None])
    for wrong in (0.5, [0.5], [[0.1], [0.2], [0.3]], "0.5", ["0.5"] * 3, [0.1, 0.2, "0.3"], None):
        with pytest.raises((TypeError, ValueError), match="rewards must"):
            learner.tell(three, wrong)
    single = EvenHand(M, K, seed=1)
    single.tell(single.ask(1), 1)
    assert single.evidence.told == 1


def test_what_stands_behind_a_prefix_is_no_arm():
    for learner in (EvenHand(M, K, seed=1), ETCG(M, K, 3000, seed=1)):
        batch = learner.ask(50)
        behind = np.arange(K) >= batch.sizes.max(axis=1)[:, None]
        assert behind.any()
        assert np.all(batch.orders[behind] == -1)
        assert np.all(batch.orders[~behind] >= 0)


def test_batches_show_themselves():
    batch = EvenHand(3, 2, names=["<script>", "b", "c"], seed=1).ask(1)
    assert repr(batch) == f"Batch(rows=1, queries=1, sizes={batch.sizes[0, 0]}, learns=True)"
    table = Batch.from_dict(batch.to_dict() | {"orders": [[0, -1]], "sizes": [[1]]})._repr_html_()
    assert "&lt;script&gt;" in table
    assert "<script>" not in table


def test_counts_of_what_was_asked_are_the_memberships():
    for learner in (EvenHand(M, K, seed=1), URS(M, K, seed=1), IWKSVFair(M, K, 900, eta=1, seed=1)):
        count = np.zeros(M, np.int64)
        while learner.queries < 600:
            batch = learner.ask(60)
            for arms, times in zip(
                batch.sets(), np.repeat(batch.times, batch.sizes.shape[1]), strict=True
            ):
                count[arms] += times
        assert learner.asked.tolist() == count.tolist()
        assert learner.estimate().asked.tolist() == count.tolist()

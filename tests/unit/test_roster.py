"""Arms that join, leave and pause: estimates by enumeration, and learners against a plain list."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand
from evenhand.exchange import AlreadyTold, Roster, Rows, SetPlan
from evenhand.exchange.snapshot import sealed
from evenhand.games import BestMember, Carrier, NoisyOr, SetFunction, restrict, shop
from evenhand.games.noise import Bernoulli
from evenhand.learners import ETCG, URS, EvenHand, FullSets, GapE, IWKSVFair
from evenhand.learners.evidence import Evidence
from evenhand.learners.free import free_merits
from evenhand.learners.inference import Hyper
from evenhand.learners.model import expectations
from evenhand.learners.posterior import Information
from evenhand.merit import exact
from evenhand.policy import Terms
from tests.unit.test_posterior import Case, some_forecast

M, K = 6, 3
LEARNERS = (EvenHand, FullSets, URS)


# ---- estimates, by enumeration ----


def any_game(seed, m=M):
    """A game in which every set is worth whatever chance says."""
    worth = np.random.default_rng(seed).random(2**m)
    worth[0] = 0.0
    return SetFunction(lambda sets: worth[sets @ 2 ** np.arange(m)], m)


def value(game, members):
    sets = np.zeros((1, game.m), bool)
    sets[0, list(members)] = True
    return float(game.value(sets)[0])


def all_rows(game, seed, columns=None, but=()):
    """Every set of 1..K arms as often as a skewed plan draws it on average: as its weight.

    In other columns if given, and without the sets that hold certain arms.
    """
    rng = np.random.default_rng(seed)
    marginals = evenhand.fair_policy(rng.uniform(0.3, 1.0, game.m), K)
    plan = SetPlan(0, np.arange(game.m), K, marginals, np.full(K, 1 / K), np.full(K, 0.2))
    columns = np.arange(game.m) if columns is None else columns
    orders, sizes, weights, rewards = [], [], [], []
    for r in range(1, K + 1):
        law = plan.law(r)
        sets = np.array(list(combinations(range(game.m), r)))
        chances, member = np.exp(law.log_prob(sets)), law._weights(sets)
        for members, chance, w in zip(sets, chances, member, strict=True):
            if not set(members) & set(but):
                pad = (0, K - r)
                orders.append(np.pad(columns[members], pad, constant_values=-1))
                sizes.append([r])
                weights.append(np.pad(chance * w, pad))
                rewards.append([value(game, members)])
    return Rows(np.array(orders), np.array(sizes), np.array(weights)), np.array(rewards)


def evidence_of(m, seed, k=K):
    """Evidence of no rewards with a forecast of its own."""
    found = Evidence(m, k)
    forecast = some_forecast(m, k, np.random.default_rng(seed))
    met = np.linspace(0.0, 0.4, k)
    expected = expectations(forecast.worth, forecast.extra, forecast.gamma, met, forecast.worth)[0]
    found._use(forecast._replace(met=met, expected=expected), Hyper.blank())
    return found


def free(evidence):
    return free_merits(*evidence._means(evidence.forecast), evidence.forecast)


NOBODY = np.zeros(0, np.int64)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gone", [(2,), (0, 5), (1, 3, 4)])
def test_after_a_leave_sets_told_late_give_the_merits_of_those_who_stay(gone, seed):
    """Whatever the game, the forecast and the policy that drew them."""
    game, stay = any_game(seed), np.setdiff1d(np.arange(M), gone)
    evidence = evidence_of(M, seed)
    evidence.rearrange(stay, NOBODY)
    places = np.full(M, -1)
    places[stay] = np.arange(len(stay))
    evidence.absorb_late(*all_rows(game, seed, places, gone))
    np.testing.assert_allclose(free(evidence).merit, exact(restrict(game, stay), K), atol=1e-9)
    assert np.abs(free(evidence).merit - exact(game, K)[stay]).max() > 0.01  # another game before


def forecast_of(forecast, met, members):
    """What is subtracted from a set's reward: its losses at the saturation met elsewhere."""
    x, gamma, r = forecast.worth, forecast.gamma, len(members)
    expected = (1 - np.prod([1 - gamma * x[a] for a in members])) / gamma
    return expected - met[r - 1] * forecast.extra[list(members)].sum()


def merits_of(means):
    """K-Shapley values by the means (k, m) over the sets with each arm, as the docstring has it."""
    k, m = means.shape
    scale = np.append(m / (m - np.arange(1.0, k)), 1.0)
    level = np.append(means[:-1].mean(axis=1), 0.0)
    return (scale[:, None] * (means - level[:, None])).sum(axis=0) / k


def naive_means(evidence, game, ids, old, before):
    """Means (k, m) by listing: old surprises where an arm was, and the present forecast of all."""
    forecast, met, m = evidence.forecast, evidence.met, evidence.m
    means = np.zeros((K, m))
    for column, arm in enumerate(ids):
        for r in range(1, K + 1):
            mine = [s for s in combinations(range(m), r) if column in s]
            means[r - 1, column] = np.mean([forecast_of(forecast, met, s) for s in mine])
            if arm in old:
                then = [s for s in combinations(old, r) if arm in s]
                off = [value(game, s) - forecast_of(*before, s) for s in then]
                means[r - 1, column] += np.mean(off)
        means[0, column] = value(game, [arm]) if arm in old else forecast.worth[column]
    return means


@pytest.mark.parametrize("seed", range(2))
def test_means_by_listing_give_merits(seed):
    game = any_game(seed)
    means = np.zeros((K, M))
    for r in range(1, K + 1):
        for a in range(M):
            mine = [value(game, s) for s in combinations(range(M), r) if a in s]
            means[r - 1, a] = np.mean(mine)
    np.testing.assert_allclose(merits_of(means), exact(game, K), atol=1e-12)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("gone", [(), (1,)])
def test_after_a_join_the_present_forecast_supplies_the_rest(gone, late):
    """Arms 0..4 were there, 5 joins, and 1 may leave at the same time."""
    game, old = any_game(3), tuple(a for a in range(5) if a not in gone)
    before = evidence_of(5, 7)
    forecast = before.forecast, before.met
    source = np.array([*old, -1])
    places = np.full(5, -1)
    places[list(old)] = np.arange(len(old))
    first = restrict(game, range(5))
    if late:
        before.rearrange(source, NOBODY)
        before.absorb_late(*all_rows(first, 1, places, gone))
    else:
        before.absorb(*all_rows(first, 1, None, gone))
        before.rearrange(source, NOBODY)
    naive = naive_means(before, game, [*old, 5], old, forecast)
    np.testing.assert_allclose(free(before).merit, merits_of(naive), atol=1e-9)
    assert np.isinf(free(before).variance[-1])
    assert np.isfinite(free(before).variance[:-1]).all()


@pytest.mark.parametrize("keeping", [1, 0])
@pytest.mark.parametrize("source", [[0, 1, 2, 3, 4, 5, -1], [0, 1, 3, 4, 5], [0, 1, 3, 4, 5, -1]])
def test_rows_told_before_and_after_a_change_are_treated_alike(source, keeping):
    game, source = any_game(5), np.array(source)
    places = np.full(M, -1)
    places[source[source >= 0]] = np.flatnonzero(source >= 0)
    but = tuple(np.setdiff1d(np.arange(M), source))
    told = {}
    for when in ("before", "after"):
        evidence = told[when] = evidence_of(M, 9)
        evidence.keeping = keeping
        if when == "before":
            evidence.absorb(*all_rows(game, 2, None, but))
        evidence.rearrange(source, NOBODY)
        if when == "after":
            evidence.absorb_late(*all_rows(game, 2, places, but))
    one, other = told["before"].estimate(), told["after"].estimate()
    for name in ("merit", "variance", "free", "model"):
        a, b = (np.nan_to_num(getattr(x, name), posinf=1e9) for x in (one, other))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("arms", [[3], [0, 5], [1, 2, 6]])
def test_information_without_arms_is_the_matrix_with_zeros_for_them(arms):
    case, arms = Case(7, 4, 300, np.random.default_rng(2)), np.array(arms)
    information = Information(case.sums, case.forecast.reference)
    dense = np.stack([information.matrix.times(row) for row in np.eye(15)])
    places = [*arms, *(7 + arms)]
    dense[places] = dense[:, places] = 0.0
    products = information.directions @ dense
    expected = np.stack([products[:, :7], products[:, 7:-1]], axis=2).transpose(1, 0, 2)
    found = information.without(arms)
    np.testing.assert_allclose(found, expected.reshape(7, -1), rtol=1e-5, atol=1e-5)
    case.sums.cells[:, 5:] = found
    case.sums.cells[arms] = 0.0
    rest = Information(case.sums, case.forecast.reference)
    dense = np.stack([rest.matrix.times(row) for row in np.eye(15)])
    values = np.linalg.eigvalsh(dense)
    assert -1e-6 * values.max() < values.min()
    assert values.max() <= 1.001 * np.linalg.eigvalsh(case.exact).max()
    assert np.abs(dense[places]).max() == 0.0


def test_information_with_cells_merely_deleted_would_be_nonsense():
    """The control: products with the directions cannot stay as they are."""
    case = Case(7, 4, 300, np.random.default_rng(2))
    case.sums.cells[[0, 5]] = 0.0
    rest = Information(case.sums, case.forecast.reference)
    dense = np.stack([rest.matrix.times(row) for row in np.eye(15)])
    assert np.linalg.eigvalsh(dense).max() > 1e3 * np.linalg.eigvalsh(case.exact).max()


# ---- learners ----


def play(learner, game, queries, seed=1):
    """Ask and tell so many queries more."""
    rng, end = np.random.default_rng(seed), learner.queries + queries
    while learner.queries < end:
        batch = learner.ask(end - learner.queries)
        if batch.learns:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return learner


RNG = np.random.default_rng(1)
GAMES = {
    "noisy-or": NoisyOr(RNG.uniform(0.2, 0.9, 16)),
    "shop": shop(16, np.random.default_rng(2)),
    "best member": BestMember(RNG.uniform(0.1, 1.0, 16)),
    "a pair": Carrier(
        [*([a] for a in range(16)), [0, 1]],
        [*RNG.uniform(0.01, 0.1, 16), 0.3],
        16,
        noise=Bernoulli(),
    ),
}


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("name", GAMES)
def test_a_newcomer_starts_with_an_even_share(name, kind):
    learner, even_is = kind(12, 4, seed=1), pytest.approx(4 / 13, rel=1e-9)
    for arm, queries in enumerate((0, 5, 15, 40, 80, 400), start=12):
        play(learner, GAMES[name], queries, seed=arm)
        assert learner.add(1) == [arm]
        assert learner.marginals[-1] == even_is
        batch = learner.ask(1)
        assert batch.exposure.q[-1] == even_is
        assert batch.exposure.q.sum() == pytest.approx(4)
        learner.retire(arm)


def test_a_newcomer_starts_with_an_even_share_but_for_terms():
    learner = play(EvenHand(12, 4, seed=1), GAMES["shop"], 300)
    learner.change_terms(Terms(power=2.0))
    learner.add(1)
    assert learner.marginals[-1] == pytest.approx(4 / 13, rel=1e-6)
    learner.retire(12)
    learner.change_terms(Terms(floors={0: 0.6}, caps={2: 0.1}, unit="marginals"))
    learner.add(1)
    assert learner.marginals[0] >= 0.6 - 1e-9
    assert learner.marginals[2] <= 0.1 + 1e-9
    assert learner.marginals.sum() == pytest.approx(4)


@pytest.mark.parametrize("kind", [EvenHand, FullSets])
def test_rows_from_before_and_after_a_leave_may_be_told_at_once_in_any_order(kind):
    """What is told at once teaches what it does one by one, and rows of the arm that left close."""
    game = GAMES["noisy-or"]
    apart, at_once = (play(kind(12, 4, seed=1), game, 60) for _ in range(2))
    batches = {}
    for learner in (apart, at_once):
        out = [learner.ask(5) for _ in range(6)]
        learner.retire(3)
        out += [learner.ask(5) for _ in range(6)]
        batches[learner] = out
    rewards = [np.random.default_rng(i).random(len(b.sizes)) for i, b in enumerate(batches[apart])]
    for batch, some in zip(batches[apart], rewards, strict=True):
        apart.tell(batch, some)
    newest_first, told = batches[at_once][::-1], rewards[::-1]
    parts = {
        name: np.concatenate([getattr(batch, name) for batch in newest_first])
        for name in ("orders", "sizes", "times", "index")
    }
    at_once.tell(replace(newest_first[0], **parts), np.concatenate(told))
    assert apart.ledger.n_left == at_once.ledger.n_left > 0
    np.testing.assert_allclose(at_once.merit, apart.merit, rtol=1e-9)


@pytest.mark.parametrize("kind", LEARNERS)
def test_fewer_arms_than_places_are_refused_and_nothing_changes(kind):
    learner = play(kind(4, 3, names=["ada", "bob", "cy", "dee"], seed=1), GAMES["noisy-or"], 50)
    learner.ask(1)
    before = learner.snapshot()
    for change in (learner.retire, learner.pause):
        with pytest.raises(ValueError, match="at least k=3 arms must remain to fill a set, got 2"):
            change(["ada", "dee"])
    for change, arms, message in (
        (learner.retire, "eve", "on the roster, got 'eve'"),
        (learner.retire, 7, "on the roster, got 7"),
        (learner.retire, [], "at least one arm, got none"),
        (learner.retire, ["ada", "ada"], "different"),
        (learner.resume, "ada", "paused ones, got 'ada', which is not"),
        (learner.add, ["ada"], "'ada' is there already"),
        (learner.add, [], "at least one new name"),
        (learner.add, 2, "the arms have names"),
    ):
        with pytest.raises(ValueError, match=message):
            change(arms)
    assert learner.snapshot()["checksum"] == before["checksum"]


def test_arms_without_names_are_called_by_id():
    learner = EvenHand(4, 2, seed=1)
    with pytest.raises(ValueError, match="given by id, as they have no names, got 'ada'"):
        learner.retire("ada")
    with pytest.raises(ValueError, match="the arms have no names: pass how many"):
        learner.add(["ada"])
    assert learner.add(2).tolist() == [4, 5]
    learner.retire([1, np.int64(4)])
    assert learner.add(1).tolist() == [6]
    assert learner.roster.ids.tolist() == [0, 2, 3, 5, 6]


@pytest.mark.parametrize("kind", LEARNERS)
def test_ids_are_never_used_again_and_names_follow(kind):
    learner = kind(3, 2, names=["ada", "bob", "cy"], seed=1)
    learner.add(["dee"])
    learner.retire("bob")
    assert learner.add(["eve"]).tolist() == [4]
    learner.pause("ada")
    learner.retire(["eve"])
    assert learner.add(["fay", "bob"]).tolist() == [5, 1]  # in the order of the names
    assert learner.names == ("bob", "cy", "dee", "fay")
    with pytest.raises(ValueError, match="'ada' is paused: resume it"):
        learner.add(["ada"])
    learner.resume("ada")
    assert learner.roster.ids.tolist() == [0, 1, 2, 3, 5]
    assert learner.roster.joined.tolist() == [0] * 5
    assert learner.m == len(learner.merit) == len(learner.estimate().marginals) == 5
    assert len(learner.selections) == 6


@pytest.mark.parametrize("kind", LEARNERS)
def test_batches_name_arms_by_id(kind):
    learner = kind(6, 2, names=list("abcdef"), seed=1)
    first = learner.ask(5)
    learner.retire(["b", "d"])
    learner.add(["g"])
    learner.pause("a")
    shown = set()
    for _ in range(40):
        batch = learner.ask(5)
        shown |= set(np.unique(batch.orders[batch.orders >= 0]).tolist())
        for order, names in zip(batch.orders, batch.sets(), strict=False):
            assert ["abcdefg"[a] for a in order[: len(names)]] == names
    assert shown == {2, 4, 5, 6}
    assert set(chain(*first.sets())) <= set("abcdef")
    assert learner.selections[[2, 4, 5, 6]].min() > 0
    np.testing.assert_array_equal(learner.asked, learner.selections[[2, 4, 5, 6]])


@pytest.mark.parametrize("queries", [300, 3600])  # larger sets are kept, and summed up
@pytest.mark.parametrize("kind", [EvenHand, FullSets])
def test_a_pause_keeps_what_is_known(kind, queries):
    game = GAMES["noisy-or"]
    learner = play(kind(12, 4, seed=1), game, queries)
    before = learner.estimate()
    learner.pause([3, 7])
    shown = learner.selections[[3, 7]]
    play(learner, game, queries // 4, seed=2)
    np.testing.assert_array_equal(learner.selections[[3, 7]], shown)
    learner.resume([3, 7])
    after = learner.estimate()
    for arm in (3, 7):
        assert abs(after.merit[arm] - before.merit[arm]) < 3 * before.stderr[arm]
        assert after.stderr[arm] < 1.5 * before.stderr[arm]
    learner.retire([3, 7])  # the control
    learner.add(2)
    assert not np.isfinite(learner.estimate().stderr[-2:]).any()


def test_effective_samples_count_what_was_told_before_a_change():
    learner = play(EvenHand(8, 3, watch=False, seed=1), GAMES["noisy-or"], 100)
    before = learner.estimate().diagnostics.effective_sample_size
    learner.add(1)
    after = learner.estimate().diagnostics.effective_sample_size
    np.testing.assert_allclose(after[:, :-1], before)
    assert not after[:, -1].any()


def test_rows_told_late_with_an_arm_that_left_are_closed_and_counted():
    learner, game = play(EvenHand(6, 3, seed=1), GAMES["noisy-or"], 60), GAMES["noisy-or"]
    rng = np.random.default_rng(3)
    batch = learner.ask(6)
    while not 0 < np.sum(np.any(batch.orders == 2, axis=1)) < len(batch.orders):
        batch = learner.ask(6)
    told, held = learner.evidence.told, np.any(batch.orders == 2, axis=1)
    learner.retire(2)
    learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    assert learner.ledger.n_left == held.sum()
    assert learner.evidence.told == told + np.sum(~held)
    for row, left in enumerate(held):
        reason = "was closed: it was told after an arm of it had left" if left else "told once"
        with pytest.raises(AlreadyTold, match=reason):
            learner.tell(batch.rows([row]), 0.5)
    assert learner.ledger.n_left == held.sum()


def test_rows_of_a_paused_arm_count_if_they_are_told_when_it_is_back():
    learner, game = play(EvenHand(6, 3, seed=1), GAMES["noisy-or"], 60), GAMES["noisy-or"]
    batch = learner.ask(6)
    told, arm = learner.evidence.told, int(batch.orders[0, 0])
    learner.pause(arm)
    learner.resume(arm)
    learner.tell(batch, game.pull(batch.orders, batch.sizes, np.random.default_rng(3)))
    assert learner.ledger.n_left == 0
    assert learner.evidence.told == told + len(batch.orders)


def test_full_sets_do_not_take_rewards_without_surprise_for_certain():
    learner = FullSets(6, 3, seed=1)
    learner.tell(learner.ask(1), 0.5)  # as forecast
    learner.add(1)
    assert learner._before[:6, 1].min() > 0.1
    play(learner, NoisyOr(np.linspace(0.1, 0.9, 7)), 3000)
    assert learner.merit[5] > 0.05
    assert learner.marginals[5] > learner.marginals[0]


def test_full_sets_can_use_no_rows_from_before():
    learner, game = play(FullSets(6, 3, seed=1), GAMES["noisy-or"], 300), GAMES["noisy-or"]
    batch = learner.ask(2)
    learner.add(1)
    learner.tell(batch, game.pull(batch.orders, batch.sizes, np.random.default_rng(3)))
    assert (learner.evidence.told, learner.ledger.n_left) == (0, len(batch.orders))
    with pytest.raises(AlreadyTold, match="can use no rows from before its arms changed"):
        learner.tell(batch, np.full(len(batch.orders), 0.5))


def change_a_lot(learner, game):
    """Joins, leaves and pauses, with rows out; what is out is returned."""
    play(learner, game, 120)
    out = [learner.ask(4)]
    learner.retire(2)
    learner.add(1)
    play(learner, game, 40, seed=2)
    learner.pause([0, 5])
    out.append(learner.ask(4))
    return out


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_saved_learner_of_other_arms_goes_on_bit_for_bit(kind, tmp_path):
    game = GAMES["noisy-or"]
    learner = kind(8, 3, seed=1)
    out = change_a_lot(learner, game)
    evenhand.save(learner, tmp_path / "learner.npz")
    twin = evenhand.load(tmp_path / "learner.npz")
    assert twin.roster.ids.tolist() == [1, 3, 4, 6, 7, 8]
    for one in (learner, twin):
        for batch in out:
            if batch.learns:
                one.tell(batch, game.pull(batch.orders, batch.sizes, np.random.default_rng(5)))
        play(one, game, 50, seed=6)
        one.resume(5)
        play(one, game, 100, seed=7)
    assert learner.ledger.n_left == twin.ledger.n_left
    assert learner.snapshot()["checksum"] == twin.snapshot()["checksum"]


def test_a_corrupted_roster_is_refused():
    learner = EvenHand(6, 2, names=list("abcdef"), seed=1)
    learner.retire("b")
    learner.pause("d")
    learner.add(["g"])
    snapshot = learner.snapshot()
    content = {n: x for n, x in snapshot.items() if n not in ("format", "version", "checksum")}
    good = content["roster"]
    assert EvenHand.restore(sealed(content)).names == ("a", "c", "e", "f", "g")
    for wrong in (
        {"ids": [0, 2, 4, 5, 5]},
        {"ids": [2, 0, 4, 5, 6]},
        {"ids": [0, 2, 4, 5]},
        {"ids": [0, 2, 4, 5, 3]},
        {"ids": [0, 2, 3, 4, 5]},  # one of them is paused
        {"ids": "all"},
        {"joined": [0, 0, 0, 0, -1]},
        {"next": 6},
        {"next": "7"},
        {"paused": [[9, 0]]},
        {"paused": [[3, -1]]},
        {"paused": 3},
        {"former": {"b": 1}},  # a paused arm without a name
        {"former": {"b": 1, "d": 1}},
        {"former": {"b": 1, "d": 3, "x": 3}},
        {"former": {"a": 1, "d": 3}},
        {"former": [1, 3]},
    ):
        with pytest.raises(ValueError, match="snapshot must be as EvenHand"):
            EvenHand.restore(sealed(content | {"roster": good | wrong}))


def test_learners_for_whom_arms_stay_say_so():
    for learner in (
        IWKSVFair(4, 2, 100, eta=0.5, seed=1),
        ETCG(4, 2, 100, seed=1),
        GapE(4, 2, 100, seed=1),
    ):
        before = learner.snapshot()["checksum"]
        for change, arms in (("add", 1), ("retire", 0), ("pause", 0)):
            with pytest.raises(
                TypeError, match="cannot change its arms while it runs; make a new one"
            ):
                getattr(learner, change)(arms)
        assert learner.snapshot()["checksum"] == before


@pytest.mark.parametrize("kind", LEARNERS)
@settings(max_examples=10, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=14))
def test_who_is_there_follows_a_plain_list(kind, steps):
    """Any sequence of joins, leaves, pauses, asks and tells, against sets of names."""
    learner, ids = kind(4, 2, names=list("abcd"), seed=1), dict(zip("abcd", range(4), strict=True))
    here, paused, out, closed = list("abcd"), [], [], 0
    for what, n in steps:
        arm = here[n % len(here)]
        if what == 0:
            new = [name for name in "abcdefgh" if name not in here + paused]
            if not new:
                continue
            name = new[n % len(new)]
            assert learner.add([name]).tolist() == [ids.setdefault(name, len(ids))]
            here.append(name)
        elif what in (1, 2):
            change = learner.retire if what == 1 else learner.pause
            if len(here) == 2:
                with pytest.raises(ValueError, match="at least k=2"):
                    change(arm)
                continue
            change(arm)
            here.remove(arm)
            paused += [arm] * (what == 2)
        elif what == 3 and paused:
            learner.resume(paused[n % len(paused)])
            here.append(paused.pop(n % len(paused)))
        elif what == 4:
            out.append(learner.ask(3))
            assert set(chain(*out[-1].sets())) <= set(here)
        elif what == 5 and out:
            batch = out.pop(n % len(out))
            there = np.isin(batch.orders, [-1, *(ids[name] for name in here)]).all(axis=1)
            closed += batch.learns * int(np.sum(~there))
            learner.tell(batch, np.full(len(batch.orders), 0.5))
            if kind is EvenHand:
                assert learner.ledger.n_left == closed
        order = sorted(here, key=ids.__getitem__)
        assert (learner.names, learner.m) == (tuple(order), len(here))
        assert learner.roster.ids.tolist() == [ids[name] for name in order]
        assert sorted(learner.roster.paused) == sorted(ids[name] for name in paused)
        assert learner.marginals.sum() == pytest.approx(2)


# ---- statistics ----


def partner(leave, seed):
    """Merit of the partner of an arm of a strong pair, right after it is gone and 2e4 later."""
    worth = np.random.default_rng(seed).uniform(0.02, 0.12, 12)
    game = Carrier([*([a] for a in range(12)), [0, 1]], [*worth, 0.3], 12, noise=Bernoulli())
    learner = play(EvenHand(12, 4, seed=seed), game, 20_000, seed)
    if leave:
        learner.retire(1)
    first = learner.estimate()
    play(learner, game, 20_000, seed + 100)
    last = learner.estimate()
    alone = restrict(game, [0, *range(2, 12)]).kshapley(4)[0]
    return alone, first.merit[0], last.merit[0], last.stderr[0]


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_a_synergy_with_an_arm_that_left_is_forgotten(seed):
    alone, first, last, error = partner(True, seed)
    assert first > alone + 0.02  # it is still there right after the leave
    assert abs(last - alone) < 3 * error + 0.005


@pytest.mark.slow
@pytest.mark.statistical
def test_a_synergy_with_an_arm_that_stays_is_not():
    alone, _, last, error = partner(False, 1)
    assert last > alone + 3 * error + 0.02


# ---- the roster itself ----


def test_a_roster_survives_json():
    roster = Roster.of(4, list("abcd")).pause("b").retire("c").add(["e"], joined=7)
    twin = Roster.from_json(roster.to_json(), roster.names, roster.m)
    assert twin.to_json() == roster.to_json()
    assert [twin.label(a) for a in range(5)] == list("abcde")
    assert Roster.of(3).to_json() is None

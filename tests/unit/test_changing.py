"""Worlds that change, compared with plain versions of them."""

from itertools import pairwise

import numpy as np
import pytest

from evenhand import fair_policy, kshapley, plot, simulate
from evenhand.exchange import SetPlan
from evenhand.games import (
    Abrupt,
    BestMember,
    Carrier,
    Change,
    ComeAndGo,
    IndependentCascade,
    NoisyOr,
    Redrawn,
    Restricted,
    Season,
    SetFunction,
    Still,
    Walk,
    World,
    moving_pair,
    restrict,
    shop,
)
from evenhand.learners import ETCG, URS, EvenHand, IWKSVFair
from evenhand.learners.exchangeable import ExchangeableLearner
from evenhand.merit import exact
from evenhand.randomness.streams import as_generator
from tests.contracts import GAMES

RNG = np.random.default_rng(1)
MU = RNG.uniform(0.2, 0.9, 6)


class Uniform(ExchangeableLearner):
    """Draws sets of all sizes uniformly, whichever arms there are, and notes what it is told."""

    def __init__(self, m, k, *, names=None, seed):
        super().__init__(m, k, None, seed, names)
        self.heard = []

    merit = property(lambda self: np.full(self.m, np.nan))
    marginals = property(lambda self: np.full(self.m, self.k / self.m))

    def _make_plan(self):
        shares = np.full(self.k, 1.0 / self.k)
        ids = self.roster.ids
        return SetPlan(self._plans, ids, self.k, self.marginals, shares, np.ones(self.k)), 37

    def _ask(self, limit):
        return self._take(limit)

    def tell(self, batch, rewards):
        self.heard += zip(batch.index.tolist(), rewards[:, 0].tolist(), strict=True)
        super().tell(batch, rewards)

    def _tell(self, kept, rewards):
        pass

    def _rearrange(self, source, away):
        pass

    def _fields(self):
        return {}


# ---- games among some arms ----


@pytest.mark.parametrize("name", GAMES)
def test_a_restricted_game_is_the_game_of_the_sets_left(name):
    game, arms = GAMES[name](), np.array([3, 0, 4])
    if name == "cascade_cuda":
        arms = np.array([0, 3, 4])
    part = restrict(game, arms)
    sets = np.array([[bool(i >> j & 1) for j in range(3)] for i in range(8)])
    wide = np.zeros((8, 5), bool)
    wide[:, arms] = sets
    np.testing.assert_allclose(part.value(sets), game.value(wide), atol=1e-12)
    slow = Restricted(game, arms)
    np.testing.assert_allclose(slow.value(sets), game.value(wide), atol=1e-12)
    for k in (1, 2, 3):
        np.testing.assert_allclose(kshapley(part, k), exact(slow, k), atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_the_merits_of_the_best_member_have_a_closed_form(k):
    worth = np.array([0.3, 0.9, 0.0, 0.3, 0.55, 1.0, 0.1])  # with a tie
    listed = SetFunction(lambda sets: (sets * worth).max(axis=1), m=7)
    np.testing.assert_allclose(BestMember(worth).kshapley(k), exact(listed, k), atol=1e-12)


def test_a_restricted_game_answers_for_its_own_arms():
    game = SetFunction(lambda sets: sets @ [0.1, 0.2, 0.4, 0.3], m=4, empty=0.0)
    part = Restricted(game, [2, 0, 3])
    rewards = part.pull(np.array([[1, 0, -1], [2, 1, 0]]), np.array([[2], [1]]), RNG)
    np.testing.assert_allclose(rewards[:, 0], [0.5, 0.3])
    assert restrict(game, np.arange(4)) is game
    assert repr(part) == "Restricted(m=3, game=SetFunction(m=4))"
    for arms, message in (([], "one or more"), ([1, 1], "different"), ([4], r"0\.\.3")):
        with pytest.raises(ValueError, match=f"arms must .*{message}"):
            restrict(game, arms)


def test_of_a_carrier_game_sets_that_need_another_arm_are_worth_nothing():
    pair = Carrier([[0, 1]], [0.5], m=3)
    assert restrict(pair, [1, 2]).kshapley(2).tolist() == [0.0, 0.0]


# ---- worlds ----

WORLDS = {
    "still": lambda: Still(NoisyOr(MU)),
    "abrupt": lambda: Abrupt([NoisyOr(MU), NoisyOr(MU[::-1]), BestMember(MU)], [100, 150]),
    "redrawn": lambda: Redrawn(NoisyOr, MU, lambda mu, rng: rng.permutation(mu), every=70, seed=3),
    "walk": lambda: Walk(BestMember, MU, sd=3.0, every=50, seed=3),
    "season": lambda: Season(NoisyOr, MU, MU[::-1], period=230, phase=MU, every=30),
    "moving pair": lambda: moving_pair(6, np.random.default_rng(3), every=90),
    "roster": lambda: ComeAndGo(
        NoisyOr(MU), joins={4: 100, 5: 130}, leaves={0: 130, 4: 250}, breaks=[(1, 60, 110)]
    ),
    "season and roster": lambda: ComeAndGo(
        Season(BestMember, MU, MU[::-1], period=200, every=30), joins={5: 90}, leaves={2: 95}
    ),
}
worlds = pytest.mark.parametrize("make", WORLDS.values(), ids=WORLDS)


def numbers(world, t):
    """All that a world says about a time."""
    everything = np.eye(world.m, dtype=bool) | np.eye(world.m, k=1, dtype=bool)
    return world.at(t).value(everything).tolist(), world.present(t).tolist(), world.changes(t)


@worlds
def test_a_world_is_the_same_however_it_is_asked(make):
    """Forwards, backwards and in any order, it tells the same of every time."""
    world = make()
    assert isinstance(world, World)
    ahead = [numbers(world, t) for t in range(300)]
    assert [numbers(world, t) for t in reversed(range(300))][::-1] == ahead
    other, order = make(), RNG.permutation(300)
    assert {int(t): numbers(other, int(t)) for t in order} == dict(enumerate(ahead))
    assert repr(world)


@worlds
def test_nothing_changes_before_the_next_change(make):
    world = make()
    for t in range(300):
        following = world.next_change(t)
        assert following is None or following > t
        before, _, _ = numbers(world, t)
        value, present, happened = numbers(world, t + 1)
        if following != t + 1:
            assert (value, present, happened) == (before, world.present(t).tolist(), ())
        if [c for c in happened if c.what != "game"]:
            assert present != world.present(t).tolist()


def test_another_seed_is_another_walk_and_a_generator_is_not_used_up():
    values = [Walk(NoisyOr, MU, sd=1.0, seed=s).parameters(10_000) for s in (1, 1, 2)]
    assert (values[0] == values[1]).all()
    assert (values[0] != values[2]).all()
    rng = np.random.default_rng(1)
    world = Walk(NoisyOr, MU, sd=1.0, seed=rng)
    state = rng.bit_generator.state
    there = world.parameters(10_000)
    assert (world.parameters(0) == MU).all()
    assert (world.parameters(10_000) == there).all()
    assert rng.bit_generator.state == state


def test_a_walk_moves_as_far_as_it_says_and_stays_inside():
    """In its own scale: standard deviation sd after 1e5 queries, by a thousand parameters."""
    x = np.full(1000, 0.5)
    for every in (500, 20_000):
        world = Walk(lambda x: NoisyOr(x), x, sd=0.4, every=every, seed=1)
        end = world.parameters(100_000)
        spread = np.std(np.log(end / (1 - end)))
        assert abs(spread / 0.4 - 1.0) < 4 / np.sqrt(2 * 1000)
    wild = Walk(NoisyOr, x, sd=500.0, low=0.2, high=0.9, seed=1).parameters(100_000)
    assert wild.min() >= 0.2
    assert wild.max() <= 0.9


def test_one_for_one_keeps_as_many_arms_and_ids_follow_joining():
    world = ComeAndGo.one_for_one(NoisyOr(np.full(12, 0.5)), 5, every=10, seed=1)
    assert all(len(world.present(t)) == 5 for t in range(90))
    for i in range(1, 8):
        joins, leaves = world.changes(10 * i)
        assert (joins.what, joins.arms) == ("join", (4 + i,))
        assert leaves.what == "leave"
        assert leaves.arms[0] in world.present(10 * i - 1)
    assert world.next_change(70) is None


GAME = NoisyOr(MU)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Abrupt([GAME], [10]), "times must say when each game but the first"),
        (lambda: Abrupt([GAME] * 3, [10, 10]), "times must be above 0 and increase"),
        (lambda: Abrupt([GAME, NoisyOr([0.5])], [10]), "the same number of arms"),
        (lambda: Walk(NoisyOr, [0.0, 0.5], sd=1, seed=1), "start must lie strictly between"),
        (lambda: Season(NoisyOr, MU, MU[:2], period=10), "must have the same shape"),
        (lambda: Season(NoisyOr, MU, MU, period=10, phase=MU[:2]), "phase must be a number or"),
        (lambda: ComeAndGo(GAME, joins={2: 10}), "joins must follow the numbers of the arms"),
        (lambda: ComeAndGo(GAME, joins={6: 10}), r"arms must lie in 0\.\.5"),
        (lambda: ComeAndGo(GAME, {5: 10}, {5: 10}), "leaves must come after arm 5 is there"),
        (lambda: ComeAndGo(GAME, breaks=[(1, 9, 9)]), "breaks must come after"),
        (lambda: ComeAndGo(GAME, {}, {1: 20}, [(1, 9, 20)]), "breaks must end before arm 1"),
        (lambda: ComeAndGo(GAME, names=["a"]), "one name per arm that ever is"),
    ],
)
def test_worlds_refuse_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rosters_are_said_once():
    with pytest.raises(TypeError, match="say all joins, leaves and breaks once"):
        ComeAndGo(ComeAndGo(GAME))


# ---- playing in them ----


def one_by_one(learner, world, horizon, seed):
    """The naive loop: one query at a time, what is due by listing, the learner told by hand."""
    rng, total, regret, given, due_sum = as_generator(seed, "environment"), 0.0, [], [], 0.0
    for t in range(horizon):
        for what, arms in ((c.what, c.arms) for c in world.changes(t)):
            if what == "join":
                learner.add(len(arms))
            elif what != "game":
                {"leave": learner.retire, "pause": learner.pause, "resume": learner.resume}[what](
                    list(arms)
                )
        game, arms = world.at(t), world.present(t)
        due = np.zeros(world.m)
        due[arms] = fair_policy(exact(Restricted(game, arms), learner.k), learner.k)
        batch = learner.ask(1)
        q = np.zeros(world.m)
        q[arms] = batch.exposure.q
        total += np.abs(q - due).sum()
        regret.append(total)
        due_sum = due_sum + due
        given.append([int(arm) for arm in batch.orders[0, : batch.sizes[0, 0]]])
        if batch.learns:
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return np.array(regret), given, due_sum / horizon


PLAYED = [
    *((Uniform, name) for name in WORLDS),
    *((EvenHand, name) for name in ("moving pair", "season and roster")),
]


@pytest.mark.parametrize(
    ("kind", "name"), PLAYED, ids=[f"{kind.__name__}-{name}" for kind, name in PLAYED]
)
def test_dynamic_regret_is_that_of_the_naive_loop(kind, name):
    make, horizon = WORLDS[name], 300
    marks = np.array([1, 40, 41, 150, 151, 299, 300])
    start = len(make().present(0))
    run = simulate(kind(start, 2, seed=1), make(), horizon, seed=2, checkpoints=marks)
    regret, given, due = one_by_one(kind(start, 2, seed=1), make(), horizon, 2)
    np.testing.assert_allclose(run.regret, regret[marks - 1], rtol=1e-9)
    np.testing.assert_allclose(run.target, due, atol=1e-12)
    counts = np.bincount([arm for arms in given for arm in arms], minlength=6)
    np.testing.assert_array_equal(run.selections, counts)
    assert run.changes == tuple(c for t in range(horizon) for c in make().changes(t))
    for i, (a, b) in enumerate(pairwise([0, *marks])):  # what was due in each window
        here = sum(fair(make(), t) for t in range(a, b)) / (b - a)
        np.testing.assert_allclose(run.due_curve[i], here, atol=1e-12)


def fair(world, t, k=2):
    due, arms = np.zeros(world.m), world.present(t)
    due[arms] = fair_policy(exact(Restricted(world.at(t), arms), k), k) / k
    return due


def test_regret_against_what_was_due_at_first_is_another():
    """So that the comparison with the naive loop can fail."""
    stale = 2 * fair(WORLDS["season"](), 0)
    runs = [
        simulate(Uniform(6, 2, seed=1), WORLDS["season"](), 300, seed=2, target=target)
        for target in (None, lambda t: stale)
    ]
    assert abs(runs[1].regret[-1] / runs[0].regret[-1] - 1.0) > 0.01


def test_what_was_given_in_a_window_is_what_was_asked_in_it():
    """Where windows end with batches; inside one, what it gave is spread evenly."""
    learner, seen = Uniform(6, 2, seed=1), []
    marks = np.arange(1, 11) * 37  # a plan serves 37 queries
    run = simulate(learner, GAME, 370, seed=2, checkpoints=marks, watch=seen.append)
    counts = np.zeros((10, 6), int)
    for batch, row in zip(seen, counts, strict=True):
        batch.count_into(row)
    np.testing.assert_allclose(run.given_curve, counts / counts.sum(axis=1, keepdims=True))
    halves = simulate(Uniform(6, 2, seed=1), GAME, 37, seed=2, checkpoints=[10, 37])
    np.testing.assert_allclose(halves.given_curve, [run.given_curve[0]] * 2)


class Constant(SetFunction):
    def __init__(self, value):
        super().__init__(lambda sets: np.full(len(sets), value), m=6)


@pytest.mark.parametrize("late", [0, 10, 75])
def test_a_late_reward_comes_from_the_game_in_force_when_it_was_asked(late):
    """Games that say their own number; some rows asked in one are told in the next."""
    world = Abrupt([Constant(v) for v in (0.25, 0.5, 0.75)], [50, 120])
    learner, now = Uniform(6, 2, seed=1), []
    tell = learner.tell

    def note(batch, rewards):
        now.append((learner.queries, batch.index.tolist()))
        tell(batch, rewards)

    learner.tell = note
    simulate(learner, world, 200, seed=2, late=late)
    assert len(learner.heard) == 200 - late
    for row, reward in learner.heard:  # one row a query
        assert reward == (0.25 if row < 50 else 0.5 if row < 120 else 0.75)
    across = [row for told, rows in now for row in rows if row < 50 < told]
    assert bool(across) == (late > 0)  # else the test could not fail


@worlds
def test_no_batch_straddles_a_change(make):
    world, ends = make(), []
    learner = Uniform(len(world.present(0)), 2, seed=1)
    simulate(learner, world, 300, seed=2, watch=lambda batch: ends.append(learner.queries))
    t, changes = 0, set()
    while (following := world.next_change(t)) is not None and following < 300:
        changes.add(t := following)
    assert changes <= set(ends)


def test_learners_that_cannot_add_arms_play_worlds_whose_arms_stay():
    for learner in (
        URS(6, 2, seed=1),
        ETCG(6, 2, 300, seed=1),
        IWKSVFair(6, 2, 300, eta=0.4, seed=1),
    ):
        run = simulate(learner, WORLDS["season"](), 300, seed=1)
        assert run.queries == 300
        assert np.isfinite(run.regret).all()
    with pytest.raises((TypeError, AttributeError)):
        simulate(ETCG(4, 2, 300, seed=1), WORLDS["roster"](), 300, seed=1)


def test_a_run_can_be_cut_at_a_change():
    """The second half starts where the first stopped, before arms that change then have changed."""
    whole = simulate(Uniform(4, 2, seed=1), WORLDS["roster"](), 300, seed=2)
    learner, rng = Uniform(4, 2, seed=1), as_generator(2, "environment")
    first, second = (simulate(learner, WORLDS["roster"](), t, seed=rng) for t in (130, 300))
    assert whole.regret[-1] == pytest.approx(first.regret[-1] + second.regret[-1])
    np.testing.assert_array_equal(whole.selections, first.selections + second.selections)
    assert whole.changes == first.changes + second.changes


def test_arms_and_targets_must_be_those_of_the_world():
    with pytest.raises(ValueError, match="learner must hold the 4 arms that are present after 0"):
        simulate(Uniform(6, 2, seed=1), WORLDS["roster"](), 300, seed=1)
    with pytest.raises(TypeError, match="target must be a function of time"):
        simulate(Uniform(6, 2, seed=1), WORLDS["season"](), 300, seed=1, target=np.full(6, 1 / 3))
    world, even = WORLDS["roster"](), WORLDS["roster"]().present
    run = simulate(
        Uniform(4, 2, seed=1),
        world,
        300,
        seed=1,
        target=lambda t: np.full(len(even(t)), 2 / len(even(t))),
    )
    assert run.regret[-1] == pytest.approx(0.0, abs=1e-9)
    game = SetFunction(lambda sets: 0.2 + 0 * sets[:, 0], m=6, empty=0.2)
    with pytest.raises(ValueError, match="agree on what the empty set is worth"):
        simulate(Uniform(6, 2, seed=1), Abrupt([GAME, game], [100]), 300, seed=1)


def test_names_follow_the_arms():
    names = [*"abcdef"]
    world = ComeAndGo(GAME, joins={4: 100, 5: 130}, leaves={0: 130}, names=names)
    run = simulate(Uniform(4, 2, names=names[:4], seed=1), world, 200, seed=1)
    assert run.names == tuple(names)
    assert np.isnan(run.merit[0])
    assert run.marginals[0] == 0.0
    nameless = ComeAndGo(GAME, joins={4: 100, 5: 230}, leaves={0: 130})
    run = simulate(Uniform(4, 2, names=names[:4], seed=1), nameless, 200, seed=1)
    assert run.names == (*"abcd", "arm 4", "arm 5")


# ---- pictures ----


def test_the_course_of_a_run_is_drawn(tmp_path):
    run = simulate(Uniform(4, 2, seed=1), WORLDS["roster"](), 300, seed=2)
    ax = plot.course(run)
    due, given = ax.lines[0], ax.lines[1]
    np.testing.assert_allclose(due.get_ydata()[:43], run.due_curve[:43, 0])
    assert np.isnan(given.get_ydata()[44:]).all()  # arm 0 has left
    words = " ".join(text.get_text() for text in ax.texts)
    assert all(word in words for word in ("+ 4", "\N{MINUS SIGN} 0", "pauses 1", "resumes 1"))
    ax.figure.savefig(tmp_path / "course.png")
    assert (tmp_path / "course.png").stat().st_size > 5000
    assert len(plot.course(run, arms=[1, 5]).get_legend_handles_labels()[1]) == 2
    with pytest.raises(ValueError, match="arms must be among the 6"):
        plot.course(run, arms=["ada"])
    with pytest.raises(ValueError, match=r"draw it with evenhand\.plot\.course"):
        plot.convergence(run)
    with pytest.raises(ValueError, match="at least two checkpoints"):
        plot.course(simulate(Uniform(6, 2, seed=1), GAME, 30, seed=1, checkpoints=[30]))


def test_a_still_game_has_a_course_too():
    run = simulate(EvenHand(6, 2, names=[*"abcdef"], seed=1), shop(6, RNG), 300, seed=1)
    assert not run.changes
    assert len(plot.course(run, arms=["b"]).lines) == 2


def test_a_cascade_changes_on_some_of_its_nodes():
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    before = IndependentCascade(edges, 4, p=0.1)
    after = IndependentCascade(edges, 4, p=np.where(np.isin(edges[:, 0], [1, 3]), 0.6, 0.1))
    world = Abrupt([before, after], [100])
    run = simulate(Uniform(4, 2, seed=1), world, 200, seed=1)
    assert run.changes == (Change(100, "game"),)
    assert np.ptp(run.due_curve, axis=0).min() > 0.0

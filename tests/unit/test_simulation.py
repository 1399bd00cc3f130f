"""The loop, what it records, and what is measured from it."""

import copy
import pickle
import re
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import evenhand
from evenhand import fair_policy, kshapley, metrics, simulate
from evenhand.exchange.batch import note_arms
from evenhand.games import IndependentCascade, NoisyOr, SetFunction, synthetic
from evenhand.learners import ETCG, URS, EvenHand, FairCMAB, IWKSVFair, MURaS
from evenhand.randomness.streams import as_generator, stream
from evenhand.simulation.record import log_spaced
from tests.contracts import LEARNERS

M, K, T = 6, 3, 3001
GAME = NoisyOr([0.1, 0.3, 0.45, 0.6, 0.75, 0.9])
TARGET = fair_policy(kshapley(GAME, K), K)
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def one_by_one(learner, game, horizon, target, seed):
    """The naive loop: every query's loss, members and reward, one at a time.

    A loss sums itself over a batch, too: the same number.
    """
    loss = metrics.FairnessLoss(target, learner.k)
    rng, per_query, observed = as_generator(seed, "environment"), [], []
    selections, total = np.zeros(learner.m, int), 0.0
    while learner.queries < horizon:
        batch = learner.ask(horizon - learner.queries)
        total += loss.total(batch)
        values = np.broadcast_to(loss(batch), batch.sizes.shape)
        for order, sizes, times, row in zip(
            batch.orders, batch.sizes, batch.times, values, strict=True
        ):
            for _ in range(times):
                for size, value in zip(sizes, row, strict=True):
                    per_query.append(value)
                    selections[order[:size]] += 1
        if batch.learns:
            rewards = game.pull(batch.orders, batch.sizes, rng)
            learner.tell(batch, rewards)
            for sizes, row in zip(batch.sizes, rewards, strict=True):
                observed += [x for size, x in zip(sizes, row, strict=True) if size and x == x]
    assert total == pytest.approx(sum(per_query), rel=1e-12)
    return np.cumsum(per_query), selections, np.mean(observed) if observed else np.nan


@learners
def test_the_record_is_that_of_the_naive_loop(make):
    marks = [1, 2, 3, 5, 17, 100, 101, 1500, 3000, 3001]
    run = simulate(make(M, K, T, 1), GAME, T, target=TARGET, seed=2, checkpoints=marks)
    regret, selections, reward = one_by_one(make(M, K, T, 1), GAME, T, TARGET, 2)
    assert len(regret) == run.queries == T
    np.testing.assert_allclose(run.regret, regret[np.array(marks) - 1], rtol=1e-10)
    np.testing.assert_array_equal(run.selections, selections)
    assert run.merit_curve.shape == (len(marks), M)
    assert run.reward == pytest.approx(reward, rel=1e-12, nan_ok=True)
    assert run.alignment == pytest.approx(metrics.alignment(TARGET, selections))


class Patchy(NoisyOr):
    """Every third reward never arrives."""

    def pull(self, orders, sizes, rng):
        rewards = super().pull(orders, sizes, rng)
        rewards.reshape(-1)[::3] = np.nan
        return rewards


@pytest.mark.parametrize("name", ["even_hand", "muras"])
def test_the_mean_reward_leaves_out_what_was_not_observed(name):
    """Rewards that never arrived, and the empty sets that MURaS asks."""
    run = simulate(LEARNERS[name](M, K, T, 1), Patchy(GAME.mu), T, target=TARGET, seed=2)
    *_, reward = one_by_one(LEARNERS[name](M, K, T, 1), Patchy(GAME.mu), T, TARGET, 2)
    assert 0.0 < run.reward < 1.0
    assert run.reward == pytest.approx(reward, rel=1e-12)


def play(game, k=2, horizon=50, seed=0, **options):
    return simulate(URS(game.m, k, seed=0), game, horizon, seed=seed, **options)


def test_the_target_is_worked_out_where_merits_can_be_had():
    assert play(GAME).target == pytest.approx(fair_policy(GAME.kshapley(2), 2))
    listed = SetFunction(lambda sets: GAME.value(sets), m=M)  # no closed form
    assert play(listed).target == pytest.approx(fair_policy(GAME.kshapley(2), 2))


def test_an_arm_that_does_harm_is_due_nothing():
    worth = np.array([0.5, 0.3, 0.4, -0.2])
    run = play(SetFunction(lambda sets: sets @ worth, m=4))
    assert run.target == pytest.approx(fair_policy([0.5, 0.3, 0.4, 0.0], 2))
    assert run.target[3] == 0.0


class OnlyPulled:
    m = 4

    def pull(self, orders, sizes, rng):
        return np.zeros(sizes.shape)


@pytest.mark.parametrize(
    ("game", "k", "reason"),
    [
        (SetFunction(lambda sets: sets.any(axis=1), m=100), 5, "more than 1,000,000 sets of one"),
        (SetFunction(lambda sets: sets.any(axis=1), m=5000), 5000, "more than 1,000,000 sets"),
        (IndependentCascade([[i, i + 1] for i in range(25)], m=26, p=0.5), 2, "edges"),
        (OnlyPulled(), 2, "game must have m and value"),
    ],
    ids=["many sets", "very many sets", "cascade", "only pulled"],
)
def test_a_target_that_cannot_be_worked_out_is_asked_for(game, k, reason):
    way_out = rf"reverse_reachable, then pass target=.*fair_policy\(.*estimate\.merit, 0\), k={k}\)"
    with pytest.raises(ValueError, match=f"target must be given where .*{reason}.*{way_out}"):
        play(game, k)
    assert play(game, k, target=np.full(game.m, k / game.m)).queries == 50


class Listening(NoisyOr):
    """Writes down the first number of the generator it is given."""

    def pull(self, orders, sizes, rng):
        self.heard = getattr(self, "heard", None) or copy.deepcopy(rng).random()
        return super().pull(orders, sizes, rng)


def test_a_seed_is_a_stream_of_the_environment_and_a_generator_is_used_as_it_is():
    def heard(seed):
        game = Listening(GAME.mu)
        simulate(EvenHand(M, K, seed=7), game, 50, target=TARGET, seed=seed)
        return game.heard

    assert heard(7) == heard(np.random.SeedSequence(7)) == as_generator(7, "environment").random()
    assert heard(np.random.default_rng(7)) == np.random.default_rng(7).random() != heard(7)
    assert as_generator(7, "learner").random() != heard(7) != heard(8)
    one, two = np.random.SeedSequence(7).spawn(2)
    assert len({heard(seed) for seed in (7, one, two)}) == 3


def test_a_run_reads_as_one_line_and_as_a_table():
    run = play(GAME, horizon=1000, checkpoints=[10, 1000])
    line = r"Run\(1,000 queries of 6 arms, regret [\d.]+, alignment 0\.\d{3}, [\de.+-]+ s\)"
    assert re.fullmatch(line, repr(run))
    assert "regret 5.5 after 10, " in repr(replace(run, checkpoints=[10], regret=np.array([5.5])))
    assert "no checkpoint reached" in repr(play(GAME, checkpoints=[]))
    page = run._repr_html_()
    assert page.count("<tr>") == 1 + M
    assert re.search(r"<td>5</td><td>0\.\d+</td>", page.split("</tr>")[1])  # most is due to arm 5
    named = replace(run, names=("a<b", *"cdefg"))._repr_html_()
    assert "<td>a&lt;b</td>" in named
    assert "a<b" not in named
    wide = play(NoisyOr(np.full(50, 0.5)))._repr_html_()
    assert wide.count("<tr>") == 21
    assert wide.endswith("<p>and 30 more</p>")


def test_a_run_knows_the_names_that_its_learner_knows():
    assert simulate(URS(M, K, seed=0), GAME, 10, seed=0).names is None
    named = URS(M, K, names=list("abcdef"), seed=0)
    assert simulate(named, GAME, 20, seed=0).names == tuple("abcdef")


def test_measurements_read_as_one_line():
    assert repr(metrics.FairnessLoss([1.0, 1.0], 2)) == "FairnessLoss(m=2, k=2)"
    table = metrics.shares([0.1, 0.3], [150, 250])
    assert repr(table) == "Shares(2 arms, mean alignment 0.750)"  # of 2/3 and 5/6
    assert table._repr_html_().count("<tr>") == 3


def test_urs_costs_the_distance_of_uniform_from_fair():
    for horizon in (1, 1000, 10**8):
        run = simulate(URS(M, K, seed=0), GAME, horizon, target=TARGET, seed=0)
        expected = horizon * np.abs(K / M - TARGET).sum()
        assert run.regret[-1] == pytest.approx(expected, rel=1e-12)
        assert run.selections.sum() == horizon * K


def test_a_committed_set_costs_twice_what_it_lacks():
    learner = ETCG(M, K, 10**8, seed=0)
    marks = [10**7, 10**8]
    run = simulate(learner, GAME, 10**8, target=TARGET, seed=0, checkpoints=marks)
    chosen = np.flatnonzero(learner.marginals)
    rate = (run.regret[1] - run.regret[0]) / (marks[1] - marks[0])
    assert rate == pytest.approx(2 * (K - TARGET[chosen].sum()), rel=1e-9)


def test_no_reward_is_drawn_where_none_is_wanted():
    class Counting(NoisyOr):
        pulled = 0

        def pull(self, orders, sizes, rng):
            type(self).pulled += sizes.size
            return super().pull(orders, sizes, rng)

    learner = MURaS(M, K, 10**6, lam=8, seed=0)
    simulate(learner, Counting(GAME.mu), 10**6, target=TARGET, seed=0)
    assert Counting.pulled == 2 * M * learner.samples


def test_checkpoints_are_log_spaced_and_end_at_the_horizon():
    marks = log_spaced(10**6)
    assert marks[0] == 1
    assert marks[-1] == 10**6
    assert len(marks) <= 61
    np.testing.assert_allclose(np.diff(np.log10(marks[30:])), 0.1, atol=2e-3)
    assert log_spaced(1).tolist() == [1]


def test_progress_is_reported():
    seen = []
    simulate(URS(M, K, seed=0), GAME, 500, target=TARGET, seed=0, progress=seen.append)
    assert seen[-1] == 500


@pytest.fixture
def ctrl_c_heard():
    """As in a terminal, also where the tests run in the background with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_heard")
def test_interrupting_loses_nothing_that_was_recorded():
    def stop_at(queries):
        if queries >= 1200:
            signal.raise_signal(signal.SIGINT)

    learner = IWKSVFair(M, K, T, eta=0.4, growth=0, seed=1)
    with pytest.raises(evenhand.Interrupted, match="interrupted after 1200 queries") as caught:
        simulate(learner, GAME, T, target=TARGET, seed=2, progress=stop_at)
    part = caught.value.run
    whole = simulate(IWKSVFair(M, K, T, eta=0.4, growth=0, seed=1), GAME, T, target=TARGET, seed=2)
    assert part.queries == 1200
    assert part.checkpoints.max() <= 1200
    np.testing.assert_array_equal(part.regret, whole.regret[: len(part.regret)])
    assert isinstance(caught.value, KeyboardInterrupt)


def test_interrupting_before_the_first_checkpoint_gives_a_run_too():
    def stop(queries):
        raise KeyboardInterrupt

    learner = IWKSVFair(M, K, T, eta=0.4, growth=0, seed=1)
    with pytest.raises(evenhand.Interrupted) as caught:
        simulate(learner, GAME, T, seed=2, checkpoints=[T], progress=stop)
    assert caught.value.run.merit_curve.shape == (0, M)
    assert caught.value.run.selections.sum() > 0


INTERRUPTED = """
import numpy as np, signal, evenhand
from evenhand.games import NoisyOr
from evenhand.learners import *
T = 10**6
signal.signal(signal.SIGINT, signal.default_int_handler)
game = NoisyOr(np.linspace(0.2, 0.9, 20))
target = evenhand.fair_policy(game.kshapley(5), 5)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
evenhand.simulate(URS(20, 5, seed=1), game, 10, target=target, seed=2)  # loads what a run needs
for i in range(12):
    learner = LEARNER
    signal.setitimer(signal.ITIMER_REAL, 0.25 + 0.013 * i)
    try:
        evenhand.simulate(learner, game, T, target=target, seed=2)
        raise SystemExit("was not interrupted")
    except evenhand.Interrupted as stop:
        run = stop.run
    assert run.queries == learner.queries
    assert len(run.checkpoints) == len(run.regret) == len(run.merit_curve)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("safe")
"""


@pytest.mark.parametrize(
    "learner",
    ["IWKSVFair(20, 5, T, gamma=0.8, growth=0, seed=1)", "GapE(20, 5, T, growth=0, seed=1)"],
)
def test_ctrl_c_at_any_moment_is_safe(learner):
    """Signals from a timer, anywhere between and inside compiled code, in a process of its own."""
    program = INTERRUPTED.replace("LEARNER", learner)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "safe", (done.returncode, done.stderr[-2000:])


def test_an_interruption_crosses_processes():
    run = simulate(URS(M, K, seed=0), GAME, 10, target=TARGET, seed=0)
    again = pickle.loads(pickle.dumps(evenhand.Interrupted(run)))
    assert again.run.queries == 10


def test_regret_of_fair_cmab_does_not_depend_on_how_asks_are_cut():
    """Checkpoints inside the commit phase read the same from long batches as from short ones."""

    class Short(FairCMAB):
        def ask(self, limit=50):
            return super().ask(min(limit, 50))

    marks, game = [100, 3000, 10_000, 30_000, 50_000], synthetic(20, stream(1, 1, "instance"))
    target = fair_policy(kshapley(game, 5), 5)
    one, other = (
        simulate(
            kind(20, 5, 50_000, seed=1), game, 50_000, target=target, seed=2, checkpoints=marks
        )
        for kind in (FairCMAB, Short)
    )
    np.testing.assert_allclose(one.regret, other.regret, rtol=1e-12)


def one_replication(replication):
    game = synthetic(M, stream(3, replication, "instance"))
    learner = IWKSVFair(M, K, T, eta=0.4, seed=stream(3, replication, "learner"))
    target = fair_policy(kshapley(game, K), K)
    run = simulate(learner, game, T, target=target, seed=stream(3, replication, "environment"))
    return run.regret.tobytes(), run.selections.tobytes(), run.merit.tobytes()


def test_any_number_of_workers_in_any_order_gives_the_same_bits():
    replications = [1, 2, 3, 4]
    alone = {r: one_replication(r) for r in reversed(replications)}
    for workers in (2, 3):
        with ProcessPoolExecutor(workers) as pool:
            together = dict(zip(replications, pool.map(one_replication, replications), strict=True))
        assert together == alone
    assert alone[1] != alone[2]


def test_streams_are_named_not_counted():
    first = stream(7, 3, "learner").random(4)
    stream(7, 3, "environment").random(100)
    np.testing.assert_array_equal(first, stream(7, 3, "learner").random(4))
    keys = [(s, r, n) for s in (7, 8) for r in (1, 2) for n in ("learner", "environment")]
    assert len({stream(*key).random() for key in keys}) == len(keys)
    with pytest.raises(ValueError, match=r"name must be one of .* got 'weather'"):
        stream(1, 1, "weather")


def test_a_simulation_imports_nothing_of_the_lab():
    program = (
        "import sys, evenhand; print([m for m in sys.modules if m.split('.')[0] in "
        "('matplotlib', 'typer', 'rich', 'polars') or m.startswith('evenhand.lab')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"horizon": 99}, ValueError, "horizon must be the learner's own 3001, got horizon=99"),
        ({"horizon": 0}, ValueError, "horizon must be at least 1, got horizon=0"),
        ({"horizon": 1e3}, TypeError, "horizon must be an integer, got 1000.0"),
        ({"target": TARGET[:-1]}, ValueError, r"target must have shape \(6,\), got \(5,\)"),
        ({"target": TARGET / 2}, ValueError, "target must sum to k=3, got 1.5; make it with"),
        ({"target": TARGET * np.nan}, ValueError, r"target must be finite and >= 0"),
        (
            {"checkpoints": [5, 3]},
            ValueError,
            r"checkpoints must increase within 1..3001, the horizon, got .*\[1\]=3 after 5",
        ),
        ({"checkpoints": [0, 3]}, ValueError, r"checkpoints must increase .*, got .*\[0\]=0$"),
        ({"checkpoints": [3, 4000]}, ValueError, r"checkpoints must .*, got .*\[1\]=4000 after 3"),
        ({"checkpoints": [1.5]}, TypeError, "checkpoints must hold integers"),
        ({"checkpoints": [[1, 2]]}, ValueError, r"checkpoints must be a vector, got shape \(1, 2"),
        ({"target": "fair"}, TypeError, "target must be a vector of real numbers, got 'fair'"),
        (
            {"game": NoisyOr([0.5] * 4)},
            ValueError,
            "must have the same number of arms, got learner.m=6 and game.m=4",
        ),
        ({"game": GAME.value}, TypeError, "game must have m and pull, got method; call simulate"),
        ({"seed": "x"}, TypeError, "seed must be an integer, got 'x'"),
    ],
)
def test_bad_input_is_refused_by_name(change, error, message):
    arguments = {"game": GAME, "horizon": T, "target": TARGET, "seed": 0, **change}
    with pytest.raises(error, match=message):
        simulate(IWKSVFair(M, K, T, eta=0.4, seed=1), **arguments)


def test_learner_and_game_swapped_and_classes_not_called_are_refused():
    learner = URS(M, K, seed=1)
    with pytest.raises(TypeError, match=r"learner must .*, got NoisyOr; call simulate\(learner"):
        simulate(GAME, learner, 10, seed=1)
    with pytest.raises(TypeError, match=r"learner must have m and ask, got <class '.*URS'>"):
        simulate(URS, GAME, 10, seed=1)


def test_a_horizon_that_was_reached_before_is_refused():
    learner = URS(M, K, seed=1)
    simulate(learner, GAME, 1000, seed=1)
    with pytest.raises(ValueError, match=r"horizon must exceed the 1000 .*, got horizon=1000"):
        simulate(learner, GAME, 1000, seed=1)
    more = simulate(learner, GAME, 1500, seed=1)
    assert more.selections.sum() == 500 * K
    assert more.regret[-1] == pytest.approx(500 * np.abs(K / M - TARGET).sum())


def test_alignment_is_the_papers_score():
    merit = np.array([0.4, 0.3, 0.2, 0.1])
    selections = np.array([10, 50, 40, 0])
    m, s = merit / merit.sum(), selections / selections.sum()
    scores = [min(a / b, b / a) if b > 0 else 0.0 for a, b in zip(m, s, strict=True)]
    assert metrics.alignment(merit, selections) == pytest.approx(np.mean(scores))
    table = metrics.shares(merit[::-1], selections[::-1])
    assert table.arms.tolist() == [3, 2, 1, 0]  # decreasing merit
    np.testing.assert_allclose(table.ratio, [4, 0.6, 0.5, np.inf])
    np.testing.assert_allclose(table.alignment, scores)
    assert metrics.alignment([0.0, 1.0], [1, 1]) == pytest.approx(0.25)  # no merit, selected: 0


def test_slope_is_the_exponent_of_growth():
    horizons = np.array([1e4, 1e5, 1e6, 1e7])
    found = metrics.slope(horizons, 3 * horizons ** (2 / 3))
    assert found.value == pytest.approx(2 / 3)
    assert found.stderr == pytest.approx(0, abs=1e-6)
    rng = np.random.default_rng(0)
    noisy = horizons ** (2 / 3) * np.exp(rng.normal(0, 0.1, (10, 4)))
    found = metrics.slope(horizons, noisy)
    x = np.log(horizons)
    each = [np.polyfit(x, np.log(row), 1)[0] for row in noisy]
    assert found.value == pytest.approx(np.mean(each))
    assert found.stderr == pytest.approx(np.std(each, ddof=1) / np.sqrt(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.alignment([1.0], [1, 2]),
            "merit and selections must have the same length",
        ),
        (lambda: metrics.alignment([0.0], [1]), "merit must not be all zero"),
        (lambda: metrics.alignment([1.0], [0]), "selections must not be all zero"),
        (lambda: metrics.slope([1e4, 1e5], [1.0]), r"regret must have shape \(n,\) or \(r, n\)"),
        (lambda: metrics.slope([1e4, 1e5], [1.0, 0.0]), "regret must be above 0 .*, got 0"),
        (lambda: metrics.slope([1e4, 1e5], [1.0, 2.0]), "horizons must hold at least 3 different"),
        (lambda: metrics.slope([1e4, 1e4], [[1.0, 2.0]] * 2), "at least .* 2 for several, got"),
        (lambda: metrics.slope([0.0, 1e5], [1.0, 1.0]), "horizons must be finite and >="),
    ],
)
def test_bad_measurements_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04broken", b"\x93NUMPY"])
def test_broken_files_are_refused(content, tmp_path):
    path = tmp_path / "learner.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"learner.npz must be a file written by evenhand.save"):
        evenhand.load(path)


def test_other_npz_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match=r"must be a file written by evenhand.save"):
        evenhand.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        evenhand.load(tmp_path / "missing.npz")


def test_saving_replaces_in_one_step_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "learner.npz"
    evenhand.save(URS(M, K, seed=0), path)
    before = path.read_bytes()

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        evenhand.save(URS(M, K, seed=1), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["learner.npz"]


@pytest.mark.parametrize(
    ("n", "s", "often", "run"),
    [(50, 3, 4, 1), (50, 3, 4, 7), (50, 4, 1, 50), (50, 1, 4, 1), (50, 1, 1, 1), (5000, 1, 1, 1)],
)
def test_selections_are_memberships_in_the_queried_prefixes(n, s, often, run):
    """Rows of one set each are counted block by block, of which the last case has two.

    Runs of rows have the same sizes, which are then looked at once.
    """
    rng = np.random.default_rng(1)
    m, k = 9, 4
    orders = np.array([rng.permutation(m)[:k] for _ in range(n)])
    sizes = np.repeat(rng.integers(0, k + 1, size=(-(-n // run), s)), run, axis=0)[:n]
    times = rng.integers(1, often + 1, size=n)
    expected = np.zeros(m, np.int64)
    for order, row, often in zip(orders, sizes, times, strict=True):
        for size in row:
            expected[order[:size]] += often
    orders[np.arange(k) >= sizes.max(axis=1)[:, None]] = -(10**9)  # ignored, whatever it is
    selections = np.zeros(m, np.int64)
    last = np.full(m, -1)
    note_arms(selections, last, orders, sizes, times, 10)
    np.testing.assert_array_equal(selections, expected)
    at = 10 + np.cumsum(np.repeat(times, s)).reshape(n, s)  # number of the query, the last of alike
    latest = np.full(m, -1)
    for order, row, when in zip(orders, sizes, at, strict=True):
        for size, query in zip(row, when, strict=True):
            latest[order[:size]] = query
    np.testing.assert_array_equal(last, latest)

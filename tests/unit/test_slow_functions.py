"""Merits of slow functions: workers, cache, progress and Ctrl-C."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

from evenhand import games, kshapley, merit
from evenhand.merit.bar import Bar, Lines, of_command, reporter

CONTEXT = get_context("forkserver")  # what is imported, is imported once for all pools
CONTEXT.set_forkserver_preload(["evenhand.merit", "tests.unit.test_slow_functions"])
M, K = 6, 3
N_SETS = 6 + 15 + 20
MANY = 14


def worth(arms):
    return np.sqrt(sum(arms) + 1.0) / 10


def marked(folder, arms):
    """Worth of a set; each call leaves a file, in whatever process it is made."""
    with open(f"{folder}/{'-'.join(map(str, sorted(arms)))}.{time.monotonic_ns()}", "x"):
        return worth(arms)


class Draws:
    """A game with a pull of its own: mean and noise cannot be told apart from outside."""

    m = M

    def pull(self, orders, sizes, rng):
        rewards = np.empty(sizes.shape)
        for i, j in np.ndindex(*sizes.shape):
            rewards[i, j] = worth(orders[i, : sizes[i, j]].tolist()) * (sizes[i, j] > 0)
        return rewards + rng.normal(0, 0.1, sizes.shape)


GAMES = {
    "exact": games.SetFunction.per_set(worth, M),
    "noisy": games.SetFunction.per_set(worth, M, noise=games.Bernoulli()),
    "draws": Draws(),
}
ESTIMATORS = {
    "stratified": lambda game, **how: merit.stratified(
        game, K, 600, np.random.default_rng(1), **how
    ),
    "monte_carlo": lambda game, **how: merit.monte_carlo(
        game, K, 300, np.random.default_rng(1), **how
    ),
    "full_sets": lambda game, **how: merit.full_set_estimate(
        game, K, 60, np.random.default_rng(1), **how
    ),
}


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=CONTEXT) as pool:
        yield pool


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", GAMES)
def test_the_numbers_are_the_same_for_any_number_of_workers(name, kind, processes, tmp_path):
    ask, game = ESTIMATORS[name], GAMES[kind]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(5) as five:
        found = [
            ask(game, executor=one),
            ask(game, executor=five),
            ask(game, executor=processes),
            ask(game, cache=tmp_path / "values.db"),
            ask(game, cache=tmp_path / "values.db", executor=five),
        ]
    if kind != "draws":  # noise of one's own is drawn in one go without workers
        found.append(ask(game))
    for other in found[1:]:
        np.testing.assert_array_equal(other.merit, found[0].merit)
        np.testing.assert_array_equal(other.stderr, found[0].stderr)
        assert other.queries == found[0].queries
    assert np.isfinite(found[0].merit).all()


def test_another_generator_gives_other_numbers(processes):
    one, other = (
        merit.stratified(GAMES["draws"], K, 600, np.random.default_rng(s), executor=processes)
        for s in (1, 2)
    )
    assert (one.merit != other.merit).all()


def test_exact_values_are_the_same_with_workers(processes):
    game = GAMES["exact"]
    np.testing.assert_array_equal(kshapley(game, K, executor=processes), kshapley(game, K))
    np.testing.assert_array_equal(
        merit.full_set_value(game, K, executor=processes), merit.full_set_value(game, K)
    )


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_functions_of_many_sets_get_them_in_batches(batch):
    sizes = []

    def f(sets):
        sizes.append(len(sets))
        return sets.mean(axis=1)

    with ThreadPoolExecutor(2) as pool:
        found = kshapley(games.SetFunction(f, M), K, executor=pool, batch=batch)
    np.testing.assert_allclose(found, 1 / M, atol=1e-15)
    assert max(sizes) <= batch


def test_a_cache_pays_for_nothing_twice_but_the_fingerprint(tmp_path):
    game = games.SetFunction.per_set(partial(marked, tmp_path), M)
    with ThreadPoolExecutor(3) as pool:
        for paid in (N_SETS, N_SETS + 2, N_SETS + 4):
            found = kshapley(game, K, cache=tmp_path / "values.db", executor=pool)
            assert len(list(tmp_path.glob("*.[0-9]*"))) == paid
            np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    sets, values = merit.Cache(tmp_path / "values.db").values()
    np.testing.assert_array_equal(values, GAMES["exact"].value(sets))
    assert len(sets) == N_SETS


def test_an_empty_cache_knows_nothing(tmp_path):
    sets, values = merit.Cache(tmp_path / "values.db").values()
    assert (sets.shape, values.shape) == ((0, 0), (0,))


def test_a_cache_keeps_draws_of_the_same_generator(tmp_path):
    calls = []

    class Counted(Draws):
        def pull(self, orders, sizes, rng):
            calls.append(len(orders))
            return super().pull(orders, sizes, rng)

    ask, cache = ESTIMATORS["stratified"], merit.Cache(tmp_path / "draws.db", "draws")
    one = ask(Counted(), cache=cache)
    paid = sum(calls)
    other = ask(Counted(), cache=cache)
    np.testing.assert_array_equal(one.merit, other.merit)
    assert sum(calls) == paid + 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "other"}, "belongs to a game with name=mine, got name=other"),
        ({"m": M + 1}, "m=6, got m=7"),
        ({"noise": games.Bernoulli()}, r"noise=None, got noise=Bernoulli\(\)"),
        ({"f": lambda arms: 1.0}, "belongs to another game named 'mine'"),
    ],
)
def test_a_cache_is_refused_for_another_game(tmp_path, change, message):
    def ask(name="mine", m=M, noise=None, f=worth):
        cache = merit.Cache(tmp_path / "values.db", name)
        kshapley(games.SetFunction.per_set(f, m, noise=noise), 2, cache=cache)

    ask()
    ask()
    with pytest.raises(ValueError, match=message):
        ask(**change)


def test_a_random_function_needs_a_tolerance(tmp_path):
    rng = np.random.default_rng(1)
    game = games.SetFunction.per_set(lambda arms: 0.5 + 0.01 * rng.random(), M)
    cache = tmp_path / "values.db"
    kshapley(game, 2, cache=cache)
    with pytest.raises(ValueError, match="raise tolerance"):
        kshapley(game, 2, cache=cache)
    one, other = (kshapley(game, 2, cache=merit.Cache(cache, tolerance=t)) for t in (0.1, np.inf))
    np.testing.assert_array_equal(one, other)


def test_files_that_are_no_cache_are_refused(tmp_path):
    (tmp_path / "note.txt").write_text("not a database, but a text of some length " * 20)
    with pytest.raises(ValueError, match="cache must be a file of evenhand's"):
        kshapley(GAMES["exact"], 2, cache=tmp_path / "note.txt")
    with pytest.raises(FileNotFoundError, match="make it first"):
        kshapley(GAMES["exact"], 2, cache=tmp_path / "none" / "values.db")
    with pytest.raises(TypeError, match="cache must be a path"):
        kshapley(GAMES["exact"], 2, cache=3)


SCRIPT = """
import sys
from tests.unit.test_slow_functions import shared

if __name__ == "__main__":
    print(shared(sys.argv[1]).tolist())
"""


def slow(folder, arms):
    time.sleep(0.02)
    return marked(folder, arms)


def shared(folder):
    game = games.SetFunction.per_set(partial(slow, folder), M)
    return kshapley(game, K, cache=merit.Cache(f"{folder}/values.db", "shared"))


def start(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    command = [sys.executable, str(file), str(tmp_path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


def calls_in(folder):
    return [file.name.partition(".")[0] for file in folder.glob("*.[0-9]*")]


def test_two_processes_share_a_cache_and_the_work_and_one_may_be_killed(tmp_path):
    first = start(tmp_path)
    while len(calls_in(tmp_path)) < 12:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    known = len(calls_in(tmp_path))
    other = start(tmp_path)
    while len(calls_in(tmp_path)) < known + 3:  # its fingerprint, and a set of its own
        assert other.poll() is None
        time.sleep(0.01)
    found = [shared(tmp_path), json.loads(other.communicate()[0])]
    expected = kshapley(GAMES["exact"], K)
    np.testing.assert_array_equal(found, [expected, expected])
    # a fifth of a second's worth may have been under way; two sets per process are fingerprints
    assert known < N_SETS
    assert len(calls_in(tmp_path)) <= N_SETS + 11 + 2 * 2
    assert len(set(calls_in(tmp_path))) == N_SETS


def interrupting(after, m=MANY, noise=None):
    calls = []

    def f(arms):
        calls.append(arms)
        if len(calls) == after:
            raise KeyboardInterrupt
        return worth(arms)

    return games.SetFunction.per_set(f, m, noise=noise)


@pytest.mark.parametrize("executor", [None, 1])
def test_ctrl_c_leaves_what_stratified_knows(executor):
    pool = executor and ThreadPoolExecutor(1)
    with pytest.raises(merit.Unfinished) as stopped:
        merit.stratified(interrupting(2000), 6, 5000, np.random.default_rng(1), executor=pool)
    found = stopped.value.estimate
    truth = merit.exact(games.SetFunction.per_set(worth, MANY), 6)
    assert found.queries == stopped.value.answered < 5000
    assert np.all(np.abs(found.merit - truth) < 6 * found.stderr)
    assert found.stderr.max() < 0.05


def test_ctrl_c_leaves_the_listings_that_are_complete():
    """More than half of 450 listings of four arms are; with the pilot's 50, errors would treble."""
    asked = 1, 2000, np.random.default_rng(1)
    whole = merit.stratified(interrupting(None, 4, games.TruncatedGaussian()), *asked)
    with pytest.raises(merit.Unfinished) as stopped:
        merit.stratified(interrupting(1500, 4, games.TruncatedGaussian()), *asked)
    found = stopped.value.estimate
    assert 1.1 < found.stderr.mean() / whole.stderr.mean() < 1.6
    assert np.all(np.abs(found.merit - whole.merit) < 4 * found.stderr)


def test_ctrl_c_before_anything_is_known_leaves_nan():
    for ask in (merit.stratified, merit.full_set_estimate):
        with pytest.raises(merit.Unfinished) as stopped:
            ask(interrupting(3), 5, 600, np.random.default_rng(1))
        assert np.isnan(stopped.value.estimate.merit).all()


def test_ctrl_c_leaves_whole_arms_of_monte_carlo():
    with pytest.raises(merit.Unfinished) as stopped:
        merit.monte_carlo(interrupting(700), 5, 2400, np.random.default_rng(1), batch=1)
    found = stopped.value.estimate
    known = np.isfinite(found.stderr)
    assert 0 < known.sum() < MANY
    truth = merit.exact(games.SetFunction.per_set(worth, MANY), 5)
    assert np.all(np.abs(found.merit - truth)[known] < 6 * found.stderr[known])


def test_ctrl_c_leaves_full_set_values():
    with pytest.raises(merit.Unfinished) as stopped:
        merit.full_set_estimate(interrupting(300), 5, 700, np.random.default_rng(1))
    found = stopped.value.estimate
    truth = merit.full_set_value(games.SetFunction.per_set(worth, MANY), 5)
    assert np.all(np.abs(found.merit - truth) < 6 * found.stderr)


def test_ctrl_c_says_where_exact_values_are_kept(tmp_path):
    cache = merit.Cache(tmp_path / "values.db")
    with pytest.raises(merit.Unfinished, match=r"all answers are kept in .*values.db") as stopped:
        kshapley(interrupting(200), 3, cache=cache)
    assert stopped.value.estimate is None
    assert len(cache.values()[0]) >= 14 + 91


def test_ctrl_c_with_a_game_of_its_own_noise():
    class Stopping(Draws):
        def pull(self, orders, sizes, rng):
            raise KeyboardInterrupt

    for name, ask in ESTIMATORS.items():
        with pytest.raises(merit.Unfinished) as stopped:
            ask(Stopping())
        assert np.isnan(stopped.value.estimate.merit).all(), name


def dying(folder, arms):
    """Ends its process when it is first asked for the arms 1 and 3."""
    if arms == frozenset([1, 3]):
        try:
            open(f"{folder}/died", "x").close()
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return marked(folder, arms)


def always_dying(arms):
    if arms == frozenset([1, 3]):
        os._exit(1)
    return worth(arms)


def pool():
    return ProcessPoolExecutor(2, mp_context=CONTEXT)


def test_a_dead_worker_costs_its_tasks_only(tmp_path):
    game = games.SetFunction.per_set(partial(dying, tmp_path), M)
    found = kshapley(game, K, executor=pool)
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    assert (tmp_path / "died").exists()
    assert len(calls_in(tmp_path)) <= N_SETS + 20  # tasks that were out; never all of them


def test_a_process_that_dies_alone_costs_its_task_only(tmp_path):
    game = games.SetFunction.per_set(partial(dying, tmp_path), M)
    with merit.Processes(3, mp_context=CONTEXT) as executor:
        found = kshapley(game, K, executor=executor)
        assert (tmp_path / "died").exists()
        again = kshapley(GAMES["exact"], K, executor=executor)  # it goes on
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    np.testing.assert_array_equal(again, found)
    # of the task that was lost, some sets had been asked; what waited behind it had not begun
    by_set = [name.split(".")[0] for name in calls_in(tmp_path)]
    twice = {name for name in by_set if by_set.count(name) > 1}
    assert len(twice) <= 4
    assert len(by_set) == N_SETS + len(twice)


def test_an_executor_that_cannot_be_made_again_says_so_and_the_cache_goes_on(tmp_path):
    game = games.SetFunction.per_set(partial(dying, tmp_path), M)
    with pytest.raises(RuntimeError, match="what came back by then is kept"), pool() as executor:
        kshapley(game, K, executor=executor, cache=tmp_path / "values.db")
    before = len(calls_in(tmp_path))
    assert before > 2
    found = kshapley(game, K, cache=tmp_path / "values.db")
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    assert len(calls_in(tmp_path)) <= N_SETS + 2 + 12  # four tasks of three sets were out


def test_a_cluster_gives_the_same_numbers_and_outlives_a_worker(tmp_path):
    from dask.distributed import Client, LocalCluster

    game = games.SetFunction.per_set(partial(dying, tmp_path), M)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        found = kshapley(game, K, executor=client.get_executor())
        noisy = ESTIMATORS["stratified"](GAMES["draws"], executor=client.get_executor())
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    assert (tmp_path / "died").exists()
    # the rows of its task, and of one whose answer it still held
    assert len(calls_in(tmp_path)) <= N_SETS + 12
    with ThreadPoolExecutor(1) as one:
        expected = ESTIMATORS["stratified"](GAMES["draws"], executor=one)
    np.testing.assert_array_equal(noisy.merit, expected.merit)


@pytest.mark.slow
def test_loky_sends_functions_that_pickle_cannot():
    from joblib.externals.loky import get_reusable_executor

    game = games.SetFunction.per_set(lambda arms: worth(arms), M)
    found = kshapley(game, K, executor=partial(get_reusable_executor, 2))
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))


@pytest.mark.slow
def test_loky_is_started_again_when_a_worker_dies(tmp_path):
    from joblib.externals.loky import get_reusable_executor

    game = games.SetFunction.per_set(partial(dying, tmp_path), M)
    found = kshapley(game, K, executor=partial(get_reusable_executor, 2))
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    assert (tmp_path / "died").exists()


@pytest.mark.slow
@pytest.mark.parametrize("make", [pool, partial(merit.Processes, 2, mp_context=CONTEXT)])
def test_a_set_that_always_kills_its_worker_is_given_up(make):
    game = games.SetFunction.per_set(always_dying, M)
    with pytest.raises(RuntimeError, match="workers died 3 times"):
        kshapley(game, K, executor=make)


def test_errors_of_the_function_come_back_with_the_set():
    def broken(arms):
        if arms == frozenset([1, 3]):
            raise ZeroDivisionError("no denominator")
        return 0.5

    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError) as caught:
        kshapley(games.SetFunction.per_set(broken, M), K, executor=executor)
    assert any("[1, 3]" in note for note in caught.value.__notes__)


class Unpicklable:
    """A game that holds what cannot be sent, but can be made again."""

    m, noise = M, None
    remake = None

    def __init__(self):
        self.lock = threading.Lock()

    def value(self, sets):
        return GAMES["exact"].value(sets)

    pull = GAMES["exact"].pull


def test_a_game_that_cannot_be_sent_says_how_it_could(processes):
    game = Unpicklable()
    with pytest.raises(TypeError, match="an attribute remake"):
        kshapley(game, K, executor=processes)
    game.remake = Unpicklable
    np.testing.assert_array_equal(
        kshapley(game, K, executor=processes), kshapley(GAMES["exact"], K)
    )


@pytest.mark.parametrize("executor", [3, "dask"])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(TypeError, match="executor must have submit"):
        kshapley(GAMES["exact"], K, executor=executor)


def test_progress_counts_up_to_all_queries():
    seen = []
    kshapley(GAMES["exact"], K, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (N_SETS, N_SETS)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    with pytest.raises(TypeError, match="progress must be"):
        kshapley(GAMES["exact"], K, progress="yes")


def test_a_bar_is_shown_on_a_terminal_alone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not isinstance(reporter(None), Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(reporter(None), Bar)
    assert not isinstance(reporter(False), Bar)


def test_the_bar_says_how_long_it_will_take():
    now, file = [0.0], io.StringIO()
    bar = Bar(file, lambda: now[0])
    bar(10, 10, 100)  # nothing is shown of what is fast
    assert file.getvalue() == ""
    now[0] = 10.0
    bar(40, 20, 100)  # half of what is done was known before
    assert "40 of 100 (40%), 30 s left" in file.getvalue()
    bar.close()
    assert file.getvalue().endswith("\r")


def test_in_a_log_lines_stand_for_the_bar(monkeypatch):
    now, file = [0.0], io.StringIO()
    lines = Lines(file, lambda: now[0])
    for now[0] in (1.0, 6.0, 7.0, 12.0, 30.0):
        lines(int(now[0]), 30)
    assert file.getvalue() == (
        "6 of 30 after 6 s, about 24 s left\n12 of 30 after 12 s, about 18 s left\n"
    )
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(of_command(), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert of_command() is None


def test_an_error_of_the_function_leaves_the_other_values_in_the_cache(tmp_path):
    cache = merit.Cache(tmp_path / "values.db")

    def broken(arms):
        if arms == frozenset([0, 1, 4]):
            raise ZeroDivisionError
        return worth(arms)

    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError):
        kshapley(games.SetFunction.per_set(broken, M), K, executor=executor, cache=cache)
    sets, values = cache.values()
    assert len(sets) >= 6 + 15
    np.testing.assert_array_equal(values, GAMES["exact"].value(sets))


def test_cascades_are_drawn_by_workers_too(processes):
    game = games.IndependentCascade([[0, 1], [1, 2], [0, 3], [3, 2]], m=5, p=0.5)
    truth = merit.reverse_reachable(game, 2, 50_000, np.random.default_rng(1)).merit
    for estimator in (merit.stratified, merit.monte_carlo):
        one = estimator(game, 2, 2000, np.random.default_rng(2), executor=processes)
        with ThreadPoolExecutor(3) as threads:
            other = estimator(game, 2, 2000, np.random.default_rng(2), executor=threads)
        np.testing.assert_array_equal(one.merit, other.merit)
        assert np.all(np.abs(one.merit - truth) < 5 * one.stderr + 0.01)


def test_ctrl_c_in_the_fingerprint_leaves_nothing_wrong_behind(tmp_path):
    cache = merit.Cache(tmp_path / "values.db")
    calls = []

    def stopping(arms):
        calls.append(arms)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return worth(arms)

    with ThreadPoolExecutor(1) as executor, pytest.raises(merit.Unfinished):
        kshapley(games.SetFunction.per_set(stopping, M), K, executor=executor, cache=cache)
    found = kshapley(GAMES["exact"], K, cache=cache)
    np.testing.assert_array_equal(found, kshapley(GAMES["exact"], K))
    sets, values = cache.values()
    np.testing.assert_array_equal(values, GAMES["exact"].value(sets))

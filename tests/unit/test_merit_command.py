"""``evenhand merit``: merits from the shell."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand import games, kshapley, merit
from evenhand.cli import app

TEAM = """
import os
from evenhand.games import SetFunction

WORTH = {"ada": 3.0, "bob": 2.0, "cy": 2.0, "dee": 0.5, "eve": -1.0}

def earned(members):
    with open("calls.txt", "a") as file:
        file.write(",".join(sorted(map(str, members))) + "\\n")
    return sum(WORTH[name] for name in members) + 10.0 * ({"bob", "cy"} <= members)

def of_numbers(arms):
    return len(arms) / 2

def make():
    table = [0.3, 0.2, 0.1]
    return SetFunction.per_set(lambda arms: sum(table[a] for a in arms), 3)

def broken(arms):
    raise ZeroDivisionError("no denominator")
"""
NAMES = ("ada", "bob", "cy", "dee", "eve")


@pytest.fixture
def team(tmp_path, monkeypatch):
    (tmp_path / "team.py").write_text(TEAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "team", raising=False)
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, ["merit", *map(str, arguments)])


def expected(k):
    worth = np.array([3.0, 2.0, 2.0, 0.5, -1.0])
    f = lambda sets: sets @ worth + 10.0 * (sets[:, 1] & sets[:, 2])  # noqa: E731
    return kshapley(games.SetFunction(f, 5), k)


def rows_of(done):
    assert done.exit_code == 0, done.output
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_a_function_of_names_needs_no_game(team):
    done = invoke("team:earned", 2, "--names", "ada,bob,cy,dee,eve")
    rows = rows_of(done)
    assert tuple(row[0] for row in rows) == NAMES
    np.testing.assert_allclose([float(row[1]) for row in rows], expected(2), atol=1e-6)
    assert "negative merits count as 0 in the policy: eve" in done.stderr
    assert "a place only where fewer arms than K have any merit" in done.stderr


def test_a_function_of_numbers_needs_how_many(team):
    rows = rows_of(invoke(team / "team.py:of_numbers", 2, "--arms", 4))
    assert [float(row[1]) for row in rows] == [0.5] * 4


def test_values_are_kept_and_not_paid_for_twice(team):
    arguments = ("team:earned", 2, "--names", ",".join(NAMES), "--cache", "team.db")
    one = rows_of(invoke(*arguments))
    paid = len((team / "calls.txt").read_text().splitlines())
    other = rows_of(invoke(*arguments))
    assert one == other
    assert paid == 15
    assert len((team / "calls.txt").read_text().splitlines()) == 17  # and two for the fingerprint
    assert len(merit.Cache("team.db").values()[0]) == 15


def test_a_table_for_other_programs(team):
    done = invoke("team:earned", 2, "--names", ",".join(NAMES), "--csv", "out.csv")
    assert done.stdout == "wrote out.csv\n"
    with open("out.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["merit"]) for row in rows] == expected(2).tolist()
    assert sum(float(row["policy"]) for row in rows) == pytest.approx(2.0)


def test_more_sets_than_the_budget_are_estimated(team):
    done = invoke("team:of_numbers", 6, "--arms", 12, "--budget", 2000)
    rows = rows_of(done)
    assert "2,509 sets are more than --budget 2,000" in done.stderr
    np.testing.assert_allclose([float(row[1]) for row in rows], 0.5, atol=1e-6)


def test_the_closed_form_needs_no_budget(team):
    (team / "known.py").write_text(
        "from evenhand.games import NoisyOr\ndef make():\n    return NoisyOr([0.5] * 40)\n"
    )
    assert len(rows_of(invoke("known:make", 20, "--budget", 1))) == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("team:make", 4), "k must lie between 1 and 3, the number of arms, got 4"),
        (("team:of_numbers", 2), "of a set"),
        (("team:earned", 2, "--names", "ada,bob", "--arms", 3), "--names must be 3 names"),
        (("team:earned", 2, "--names", "ada,ada"), "different"),
        (("team:of_numbers", 6, "--arms", 12, "--budget", 20), "--budget must be at least"),
        (("/nowhere/team2.py:make", 2), "is there a team2.py"),
        (("team:make", 2, "--cache", "none/team.db"), "folder none does not exist"),
        (("team:broken", 2, "--arms", 3), "no denominator"),
    ],
)
def test_errors_speak_shell(team, arguments, message):
    done = invoke(*arguments)
    assert done.exit_code != 0
    assert message in str(done.exception) + done.output
    assert "evenhand.merit" not in str(done.exception)


def test_errors_of_the_function_end_in_one_line(team):
    command = [sys.executable, "-m", "evenhand", "merit", "team:broken", "2", "--arms", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "ZeroDivisionError: no denominator" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_workers_make_the_game_again(team):
    """Its function is a lambda with a table of its own, which cannot be sent."""
    rows = rows_of(invoke("team:make", 2, "--workers", 2))
    np.testing.assert_allclose([float(row[1]) for row in rows], [0.3, 0.2, 0.1], atol=1e-6)


def test_ctrl_c_prints_what_is_known(team):
    (team / "stopping.py").write_text(
        "calls = []\n"
        "def f(arms):\n"
        "    calls.append(arms)\n"
        "    if len(calls) == 1900:\n        raise KeyboardInterrupt\n"
        "    return len(arms) / 2\n"
    )
    sys.modules.pop("stopping", None)
    done = invoke("stopping:f", 7, "--arms", 14, "--budget", 5000)
    assert done.exit_code == 130
    assert "interrupted after" in done.stderr
    assert "with --cache a second run goes on" in done.stderr
    assert len(done.stdout.splitlines()) == 15


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_hand_on_the_keyboard_is_heard_at_once(team, workers):
    (team / "slow.py").write_text(
        "import time\ndef f(arms):\n    time.sleep(0.02)\n    return len(arms) / 2\n"
    )
    command = ["merit", "slow:f", "6", "--arms", "14", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *command, "--cache", "slow.db"],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (team / "slow.db").exists() or len(merit.Cache("slow.db").values()[0]) < 20:
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "all answers are kept in slow.db" in said
    assert "Traceback" not in said

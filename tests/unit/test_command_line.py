"""The command line: what it lists, what it refuses, what it says in a log and when stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from evenhand import cli
from evenhand.lab.paper.experiments import GROUPS, preset_names
from evenhand.lab.tables import Lines, progress_bar, show


def invoke(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments], env={"COLUMNS": "80"})


COMMANDS = "serve demo reproduce run results report merit plan page bench service".split()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_screen_and_cuts_nothing_off(command):
    said = invoke(*command.split(), "--help").output
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said


def test_help_lists_the_experiments_and_fits_the_screen():
    assert set(cli.EXPERIMENTS) == {"fig3", *preset_names()}
    said = invoke("reproduce", "--help").output
    words = said.replace(",", " ").replace(";", " ").split()
    assert {*cli.EXPERIMENTS, *GROUPS} <= set(words)
    assert max(map(len, said.splitlines())) <= 80


def test_names_of_experiments_are_completed():
    asked = {"_EVENHAND_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    asked["COMP_WORDS"] = "evenhand reproduce drift-s"
    found = CliRunner().invoke(cli.app, env=asked, prog_name="evenhand").output.split()
    assert found == ["drift-smooth", "drift-stand-in", "drift-still"]


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("option", ["--replications", "--workers"])
def test_none_and_fewer_are_refused(option, number, tmp_path):
    done = invoke("reproduce", "fig1", option, number, "--results", tmp_path / "none")
    assert done.exit_code == 2
    assert option in done.output
    assert not (tmp_path / "none").exists()


def test_a_log_has_a_line_per_tenth(capsys):
    with progress_bar("runs", 40) as update:
        for n in range(1, 41):
            update(advance=1, description=f"{n}/40")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [f"{4 * i}/40" for i in range(1, 11)]
    assert lines[0].startswith(" 10% after 0 s, about 0 s left: ")
    assert lines[-1].startswith("100% after 0 s: ")


def test_the_last_line_has_nothing_left_whatever_was_rounded(capsys):
    with progress_bar("runs", sum([0.1, 0.7, 0.4])) as update:
        for part in (0.4, 0.7, 0.1):
            update(advance=part)
    assert capsys.readouterr().out.splitlines()[-1].startswith("100% after 0 s: ")


def test_work_of_no_length_is_done_at_once(capsys):
    Lines("nothing", 0.0).update(completed=0)
    assert capsys.readouterr().out == "100% after 0 s: nothing\n"


SLEEPY = """
import time
from pathlib import Path
from evenhand.games import NoisyOr

class Sleepy(NoisyOr):
    def pull(self, orders, sizes, rng):
        Path(__file__).with_name("asleep").touch()
        time.sleep(600)

def make():
    return Sleepy([0.2, 0.4, 0.6])
"""
EXPERIMENT = """
name = "sleepy"
title = "a cell that ends and one that does not"
replications = 1
horizons = [600]
learner = [{ kind = "iw-ksvfair", eta = 0.5 }]

[[panel]]
k = 2
title = "quick"
game = { kind = "synthetic", m = 5 }

[[panel]]
k = 2
title = "endless"
game = { kind = "sleepy.py:make" }
"""


def test_ctrl_c_waits_for_nobody_and_says_what_is_kept(tmp_path):
    (tmp_path / "sleepy.py").write_text(SLEEPY)
    (tmp_path / "sleepy.toml").write_text(EXPERIMENT)
    command = [sys.executable, "-m", "evenhand", "run", "sleepy.toml"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while not ((tmp_path / "asleep").exists() and list(tmp_path.glob("results/cells/*.parquet"))):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    try:
        out, err = process.communicate(timeout=60)  # the other cell would sleep for ten minutes
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 130
    assert "50% after" in out
    kept = "stopped: 1 of 2 cells are finished and kept in results; the same command goes on"
    assert kept in err
    assert "Traceback" not in err


def test_ctrl_c_in_fig3_says_what_is_kept(monkeypatch, tmp_path):
    from evenhand.lab.paper import differences

    def stopped(folder, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(differences, "write_differences", stopped)
    done = invoke("reproduce", "fig3", "--results", tmp_path / "here")
    assert done.exit_code == 130
    assert "fig3 is kept in" in done.output
    assert "here" in done.output


def test_fig3_goes_on_from_where_ctrl_c_found_it(tmp_path):
    from evenhand.lab.paper.differences import write_differences

    def press(updates):
        if updates == 3:
            signal.raise_signal(signal.SIGINT)

    seen = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            write_differences(tmp_path, press, updates=5)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "differences.part.npz").exists()
    write_differences(tmp_path, seen.append, updates=5)
    assert seen == [4, 5]


def test_ctrl_c_within_compiled_code_shows_no_traceback(monkeypatch, capsys):
    def stopped():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr(cli, "app", stopped)
    with pytest.raises(SystemExit) as ended:
        cli.entry()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_scheduler_that_is_none_is_named():
    pytest.importorskip("dask.distributed")
    from evenhand.lab.runner import cluster

    with pytest.raises(ConnectionError, match=r"--scheduler must be .* such as tcp://.*'nonsense'"):
        next(iter(cluster("nonsense")([])))


def test_tables_of_results_fit_the_screen_and_cut_no_number(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    row = {
        "game": json.dumps({"kind": "drawn", "family": "rare_coverage", "m": 30}),
        "learner": json.dumps({"kind": "iw-ksvfair-exact", "gamma": 0.8}),
        "k": 10,
        "late": 0,
        "horizon": 31623,
        "replications": 10,
        "regret": 15671.2,
        "regret_sd": 890.0,
        "alignment": 0.913,
        "seconds": 0.00385,
    }
    show(pl.DataFrame([row]))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert {"3.16e+04", "1.567e+04", "8.9e+02", "0.913", "0.00385"} <= set(said.split())
    assert "…" not in said


def test_nothing_found_is_said(tmp_path):
    results = Path(__file__).parents[2] / "docs" / "reproduction"
    nobody = invoke("results", results, "--only", "lower-bound", "--learner", "nobody")
    assert "leave out" in str(nobody.exception)
    apart = invoke("results", results, "--only", "lower-bound", "--against", tmp_path)
    assert "no runs in common" in str(apart.exception)
    nowhere = invoke("results", results, "--against", tmp_path / "no")
    assert nowhere.exit_code == 2
    assert "--against" in nowhere.output

"""What the commands of the service refuse, and how they say so."""

import gzip
import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from evenhand import cli
from evenhand.service import upkeep
from evenhand.service.database import database
from tests.service.conftest import new_file, new_postgresql
from tests.service.running import free_port


@pytest.fixture(autouse=True)
def _no_logs(monkeypatch):
    """Logs of this process would go on to a file that pytest closes."""
    monkeypatch.setattr("evenhand.service.serve.log_as_json", lambda: None)


def refused(capsys, monkeypatch, *arguments):
    """The one line that a command ends with."""
    monkeypatch.setattr(sys, "argv", ["evenhand", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.entry()
    assert ended.value.code == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("error: ")
    assert "\n" not in said
    return said


COMMANDS = ["check", "compact", "backup all.gz", "key ada", "recompute shop 1"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_that_is_not_there_is_not_made(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, monkeypatch, "service", *command.split(), "--database", "no.db")
    assert "--database must be a file that `evenhand serve` made, but there is no no.db" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["serve --port 0", "service check", "service migrate"])
def test_a_file_that_is_no_database_is_named(command, tmp_path, capsys, monkeypatch):
    (tmp_path / "text.db").write_text("hello" * 100)
    said = refused(capsys, monkeypatch, *command.split(), "--database", tmp_path / "text.db")
    assert "text.db cannot be used: file is not a database" in said


def test_a_database_without_tables_says_what_makes_them(tmp_path, capsys, monkeypatch):
    (tmp_path / "x.db").touch()
    said = refused(capsys, monkeypatch, "service", "check", "--database", tmp_path / "x.db")
    assert "no such table: experiments; `evenhand serve`" in said


def test_a_server_that_is_away_is_named_without_the_password(capsys, monkeypatch):
    url = f"postgresql://ada:hush@127.0.0.1:{free_port()}/shop?application_name=x"
    said = refused(capsys, monkeypatch, "serve", "--port", "0", "--database", url)
    assert "error: --database postgresql://127.0.0.1:" in said
    assert "hush" not in said


def test_a_server_without_tables_says_what_makes_them(postgresql, capsys, monkeypatch):
    url = new_postgresql(postgresql, "template1")
    said = refused(capsys, monkeypatch, "service", "check", "--database", url)
    assert "does not exist; `evenhand serve`" in said


def test_the_demo_names_the_extra_that_is_missing(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "msgspec" else find(n))
    said = refused(capsys, monkeypatch, "demo")
    assert "needs msgspec; install evenhand[serve]" in said


def test_an_experiment_that_is_not_there_is_named(tmp_path, capsys, monkeypatch):
    new_file(tmp_path)
    where = ("--database", tmp_path / "x.db")
    said = refused(capsys, monkeypatch, "service", "recompute", "shop", "1", *where)
    assert "experiment must be one of none: there are none yet, got 'shop'" in said


def test_keys_cannot_have_expired_before_they_are_made(tmp_path):
    done = CliRunner().invoke(cli.app, ["service", "key", "ada", "--days", "-3"])
    assert done.exit_code == 2
    assert "--days" in done.output


@pytest.mark.parametrize("damage", ["text", "empty", "cut", "other"])
def test_a_damaged_backup_restores_nothing(damage, tmp_path):
    upkeep.backup(new_file(tmp_path), tmp_path / "all.gz")
    whole = (tmp_path / "all.gz").read_bytes()
    wrong = {
        "text": b"hello",
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "other": gzip.compress(b"{}\n"),
    }
    bad = tmp_path / "new.db.gz"  # named after the database: it stays, as all that was there does
    bad.write_bytes(wrong[damage])
    with pytest.raises(ValueError, match=r"new\.db\.gz must be a backup made by evenhand"):
        upkeep.restore(bad, database(str(tmp_path / "new.db")))
    assert list(tmp_path.glob("new.db*")) == [bad]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("--certificate", "a.pem"), "must be given together"),
        (("--private-key", "a.pem"), "must be given together"),
        (("--certificate", "no.pem", "--private-key", "a.pem"), "there is no no.pem"),
        (("--certificate", "a.pem", "--private-key", "a.pem"), "PEM files that belong together"),
    ],
)
def test_nobody_is_served_without_the_tls_asked_for(files, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pem").write_text("hello")
    assert message in refused(capsys, monkeypatch, "serve", "--port", "0", *files)
    assert not (tmp_path / "evenhand.db").exists()


def test_the_key_of_another_database_is_not_written_over(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evenhand.key").write_text("another's")
    said = refused(capsys, monkeypatch, "serve", "--port", "0")
    assert "evenhand.key" in said
    assert "move it elsewhere" in said
    assert (tmp_path / "evenhand.key").read_text() == "another's"


def test_ctrl_c_while_it_starts_ends_it_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "evenhand", "serve", "--port", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=log, start_new_session=True)
    end = time.monotonic() + 60
    while '"child": "web-0"' not in (tmp_path / "log").read_text():  # it imports now
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(60) == 0
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert "all that was confirmed" in said

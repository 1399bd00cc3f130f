"""The database: SQLite in one file, or PostgreSQL; the same statements for both.

Statements are written with ``?`` for values. What the two say differently is an attribute:
``now`` (the database's clock, in seconds since 1970), ``skip_locked`` and ``day``.
"""

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evenhand.service import locks

try:
    import psycopg
except ImportError:  # installed with evenhand[serve-pg]
    psycopg = None  # type: ignore[assignment]

Row = tuple[Any, ...]
DATABASE = "EVENHAND_DATABASE"  # where processes find its URL: arguments can be read by others
# what a database raises when it refuses, and when it cannot do its work now
REFUSALS: tuple[type[Exception], ...] = (sqlite3.Error,)
if psycopg is not None:
    REFUSALS += (psycopg.Error,)
ERRORS: tuple[type[Exception], ...] = (*REFUSALS, OSError)
PATIENCE = 30.0  # seconds that a statement may take or wait
NEWEST = "head"  # schema of this release, as migrations call it


class Connection(ABC):
    """One connection, used by one thread at a time."""

    now: str
    skip_locked: str
    day: str  # number of the day of a column ``at``
    one_service: bool  # whether one service at most works on it
    arrays: bool  # whether a value may be a list

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""

    @abstractmethod
    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    @abstractmethod
    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once per row of values."""

    @abstractmethod
    def transaction(self) -> Any:
        """A context in which statements write, all or none; durable when it is left."""

    @abstractmethod
    def alone(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Run a statement as a transaction of its own and return all its rows.

        It is durable when this returns.
        """

    @abstractmethod
    def exclude(self, experiment: int) -> None:
        """Wait until nobody records tells of it; until the transaction ends, nobody does."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def recent(self, column: str, seconds: float) -> str:
        """A condition: a time is at most so long ago.

        Times as far ahead were written before the clock was set back: nobody knows how long ago.
        """
        return f"({column}>{self.now}-{seconds} and {column}<{self.now}+{seconds})"

    def clock(self) -> float:
        """The database's clock now."""
        return float(self.execute(f"select {self.now}")[0][0])


class Database(ABC):
    """Where connections come from."""

    url: str
    many_hosts: bool  # whether other machines may use it too

    @abstractmethod
    def connect(self) -> Connection:
        """Open a connection."""

    @abstractmethod
    def migrate(self, schema: str = NEWEST) -> None:
        """Bring the schema to what this release needs, or to an older one."""


def database(url: str) -> Database:
    """Return the database of a URL, ``postgresql://...``, or of a file's path.

    Examples
    --------
    >>> database("sqlite:///evenhand.db").url
    'sqlite:///evenhand.db'
    """
    if url.startswith(("postgresql://", "postgres://")):
        if psycopg is None:
            raise ImportError("PostgreSQL needs psycopg; install evenhand[serve-pg]")
        return PostgreSQL("postgresql://" + url.split("://", 1)[1])
    if "://" in url and not url.startswith("sqlite:///"):
        raise ValueError(
            f"database must be a file, sqlite:///file or postgresql://..., got {url.split(':')[0]}:"
        )
    return SQLite(Path(url.removeprefix("sqlite:///")))


class SQLite(Database):
    """One file. All processes that write take turns at a lock, so that nobody waits by polling."""

    many_hosts = False

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"sqlite:///{path}"

    def connect(self) -> "SQLiteConnection":
        """Open a connection."""
        return SQLiteConnection(self.path)

    def migrate(self, schema: str = NEWEST) -> None:
        """Bring the schema to what this release needs, or to an older one."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"folder {self.path.parent} does not exist; make it first")
        self.path.touch(mode=0o600)  # it holds the secrets that sign receipts
        self.connect().close()
        _upgrade(self.url, schema)


class SQLiteConnection(Connection):
    """A connection to a file, in WAL mode; every commit is synced to disk."""

    now = "((julianday('now') - 2440587.5) * 86400.0)"
    skip_locked = ""
    day = "cast(at / 86400.0 as integer)"
    one_service = True
    arrays = False

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, check_same_thread=False,
            cached_statements=1024,
        )  # fmt: skip
        # FULL, as in WAL mode NORMAL survives a killed process, but not a power cut
        try:
            for setting in ("journal_mode=wal", "synchronous=full", "wal_autocheckpoint=4000"):
                self._db.execute(f"pragma {setting}")
        except sqlite3.Error:
            self._db.close()
            raise
        self._turn = locks.opened(path.with_name(path.name + "-turn"))

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""
        return self._db.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        return self._db.execute(statement, values).rowcount

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once per row of values."""
        self._db.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing; durable when it is left."""
        locks.lock(self._turn)
        try:
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("rollback")
                raise
        finally:
            locks.unlock(self._turn)

    def alone(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Run a statement as a transaction of its own; durable when this returns."""
        locks.lock(self._turn)
        try:
            return self.execute(statement, values)  # to its last row: then it is committed
        finally:
            locks.unlock(self._turn)

    def exclude(self, experiment: int) -> None:
        """Nothing to do: one transaction writes at a time."""

    def close(self) -> None:
        """Close it."""
        self._db.close()
        self._turn.close()


class PostgreSQL(Database):
    """A server, shared by any number of hosts."""

    many_hosts = True

    def __init__(self, url: str) -> None:
        self.url = url

    def connect(self) -> "PostgreSQLConnection":
        """Open a connection."""
        return PostgreSQLConnection(self.url)

    def migrate(self, schema: str = NEWEST) -> None:
        """Bring the schema to what this release needs, or to an older one; one host at a time."""
        guard = psycopg.connect(self.url, autocommit=True, connect_timeout=5)
        with guard:
            guard.execute("select pg_advisory_lock(hashtext('evenhand migrations'))")
            _upgrade(self.url.replace("postgresql://", "postgresql+psycopg://", 1), schema)


class PostgreSQLConnection(Connection):
    """A connection to a server. Locks end with their transaction, as poolers want it."""

    now = "extract(epoch from clock_timestamp())::float8"  # now() stands still in a transaction
    skip_locked = " for update skip locked"
    day = "floor(at / 86400.0)"
    one_service = False
    arrays = True

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=5,
            options=f"-c statement_timeout={PATIENCE * 1000:.0f} -c synchronous_commit=on",
        )

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        return self._db.execute(_in_psycopg(statement), values)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""
        found = self._run(statement, values)
        return found.fetchall() if found.description else []

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        return int(self._run(statement, values).rowcount)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once per row of values."""
        with self._db.cursor() as cursor:
            cursor.executemany(_in_psycopg(statement), list(rows))

    def transaction(self) -> Any:
        """Write all or nothing; durable when it is left."""
        return self._db.transaction()

    def alone(self, statement: str, values: Sequence[Any]) -> list[Row]:
        """Run a statement as a transaction of its own; durable when this returns."""
        return self.execute(statement, values)

    def exclude(self, experiment: int) -> None:
        """Wait until nobody records tells of an experiment."""
        self.execute(f"select pg_advisory_xact_lock({LOCKS}, ?::int)", (experiment,))

    def close(self) -> None:
        """Close it."""
        self._db.close()


LOCKS = 0x6568  # our advisory locks on experiments; the function record_tells shares them


def _in_psycopg(statement: str) -> str:
    return statement.replace("?", "%s")


def schema_of(c: Connection) -> str:
    """Return the number of the last migration that a database has seen."""
    return str(c.execute("select version_num from alembic_version")[0][0])


def _upgrade(url: str, schema: str) -> None:
    """Run the migrations that a database has not seen, up to one."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    try:
        with create_engine(url, poolclass=NullPool).begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, schema)
    except CommandError as error:
        raise ValueError(
            f"the schema must be one that this release knows, but {error}; it is a newer "
            "release's: install that one"
        ) from None
    except DBAPIError as error:
        raise (error.orig or error) from None  # what the database itself said


def wait_for(source: Database, seconds: float) -> Connection:
    """Open a connection, trying again while the database is away."""
    end = time.monotonic() + seconds
    while True:
        try:
            return source.connect()
        except ERRORS:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)

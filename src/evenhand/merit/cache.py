"""Answers of a slow game on disk: one SQLite file, which two processes may share."""

import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.checks import check_number
from evenhand.typing import Bools, Floats

FORMAT = "1"
LEASE = 600.0  # seconds until rows taken by a process that says nothing more are free again
REFRESH = 60.0
AT_ONCE = 500  # keys in one look-up
TABLES = """
CREATE TABLE IF NOT EXISTS about (field TEXT PRIMARY KEY, content TEXT);
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prints (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken (key BLOB PRIMARY KEY, owner TEXT, since REAL) WITHOUT ROWID;
"""


class Cache:
    """A file that keeps every value and draw of a slow game as it comes.

    A process that is killed at any time loses what its workers had not handed back yet. The next
    one, with the same generator where there is noise, goes on from there and pays for nothing
    twice, but for two sets: they are asked again each time, as a fingerprint, and the file is
    refused for a game that answers otherwise. It is refused too for another name, number of arms
    or noise. Processes of one machine may share the file and then share the work; it must lie on
    a disk of that machine.

    Parameters
    ----------
    path
        The file; it is made if there is none.
    name
        What it is about, in your words, as "clicks, model of May": change it when the function
        changes.
    tolerance
        Largest relative difference in the fingerprint; ``inf`` where the function itself is
        random. Then no fingerprint is taken.

    Examples
    --------
    >>> import tempfile, evenhand
    >>> from evenhand.games import SetFunction
    >>> calls = []
    >>> game = SetFunction.per_set(lambda arms: calls.append(arms) or len(arms) / 4, m=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(f"{folder}/sizes.db", name="sizes")
    ...     first = evenhand.kshapley(game, 2, cache=cache), len(calls)
    ...     again = evenhand.kshapley(game, 2, cache=cache), len(calls)
    ...     known = cache.values()
    >>> first[1], again[1], len(known[0])  # ten sets; then two for the fingerprint
    (10, 12, 10)
    """

    def __init__(self, path: str | Path, name: str = "", *, tolerance: float = 1e-9) -> None:
        self.path, self.name = Path(path), str(name)
        self.tolerance = (
            np.inf if tolerance == np.inf else check_number("tolerance", tolerance, 0.0, np.inf)
        )
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex}"
        self._file: sqlite3.Connection | None = None
        self._refreshed = 0.0

    def __repr__(self) -> str:
        return f"Cache({str(self.path)!r}, name={self.name!r})"

    def values(self) -> tuple[Bools, Floats]:
        """All sets whose values are known, as a boolean (n, m) matrix, and the values (n,)."""
        with self._connected() as file:
            row = file.execute("SELECT content FROM about WHERE field = 'm'").fetchone()
            m = int(row[0]) if row else 0
            found = file.execute(
                "SELECT key, answer FROM answers WHERE substr(key, 1, 1) = x'76'"
            ).fetchall()
        packed = np.frombuffer(b"".join(key[1:] for key, _ in found), np.uint8)
        packed = packed.reshape(len(found), (m + 7) // 8)
        sets = np.unpackbits(packed, axis=1, count=m).astype(np.bool_)
        return sets, np.frombuffer(b"".join(answer for _, answer in found), np.float64).copy()

    @contextmanager
    def opened(self, m: int, noise: Any) -> Iterator["Cache"]:
        """Bind the file to a game, and hold it open while its answers are asked for."""
        with self._connected() as file:
            told = {"format": FORMAT, "name": self.name, "m": str(m), "noise": described(noise)}
            with file:
                file.execute("BEGIN IMMEDIATE")
                for field, content in told.items():
                    file.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (field, content))
                kept = dict(file.execute("SELECT field, content FROM about").fetchall())
            for field, content in told.items():
                if kept[field] != content:
                    raise ValueError(
                        f"cache {self.path} belongs to a game with {field}={kept[field]}, got "
                        f"{field}={content}; name another file, or delete this one"
                    )
            self._file = file
            try:
                yield self
            finally:
                self._file = None
                with file:
                    file.execute("DELETE FROM taken WHERE owner = ?", (self._owner,))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        file = connect(self.path)
        try:
            yield file
        finally:
            file.close()

    def check(self, keys: Sequence[bytes], answers: Floats) -> None:
        """Compare answers to fixed questions with those of the game the file belongs to."""
        assert self._file is not None
        kept = dict(self._select("prints", keys))
        for key, answer in zip(keys, answers, strict=True):
            if key not in kept:
                row = (key, answer.tobytes())
                self._file.execute("INSERT OR IGNORE INTO prints VALUES (?, ?)", row)
            elif not np.allclose(before := read(kept[key]), answer, rtol=self.tolerance, atol=0.0):
                raise ValueError(
                    f"cache {self.path} belongs to another game named {self.name!r}: its answer to "
                    f"one and the same question was {before.tolist()}, and is {answer.tolist()}; "
                    "name another file, or raise tolerance if the function itself is random"
                )

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """Return the answers that are known."""
        return {key: read(answer) for key, answer in self._select("answers", keys)}

    def take(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Floats], set[bytes]]:
        """Return the answers that are known, and which of the others other processes are at.

        All that are left are taken by this process.
        """
        assert self._file is not None
        now = time.time()
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            known = self.known(keys)
            others = {
                key
                for key, owner in self._select("taken", keys, now - LEASE)
                if owner != self._owner and alive(owner)
            }
            mine = [key for key in keys if key not in known and key not in others]
            rows = [(key, self._owner, now) for key in mine]
            self._file.executemany("INSERT OR REPLACE INTO taken VALUES (?, ?, ?)", rows)
            if now > self._refreshed + REFRESH:
                again = (now, self._owner)
                self._file.execute("UPDATE taken SET since = ? WHERE owner = ?", again)
                self._refreshed = now
        return known, others

    def keep(self, keys: Sequence[bytes], answers: Floats) -> None:
        """Keep answers, all or none of them."""
        assert self._file is not None
        rows = [(key, answer.tobytes()) for key, answer in zip(keys, answers, strict=True)]
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
            self._file.executemany("DELETE FROM taken WHERE key = ?", [(key,) for key in keys])

    def _select(
        self, table: str, keys: Sequence[bytes], since: float | None = None
    ) -> Iterator[tuple[bytes, Any]]:
        """Key and content of the rows of a table with these keys."""
        assert self._file is not None
        column = "answer" if since is None else "owner"
        after = "" if since is None else f" AND since > {since!r}"
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, {column} FROM {table} WHERE key IN ({marks}){after}"
            yield from self._file.execute(query, part)


def connect(path: Path) -> sqlite3.Connection:
    """Open a file, or make it; one that is not a cache is refused."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"folder {path.parent} does not exist; make it first")
    for tries in range(100):
        file = sqlite3.connect(path, timeout=60.0, isolation_level=None)
        try:
            # a write-ahead log loses nothing with the process, and needs no wait for the disk
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.executescript(TABLES)
        except sqlite3.DatabaseError as error:
            file.close()
            if "locked" in str(error) and tries < 99:  # another process makes it this moment
                time.sleep(0.05)
                continue
            raise ValueError(
                f"cache must be a file of evenhand's that can be written, got {path}: {error}"
            ) from None
        return file
    raise AssertionError  # the loop ends above


def read(answer: bytes) -> Floats:
    """Return the numbers of an answer."""
    return np.frombuffer(answer, np.float64)


def alive(owner: str) -> bool:
    """Whether a process that took rows still runs, as far as it can be known."""
    host, pid, _ = owner.split(":")
    if host != socket.gethostname() or os.name != "posix":
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def described(noise: Any) -> str:
    """Describe a noise in words that are the same in another process."""
    text = repr(noise)
    return text if " at 0x" not in text else f"{type(noise).__module__}.{type(noise).__qualname__}"

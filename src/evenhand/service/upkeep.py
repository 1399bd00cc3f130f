"""Backups, restoring, and forgetting what is old."""

import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evenhand.files import replacing
from evenhand.service.database import Connection, Database, PostgreSQL, SQLite, schema_of

HEAD = {"format": "evenhand-service-backup", "version": 1}
FIRST = "0001"  # schema of backups that do not say theirs
TABLES = (
    "experiments", "folders", "arms", "epochs", "leases", "shown", "tells", "log", "snapshots",
    "latest", "stats", "traces", "agreements", "changes", "requests", "keys", "audit",
)  # fmt: skip
PART = 1000  # rows read at a time
BEGIN = "begin isolation level repeatable read read only"


def backup(source: Database, target: Path) -> int:
    """Write all tables, as they are at one moment, to one compressed file; return the rows.

    The service may run meanwhile. The file can be restored into either kind of database. It holds
    the secrets that sign receipts.
    """
    c, n = source.connect(), 0
    try:
        with replacing(target) as file, gzip.open(file, "wt", encoding="utf-8") as out:
            Path(file.name).chmod(0o600)
            c.execute("begin" if c.one_service else BEGIN)
            out.write(json.dumps(HEAD | {"schema": schema_of(c)}) + "\n")
            for table in TABLES:
                columns = _columns(c, table)
                if not columns:  # of a newer release, whose service has not run here yet
                    continue
                out.write(json.dumps({"table": table, "columns": columns}) + "\n")
                for row in _rows(c, table, columns):
                    out.write(json.dumps([_plain(value) for value in row]) + "\n")
                    n += 1
            c.execute("commit")
    finally:
        c.close()
    return n


def _columns(c: Connection, table: str) -> list[str]:
    if c.one_service:
        return [row[1] for row in c.execute(f"pragma table_info({table})")]
    return [
        row[0]
        for row in c.execute(
            "select column_name from information_schema.columns where table_name=? "
            "and table_schema=current_schema() order by ordinal_position",
            (table,),
        )
    ]


def _rows(c: Connection, table: str, columns: list[str]) -> Any:
    """All rows of a table, in parts, in the order of its first columns, which are its key."""
    names = ", ".join(columns)
    offset = 0
    while part := c.execute(
        f"select {names} from {table} order by 1, 2, 3 limit {PART} offset {offset}"
        if len(columns) > 2
        else f"select {names} from {table} order by 1 limit {PART} offset {offset}"
    ):
        yield from part
        offset += PART


def _plain(value: Any) -> Any:
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def restore(path: Path, target: Database) -> int:
    """Read a backup into a new database; return the rows.

    One of an older release is read into the tables of that release, which then become this one's.
    """
    if isinstance(target, SQLite) and target.path.exists():
        raise FileExistsError(f"{target.path} exists already; restore into a new file")
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            head = json.loads(next(lines, "{}"))
            schema = head.pop("schema", FIRST)
            if head != HEAD:
                raise ValueError(f"{path} must be a backup made by evenhand service backup")
            target.migrate(schema)
            n = _load(lines, target, schema)
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeError, json.JSONDecodeError) as error:
        if isinstance(target, SQLite):  # made above, and empty
            for end in ("", "-wal", "-shm", "-turn"):  # and nothing else that has its name
                target.path.with_name(target.path.name + end).unlink(missing_ok=True)
        raise ValueError(
            f"{path} must be a backup made by evenhand service backup, but it is damaged or "
            f"another kind of file ({error}); nothing was restored"
        ) from None
    target.migrate()
    return n


def _load(lines: Iterable[str], target: Database, schema: str) -> int:
    c, n = target.connect(), 0
    try:
        if c.execute("select 1 from experiments limit 1"):
            raise ValueError("the database must be empty, but it holds experiments")
        if schema_of(c) != schema:
            raise ValueError(
                f"the database must be new, but it has tables already, of schema {schema_of(c)}, "
                f"and the backup is of {schema}; restore into one without tables"
            )
        with c.transaction():
            statement, part = "", list[list[Any]]()
            for line in lines:
                said = json.loads(line)
                if isinstance(said, dict):
                    n += _write(c, statement, part)
                    marks = ", ".join("?" * len(said["columns"]))
                    statement = (
                        f"insert into {said['table']}({', '.join(said['columns'])}) values({marks})"
                    )
                    continue
                part.append([_stored(value) for value in said])
                if len(part) >= PART:
                    n += _write(c, statement, part)
            n += _write(c, statement, part)
            c.execute("update folders set until=0, fence=fence+1")
            if isinstance(target, PostgreSQL):
                for table in ("experiments", "changes", "keys", "audit"):
                    c.execute(
                        f"select setval(pg_get_serial_sequence('{table}', 'id'), "
                        f"(select coalesce(max(id), 0) + 1 from {table}), false)"
                    )
    finally:
        c.close()
    return n


def _stored(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def _write(c: Connection, statement: str, part: list[list[Any]]) -> int:
    n = len(part)
    if n:
        c.many(statement, part)
        part.clear()
    return n


def compact(source: Database, days: float) -> dict[str, int]:
    """Delete what is older than so many days and needed no more; return rows by table.

    Rewards that were counted and rows that can be told no more go, and entries of the log behind
    the oldest snapshot kept: replay then begins at that snapshot. Merits stay as they are.
    """
    c, gone = source.connect(), {}
    try:
        with c.transaction():
            before = c.clock() - 86400.0 * days
            for table in ("tells", "shown"):
                gone[table] = c.change(
                    f"delete from {table} where at<? and exists(select 1 from experiments e "
                    f"where e.id={table}.exp and {table}.epoch<e.oldest)",
                    (before,),
                )
            gone["leases"] = c.change("delete from leases where at<?", (before,))
            done = (
                "at<? and exists(select 1 from experiments e "
                "where e.id=epochs.exp and epochs.number<e.oldest)"
            )
            gone["epochs"] = c.change(
                f"delete from epochs where {done} and (exp, number) not in "
                f"(select exp, max(number) from epochs group by exp, {c.day})",
                (before,),
            )
            # of every day the last plan stays, for audits, without its rows
            c.execute(f"update epochs set rows=null where rows is not null and {done}", (before,))
            gone["log"] = c.change(
                "delete from log where at<? and seq<=(select min(seq) from snapshots s "
                "where s.exp=log.exp)",
                (before,),
            )
            gone["requests"] = c.change("delete from requests where at<?", (before,))
            gone["demand"] = c.change("delete from demand where at<?", (c.clock() - 3600.0,))
    finally:
        c.close()
    return gone

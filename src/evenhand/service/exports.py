"""Rewards told, with the arms that were shown, read in parts."""

from collections.abc import AsyncIterator
from functools import partial
from io import BytesIO
from typing import Any

from evenhand.service import rows
from evenhand.service.database import Connection
from evenhand.service.problems import Problem
from evenhand.service.readers import Reader
from evenhand.service.worker import View

PART = 10_000  # rows read at a time
MOST = 5_000_000  # rows of a Parquet file
COLUMNS = ("epoch", "row", "arms", "reward", "told_at", "by_default")


async def csv(reader: Reader, view: View) -> AsyncIterator[bytes]:
    """Return the parts of a CSV file."""
    yield (",".join(COLUMNS) + "\n").encode()
    async for part in _parts(reader, view):
        lines = []
        for epoch, row, arms, reward, at, by_default in part:
            names = _quoted("|".join(arms))
            told = "" if reward is None else repr(reward)
            lines.append(f"{epoch},{row},{names},{told},{at:.3f},{by_default}\n")
        yield "".join(lines).encode()


async def parquet(reader: Reader, view: View) -> bytes:
    """Return a Parquet file."""
    try:
        import polars
    except ImportError:
        raise Problem(
            409, "Parquet needs polars on the server; install evenhand[lab], or take export.csv"
        ) from None
    found: list[Any] = []
    async for part in _parts(reader, view):
        found.extend(part)
        if len(found) > MOST:
            raise Problem(409, f"a Parquet file may hold {MOST} rows; take export.csv")
    schema: dict[str, Any] = {
        "epoch": polars.Int64, "row": polars.Int64, "arms": polars.List(polars.String),
        "reward": polars.Float64, "told_at": polars.Float64, "by_default": polars.Int64,
    }  # fmt: skip
    file = BytesIO()
    polars.DataFrame(found, schema=schema, orient="row").write_parquet(file)
    return file.getvalue()


def _quoted(text: str) -> str:
    """A field that a spreadsheet neither splits nor takes for a formula."""
    if text[:1] in ("=", "+", "-", "@"):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


async def _parts(reader: Reader, view: View) -> AsyncIterator[list[Any]]:
    last = (-1, -1)
    flats: dict[int, rows.Flat | None] = {}
    while True:
        read = partial(_read, experiment=view.id, last=last, flats=flats)
        part = await reader.do(read)
        if not part:
            return
        last = part[-1][:2]
        yield [
            (e, r, [view.called(arm) for arm in arms], y, at, default)
            for e, r, arms, y, at, default in part
        ]


def _read(
    c: Connection, experiment: int, last: tuple[int, int], flats: dict[int, rows.Flat | None]
) -> list[Any]:
    found = c.execute(
        "select epoch, row, reward, at, by_default from tells "
        "where exp=? and (epoch, row)>(?,?) order by epoch, row limit ?",
        (experiment, *last, PART),
    )
    out = []
    for epoch, row, reward, at, by_default in found:
        if epoch not in flats:
            flats.clear()
            flats[epoch] = _flat(c, experiment, epoch)
        flat = flats[epoch]
        out.append((epoch, row, flat.row(row) if flat else [], reward, at, by_default))
    return out


def _flat(c: Connection, experiment: int, epoch: int) -> rows.Flat | None:
    found = c.execute("select rows from epochs where exp=? and number=?", (experiment, epoch))
    return rows.from_bytes(bytes(found[0][0])) if found and found[0][0] is not None else None


def one_row(
    c: Connection, experiment: int, epoch: int, row: int
) -> tuple[list[int] | None, dict[str, Any] | None]:
    """Return the arms of a row, and what was told of it."""
    flat = _flat(c, experiment, epoch)
    told = c.execute(
        "select reward, at, by_default, fold from tells where exp=? and epoch=? and row=?",
        (experiment, epoch, row),
    )
    said = None
    if told:
        reward, at, by_default, fold = told[0]
        counted = fold is not None
        said = {"reward": reward, "at": at, "by_default": bool(by_default), "counted": counted}
    return flat.row(row) if flat else None, said

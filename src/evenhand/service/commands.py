"""The commands ``evenhand serve`` and ``evenhand service ...``."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenhand.service.database import Connection, Database

Where = Annotated[
    str,
    typer.Option(help="A file or postgresql:// URL.", envvar="EVENHAND_DATABASE"),
]

app = typer.Typer(help="Look after a service: keys, checks, backups.", no_args_is_help=True)


def serve(
    database: Where = "evenhand.db",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Web processes; one on SQLite.")] = 1,
    folder: Annotated[bool, typer.Option(help="Learn from rewards on this host.")] = True,
    rate: Annotated[float, typer.Option(min=1, help="Rows per second that a key may send.")] = 1e5,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate, a PEM file.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="Its key, a PEM file.")] = None,
) -> None:
    """Serve experiments over HTTP, durably; with nothing configured, on SQLite in this folder."""
    from evenhand.service.serve import Settings
    from evenhand.service.serve import serve as run

    settings = Settings(database, host, port, workers, folder, rate, certificate, private_key)
    with _at(database, new=True):
        run(settings)


@contextmanager
def _at(where: str, new: bool = False) -> Iterator["Database"]:
    """The database of a command; if it refuses, that is said in one line, without its password."""
    from evenhand.service.database import REFUSALS, SQLite, database

    source = database(where)
    if isinstance(source, SQLite):
        shown = str(source.path)
        if not new and not source.path.is_file():
            raise FileNotFoundError(
                f"--database must be a file that `evenhand serve` made, but there is no {shown}"
            )
    else:
        shown = "postgresql://" + source.url.split("://", 1)[1].rpartition("@")[2].split("?")[0]
    try:
        yield source
    except REFUSALS as error:
        said = str(error).strip().partition("\n")[0]
        if "no such table" in said or ("relation" in said and "does not exist" in said):
            said += "; `evenhand serve` or `evenhand service migrate` makes the tables"
        raise RuntimeError(f"--database {shown} cannot be used: {said}") from error


@app.command()
def check(database: Where = "evenhand.db") -> None:
    """Replay every experiment and compare all bits; the service must not be running."""
    from evenhand.service.check import check as look

    wrong = 0
    with _at(database) as source, closing(source.connect()) as c:
        for (number,) in c.execute("select id from experiments order by id"):
            found = look(c, number)
            wrong += len(found.wrong)
            typer.echo(
                f"{found.experiment}: {found.entries} entries replayed, {found.rewards} rewards "
                f"counted, {found.unfolded} waiting, {found.leased} rows leased: "
                + ("all holds" if not found.wrong else "WRONG")
            )
            for line in found.wrong:
                typer.echo(f"  {line}")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="File to write.")], database: Where = "evenhand.db"
) -> None:
    """Write everything to one file, while the service runs; it holds secrets."""
    from evenhand.service import upkeep

    with _at(database) as source:
        typer.echo(f"wrote {upkeep.backup(source, target)} rows to {target}")


@app.command()
def restore(
    path: Annotated[Path, typer.Argument(help="A backup.", exists=True, dir_okay=False)],
    database: Where = "evenhand.db",
) -> None:
    """Read a backup into a new database, of either kind."""
    from evenhand.service import upkeep

    with _at(database, new=True) as source:
        typer.echo(f"restored {upkeep.restore(path, source)} rows")


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="Who it is for.")],
    scopes: Annotated[str, typer.Option(help="ask, read, admin, with commas.")] = "ask",
    experiment: Annotated[str | None, typer.Option(help="For this one only.")] = None,
    days: Annotated[float | None, typer.Option(min=0.0, help="Days until it expires.")] = None,
    database: Where = "evenhand.db",
) -> None:
    """Make a key and print it, this once."""
    import time

    from evenhand.service import keys

    with _at(database) as source, closing(source.connect()) as c, c.transaction():
        only = None if experiment is None else _number(c, experiment)
        until = None if days is None else time.time() + 86400.0 * days
        _, token = keys.issue(c, name, scopes.split(","), only, until)
    typer.echo(token)


def _number(c: "Connection", experiment: str) -> int:
    """The number of an experiment that goes by this name."""
    found = c.execute("select id from experiments where name=?", (experiment,))
    if not found:
        there = [name for (name,) in c.execute("select name from experiments order by name")]
        raise ValueError(
            f"experiment must be one of {', '.join(there) or 'none: there are none yet'}, "
            f"got {experiment!r}"
        )
    return int(found[0][0])


@app.command()
def compact(
    days: Annotated[float, typer.Option(min=0.0, help="Keep what is younger.")] = 90.0,
    database: Where = "evenhand.db",
) -> None:
    """Delete what is old and needed no more; merits stay as they are."""
    from evenhand.service import upkeep

    with _at(database) as source:
        for table, n in upkeep.compact(source, days).items():
            typer.echo(f"{table}: {n} rows deleted")


@app.command()
def recompute(
    experiment: Annotated[str, typer.Argument(help="Its name.")],
    plan: Annotated[int, typer.Argument(min=0, help="The plan's number.")],
    database: Where = "evenhand.db",
) -> None:
    """Follow the log again up to a plan, and say whether it gives the same bits."""
    from evenhand.service.recompute import recompute as follow

    with _at(database) as source, closing(source.connect()) as c:
        said = follow(c, _number(c, experiment), plan)
    typer.echo(f"{said.word}: {said.words}")
    raise typer.Exit(0 if said.word == "same" else 1)


@app.command()
def migrate(database: Where = "evenhand.db") -> None:
    """Bring a database to what this release needs; serve does so too."""
    with _at(database, new=True) as source:
        source.migrate()
    typer.echo("done")

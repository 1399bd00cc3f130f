"""The commands ``evenhand serve`` and ``evenhand service ...``."""

from pathlib import Path
from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Option(help="A file, or postgresql://user@host/name.", envvar="EVENHAND_DATABASE"),
]

app = typer.Typer(help="Look after a service: keys, checks, backups.", no_args_is_help=True)


def serve(
    database: Where = "evenhand.db",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Web processes; one on SQLite.")] = 1,
    folder: Annotated[bool, typer.Option(help="Run a folder on this host too.")] = True,
    rate: Annotated[float, typer.Option(min=1, help="Rows per second that a key may send.")] = 1e5,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="TLS private key.")] = None,
) -> None:
    """Serve experiments over HTTP, durably; with nothing configured, on SQLite in this folder."""
    from evenhand.service.serve import Settings
    from evenhand.service.serve import serve as run

    run(Settings(database, host, port, workers, folder, rate, certificate, private_key))


@app.command()
def check(database: Where = "evenhand.db") -> None:
    """Replay every experiment and compare all bits; the service must not be running."""
    from evenhand.service.check import check as look
    from evenhand.service.database import database as at

    c = at(database).connect()
    wrong = 0
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
    c.close()
    raise typer.Exit(1 if wrong else 0)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="File to write.")], database: Where = "evenhand.db"
) -> None:
    """Write everything to one file, while the service runs; it holds secrets."""
    from evenhand.service import upkeep
    from evenhand.service.database import database as at

    typer.echo(f"wrote {upkeep.backup(at(database), target)} rows to {target}")


@app.command()
def restore(
    path: Annotated[Path, typer.Argument(help="A backup.", exists=True, dir_okay=False)],
    database: Where = "evenhand.db",
) -> None:
    """Read a backup into a new database, of either kind."""
    from evenhand.service import upkeep
    from evenhand.service.database import database as at

    typer.echo(f"restored {upkeep.restore(path, at(database))} rows")


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="Who it is for.")],
    scopes: Annotated[str, typer.Option(help="ask, read, admin, with commas.")] = "ask",
    experiment: Annotated[str | None, typer.Option(help="For this one only.")] = None,
    days: Annotated[float | None, typer.Option(help="Days until it expires.")] = None,
    database: Where = "evenhand.db",
) -> None:
    """Make a key and print it, this once."""
    import time

    from evenhand.service import keys
    from evenhand.service.database import database as at

    c = at(database).connect()
    with c.transaction():
        only = None
        if experiment is not None:
            found = c.execute("select id from experiments where name=?", (experiment,))
            if not found:
                raise ValueError(f"experiment must be one that exists, got {experiment!r}")
            only = found[0][0]
        until = None if days is None else time.time() + 86400.0 * days
        _, token = keys.issue(c, name, scopes.split(","), only, until)
    c.close()
    typer.echo(token)


@app.command()
def compact(
    days: Annotated[float, typer.Option(min=0.0, help="Keep what is younger.")] = 90.0,
    database: Where = "evenhand.db",
) -> None:
    """Delete what is old and needed no more; merits stay as they are."""
    from evenhand.service import upkeep
    from evenhand.service.database import database as at

    for table, n in upkeep.compact(at(database), days).items():
        typer.echo(f"{table}: {n} rows deleted")


@app.command()
def recompute(
    experiment: Annotated[str, typer.Argument(help="Its name.")],
    plan: Annotated[int, typer.Argument(min=0, help="The plan's number.")],
    database: Where = "evenhand.db",
) -> None:
    """Follow the log again up to a plan, and say whether it gives the same bits."""
    from evenhand.service.database import database as at
    from evenhand.service.recompute import recompute as follow

    c = at(database).connect()
    found = c.execute("select id from experiments where name=?", (experiment,))
    if not found:
        raise ValueError(f"experiment must be one that exists, got {experiment!r}")
    said = follow(c, found[0][0], plan)
    c.close()
    typer.echo(f"{said.word}: {said.words}")
    raise typer.Exit(0 if said.word == "same" else 1)


@app.command()
def migrate(database: Where = "evenhand.db") -> None:
    """Bring a database to what this release needs; ``serve`` does so too."""
    from evenhand.service.database import database as at

    at(database).migrate()
    typer.echo("done")

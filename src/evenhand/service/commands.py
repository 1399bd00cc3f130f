"""The commands ``evenhand serve`` and ``evenhand service ...``."""

from pathlib import Path
from typing import Annotated

import typer

Where = Annotated[str, typer.Option(help="A file, or postgresql://user@host/name.")]

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

"""The command ``evenhand``."""

import sys
from math import inf
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from evenhand import __version__, merit_command, plan_command
from evenhand.demo.command import demo
from evenhand.service import commands

app = typer.Typer(
    name="evenhand",
    help="Choose K of M arms in proportion to what each contributes. To begin: demo, plan, serve.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Option("--results", help="Folder where results are kept.")]
# the extra that brings a package, as far as commands import them when they are called
EXTRAS = dict.fromkeys(("matplotlib", "polars", "rich"), "lab") | dict.fromkeys(
    ("alembic", "jinja2", "msgspec", "sqlalchemy", "uvicorn"), "serve"
)
Existing = Annotated[
    Path, typer.Argument(help="A directory of results.", exists=True, file_okay=False)
]
MaxHorizon = Annotated[
    float, typer.Option(help="Leave out larger horizons, e.g. 1e6.", show_default=False)
]
Replications = Annotated[int | None, typer.Option(min=1, help="Run at most so many replications.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes to run cells in.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Run on the Dask cluster at this address, e.g. tcp://host:8786.")
]
PRESETS = Path(__file__).parent / "lab" / "paper" / "presets"
EXPERIMENTS = sorted(["fig3", *(file.stem for file in PRESETS.glob("*.toml"))])
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list cells and estimated times.")]


app.command()(commands.serve)
app.command()(demo)
app.add_typer(commands.app, name="service")


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Handle the options that go with every command."""
    if version:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments; by default all that need no GPU. There are "
            f"{', '.join(EXPERIMENTS)}; deployments and drift stand for several.",
            autocompletion=lambda: [*EXPERIMENTS, "deployments", "drift"],
        ),
    ] = None,
    results: Folder = Path("results"),
    max_horizon: MaxHorizon = inf,
    replications: Replications = None,
    workers: Workers = 2,
    scheduler: Scheduler = None,
    dry_run: DryRun = False,
) -> None:
    """Run the experiments of the paper, cell by cell; finished cells are kept and skipped.

    A cell is one learner on one game with one horizon, replicated once.
    """
    from evenhand.lab.paper.experiments import GROUPS, load_preset, preset_names

    names = [one for name in names or [] for one in GROUPS.get(name, [name])]
    wanted = names or ["fig3", *(n for n in preset_names() if not load_preset(n).needs_gpu)]
    chosen = [load_preset(name) for name in wanted if name != "fig3"]
    if "fig3" in wanted and not dry_run and max_horizon >= 10**6:
        _run_differences(results)
    elif "fig3" in names:
        typer.echo("fig3 has no cells: it is made in one piece, for horizons from 1e6 on")
    cut = [e.cut(max_horizon, replications) for e in chosen if min(e.horizons) <= max_horizon]
    if cut:
        _run(cut, results, workers, scheduler, dry_run)
    elif chosen:
        raise ValueError(f"--max-horizon must be at least 1e4, got {max_horizon:g}")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A TOML file.", exists=True, dir_okay=False)],
    results: Folder = Path("results"),
    max_horizon: MaxHorizon = inf,
    replications: Replications = None,
    workers: Workers = 2,
    scheduler: Scheduler = None,
    dry_run: DryRun = False,
) -> None:
    """Run an experiment of your own, described in a TOML file."""
    from evenhand.lab.experiments import load_file

    sys.path.insert(0, str(Path.cwd()))  # games named module:function
    experiment = load_file(file).cut(max_horizon, replications)
    _run([experiment], results, workers, scheduler, dry_run)


@app.command()
def results(
    folder: Existing = Path("results"),
    experiment: Annotated[
        str | None, typer.Option("--only", help="One of the paper's experiments.")
    ] = None,
    game: Annotated[str, typer.Option(help="Games whose description contains this.")] = "",
    learner: Annotated[str, typer.Option(help="Learners whose description contains this.")] = "",
    max_horizon: MaxHorizon = inf,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Compare regret with these results, pair by pair.", exists=True, file_okay=False
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV file instead.")] = None,
    pack: Annotated[bool, typer.Option(help="Write one Parquet file per experiment.")] = False,
) -> None:
    """Show results as a table, all or some of them; export or pack them."""
    from evenhand.files import replacing
    from evenhand.lab.paper.experiments import load_preset, preset_names
    from evenhand.lab.ratios import against as compare
    from evenhand.lab.store import Store
    from evenhand.lab.tables import narrowed, show, show_ratios, summary

    store = Store(folder)
    if pack:
        for name in [experiment] if experiment else preset_names():
            cells = load_preset(name).all_cells()
            if store.finished(cells):
                typer.echo(f"packed {store.pack(name, cells)}")
    found = store.read(load_preset(experiment).all_cells() if experiment else None)
    table = summary(found) if against is None else compare(found, Store(against).read())
    table = narrowed(table, game, learner, max_horizon)
    if csv is not None:
        with replacing(csv) as file:
            table.write_csv(file)
        typer.echo(f"wrote {csv}")
    elif found.is_empty():
        raise ValueError(f"there are no results in {folder}; `evenhand reproduce` makes some")
    elif table.is_empty():
        both = f" and {against}" if against else ""
        raise ValueError(
            f"no results in {folder}{both} are what was asked for; leave out --game, --learner or "
            "--max-horizon to see what there is"
            if against is None or game or learner or max_horizon < inf
            else f"{folder} and {against} have no runs in common to compare"
        )
    elif against is None:
        show(table)
    else:
        show_ratios(table)


@app.command()
def report(
    folder: Existing = Path("results"),
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="TOML files; by default the paper's.", exists=True, dir_okay=False),
    ] = None,
) -> None:
    """Draw the figures of experiments and write the report, from the results alone."""
    from evenhand.lab import report
    from evenhand.lab.experiments import load_file
    from evenhand.lab.paper.report import write_report

    if files:
        path = report.write_report(folder, [load_file(file) for file in files])
    else:
        path = write_report(folder)
    typer.echo(f"wrote {path}")


app.command()(merit_command.merit)
app.command()(plan_command.plan)


@app.command()
def page(
    file: Annotated[
        Path,
        typer.Argument(help="A learner, as evenhand.save writes it.", exists=True, dir_okay=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; by default beside it.")
    ] = None,
    title: Annotated[str, typer.Option(help="What stands at the top.")] = "",
) -> None:
    """Draw a saved learner as one page that opens anywhere: due, given, and why."""
    from evenhand.files import replacing
    from evenhand.portrait import page
    from evenhand.storage import load

    out = file.with_suffix(".html") if out is None else out
    text = page(load(file), title or file.stem)
    with replacing(out) as target:
        target.write(text.encode())
    typer.echo(f"wrote {out}")


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Sections; all by default.")] = None,
) -> None:
    """Measure speed against the peers and write benchmarks/RESULTS.md; needs a checkout."""
    import subprocess

    command = [sys.executable, "-m", "benchmarks", *(names or [])]
    raise typer.Exit(subprocess.call(command, cwd=_checkout()))


def _checkout() -> Path:
    """Return the checkout with the benchmarks: the working directory or where the package lies."""
    places = [Path.cwd(), Path(__file__).resolve().parents[2]]
    for place in places:
        if (place / "benchmarks" / "__main__.py").is_file():
            return place
    raise FileNotFoundError(
        f"the benchmarks are not part of an installed package: none in {places[0]} or "
        f"{places[1]}; clone the source and run evenhand bench, or make bench, there"
    )


def _run_differences(folder: Path) -> None:
    """Compare two designs at every round of one run, for figure 3, with a progress bar."""
    from evenhand.lab.paper.differences import UPDATES, write_differences
    from evenhand.lab.store import Store
    from evenhand.lab.tables import progress_bar

    Store(folder).prepare()
    try:
        with progress_bar("fig3", UPDATES) as update:
            write_differences(folder, lambda n: update(completed=n))
            update(completed=UPDATES)
    except KeyboardInterrupt:
        _stopped(f"what there is of fig3 is kept in {folder}; the same command goes on from there")


def _run(
    experiments: list[Any],
    folder: Path,
    workers: int,
    scheduler: str | None,
    dry_run: bool,
) -> None:
    """Run what is missing of some experiments, with a progress bar."""
    from evenhand.display import in_minutes
    from evenhand.lab.runner import cluster, estimate, local, run_missing
    from evenhand.lab.store import Store
    from evenhand.lab.tables import progress_bar

    cells = list({c.id: c for e in experiments for c in e.all_cells()}.values())
    store = Store(folder)
    done = store.finished(cells)
    left = [c for c in cells if c.id not in done]
    seconds = sum(map(estimate, left)) / workers
    typer.echo(
        f"{len(cells)} cells, {len(done)} finished, {len(left)} to run, "
        f"about {in_minutes(seconds)} with {workers} workers once they have started"
    )
    if dry_run:
        for cell in left:
            typer.echo(f"{cell.id} {estimate(cell):8.1f} s  {cell.key}")
        return
    store.prepare()
    executor, kept = local(workers) if scheduler is None else cluster(scheduler), 0
    try:
        with progress_bar("running", sum(map(estimate, left))) as update:

            def advance(cell: Any, n: int) -> None:
                nonlocal kept
                kept = n
                shown = f"{n}/{len(left)} {cell.learner['kind']} {cell.horizon:.3g}"
                update(advance=estimate(cell), description=shown)

            run_missing(cells, store, executor, advance)
    except KeyboardInterrupt:
        _stopped(
            f"{len(done) + kept} of {len(cells)} cells are finished and kept in {folder}; "
            "the same command goes on from there"
        )
    typer.echo(f"results are in {folder}")


def _stopped(words: str) -> NoReturn:
    """Say what is kept after Ctrl-C, and end as programs do then."""
    typer.echo(f"stopped: {words}", err=True)
    raise typer.Exit(130) from None


def entry() -> None:
    """Run the command, with errors on one line unless --debug is given."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"error: {_said(error)}", err=True)
        sys.exit(1)
    except SystemError as error:
        if not _is_ctrl_c(error):
            raise
        typer.echo("stopped", err=True)
        sys.exit(130)


def _is_ctrl_c(error: BaseException | None) -> bool:
    """Whether it comes from Ctrl-C, for which compiled code raises other errors."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _is_ctrl_c(error.__cause__ or error.__context__)
    )


def _said(error: Exception) -> str:
    """What went wrong; where a package is missing, the extra that brings it."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"this command needs {error.name}; install evenhand[{EXTRAS[error.name]}]"
    return str(error)

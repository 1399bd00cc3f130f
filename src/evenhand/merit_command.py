"""The command ``evenhand merit``: merits of a function of yours, from the shell."""

import csv
import inspect
import io
import signal
import sys
from functools import partial
from math import isnan
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # what is large is imported when it is needed
    from evenhand.estimate import Estimate

BUDGET = 1_000_000  # calls, if nothing is said
SEED = 1
PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Game = Annotated[
    str,
    typer.Argument(help="module:function or file.py:function that makes a game; see --arms."),
]
Arms = Annotated[
    int | None,
    typer.Option(min=1, help="The function is one of a set of arms 0..ARMS-1, not a maker."),
]
Names = Annotated[
    str | None,
    typer.Option(help="Names of the arms, as ada,bob,cy; a function of a set is given these."),
]
Budget = Annotated[
    int, typer.Option(min=1, help="Most calls; where all sets are more, merits are estimated.")
]
Workers = Annotated[int, typer.Option(min=1, help="Processes that call the function.")]
CacheFile = Annotated[
    Path | None,
    typer.Option(help="File that keeps all values: run again, and nothing is paid for twice."),
]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write a CSV file instead of a table.")]


def merit(
    game: Game,
    k: Annotated[int, typer.Argument(help="Most arms in a set.")],
    arms: Arms = None,
    names: Names = None,
    budget: Budget = BUDGET,
    workers: Workers = 1,
    cache: CacheFile = None,
    csv_file: Csv = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sets that are drawn.")] = SEED,
) -> None:
    """Print the K-Shapley values and the fair policy of a function or game of yours."""
    from evenhand.exchange.roster import check_names
    from evenhand.merit import Unfinished

    if ":" not in game:
        raise ValueError(
            f"game must be file.py:function or module:function, got {game!r}; "
            "for a function worth in mygame.py write mygame.py:worth"
        )
    sys.path.insert(0, str(Path.cwd()))
    listed = None if names is None else tuple(name.strip() for name in names.split(","))
    made = remake(game, k, arms, listed)
    if not 1 <= k <= made.m:
        raise ValueError(f"k must lie between 1 and {made.m}, the number of arms, got {k}")
    labels = check_names(listed or getattr(made, "names", None), made.m)
    labels = labels or tuple(map(str, range(made.m)))
    try:
        known = find(made, k, budget, pool(workers), kept(cache, game), seed)
    except Unfinished as stopped:
        typer.echo(f"{stopped}{'' if cache else '; with --cache a second run goes on'}", err=True)
        if stopped.estimate is not None and not any(map(isnan, stopped.estimate.merit)):
            show(labels, stopped.estimate, k, csv_file)
        raise typer.Exit(130) from None
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        if not notes or "--debug" in sys.argv:
            raise
        said = f"{type(error).__name__}: {error} ({notes[0]})"
        raise RuntimeError(f"{game} failed with {said}; --debug shows where") from error
    show(labels, known, k, csv_file)


def remake(name: str, k: int, arms: int | None, names: tuple[str, ...] | None) -> Any:
    """Make the game that the command names, here or in a worker."""
    from evenhand.games import SetFunction
    from evenhand.lab.games import SUPPLIED, call_maker, own

    function = own(name)
    if arms is None and names is None:
        asked = inspect.signature(function).parameters.values()
        wanted = {p.name for p in asked if p.default is p.empty and p.kind in PLAIN} - SUPPLIED
        if wanted:
            raise ValueError(
                f"{name} must make a game without being given {', '.join(sorted(wanted))}; "
                "for a function of a set give --arms, their number, or --names"
            )
        game = call_maker(function, {}, k)
        if not (hasattr(game, "m") and callable(getattr(game, "value", None))):
            raise ValueError(
                f"{name} must return a game, got {type(game).__name__}; "
                "for a function of a set give --arms, their number, or --names"
            )
    else:
        m = arms if arms is not None else len(names or ())
        if names is not None and len(names) != m:
            raise ValueError(f"--names must be {m} names, as many as --arms, got {len(names)}")
        game = SetFunction.per_set(function if names is None else ByName(function, names), m)
    if not hasattr(game, "remake"):
        game.remake = partial(remake, name, k, arms, names)  # sent to workers in the game's place
    return game


class ByName:
    """A function of a set of names as one of a set of arms."""

    def __init__(self, f: Any, names: tuple[str, ...]) -> None:
        self._f, self._names = f, names

    def __call__(self, arms: frozenset[int]) -> float:
        """Call the function with the names of the arms."""
        return self._f(frozenset(self._names[arm] for arm in arms))


def find(game: Any, k: int, budget: int, executor: Any, cache: Any, seed: int) -> "Estimate":
    """Merits of a game, exact where it has no more sets than the budget."""
    from evenhand.estimate import Estimate
    from evenhand.games import IndependentCascade
    from evenhand.games.game import HasClosedForm
    from evenhand.lab.games import with_merit
    from evenhand.merit import kshapley, stratified
    from evenhand.merit.bar import of_command
    from evenhand.merit.blocks import n_blocks
    from evenhand.randomness.streams import stream
    from evenhand.subsets.combinations import count_up_to

    known = isinstance(game, HasClosedForm)
    if known or isinstance(game, IndependentCascade):
        return with_merit(game, k, seed).known
    n_sets = count_up_to(game.m, k)
    if n_sets <= budget:
        found = kshapley(game, k, executor=executor, cache=cache, progress=of_command())
        return Estimate(found, 0.0 * found, n_sets)
    least = 2 * sum(n_blocks(game.m, s) for s in range(1, k + 1))
    if budget < least:
        raise ValueError(
            f"--budget must be at least {min(least, n_sets)} for {game.m} arms and sets of up to "
            f"{k}, got {budget}"
        )
    typer.echo(f"{n_sets:,} sets are more than --budget {budget:,}: merits are estimated", err=True)
    rng = stream(seed, 0, "reference")
    return stratified(game, k, budget, rng, executor=executor, cache=cache, progress=of_command())


def pool(workers: int) -> Any:
    """Return what makes the processes, or None where this one does it alone."""
    if workers == 1:
        return None
    from evenhand.merit import Processes

    return partial(Processes, workers, mp_context=get_context("spawn"), initializer=leave_ctrl_c)


def leave_ctrl_c() -> None:
    """Let the process that started this one decide what Ctrl-C means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def kept(path: Path | None, name: str) -> Any:
    """Return the cache in a file, which belongs to the game of this name."""
    from evenhand.merit import Cache

    return None if path is None else Cache(path, name)


def show(labels: tuple[str, ...], known: "Estimate", k: int, file: Path | None) -> None:
    """Print merits, standard errors and the fair policy, or write them to a CSV file."""
    from evenhand.files import replacing
    from evenhand.policy import fair_policy

    policy = fair_policy(known, k)
    rows = list(zip(labels, known.merit, known.stderr, policy, strict=True))
    if file is not None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["arm", "merit", "stderr", "policy"])
        writer.writerows((arm, *map(repr, map(float, row))) for arm, *row in rows)
        with replacing(file) as opened:
            opened.write(text.getvalue().encode())
        typer.echo(f"wrote {file}")
    else:
        width = max(4, *map(len, labels))
        typer.echo(f"{'arm':>{width}}      merit     stderr     policy")
        for arm, *row in rows:
            typer.echo(f"{arm:>{width}} " + " ".join(f"{number:10.6f}" for number in row))
    harmful = [arm for arm, value, *_ in rows if value < 0.0]
    if harmful:
        typer.echo(f"negative merits count as 0 in the policy: {', '.join(harmful)}", err=True)
        typer.echo(
            "sets are worth less with such an arm than without it, on average; the policy gives it "
            "a place only where fewer arms than K have any merit",
            err=True,
        )

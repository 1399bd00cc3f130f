"""The command ``evenhand demo``."""

import importlib.util
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evenhand.demo.run import Demo

EVERY = 5.0  # seconds between lines of progress


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=5.0, help="Stop after so long; else with Ctrl-C.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page of it that opens anywhere, at the end.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 0,
    rate: Annotated[float, typer.Option(min=10, max=20_000, help="Queries per second.")] = 1000.0,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the service's database here; else it is deleted.")
    ] = None,
) -> None:
    """Watch shares find their place: a service, a simulated shop and its visitors.

    Forty sellers share six places; a purchase is rare, some sellers follow the
    season, one joins, one leaves, everyone has a floor of 1 % of all places.
    """
    if page is not None and not page.resolve().parent.is_dir():
        raise FileNotFoundError(f"--page must be in a folder that exists, got {page}")
    if folder is not None and (folder / "evenhand.db").exists():
        raise FileExistsError(f"--folder must be a new one, but {folder} has an evenhand.db")
    for package in ("alembic", "msgspec", "sqlalchemy", "uvicorn"):  # of the extra serve
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"there is no {package}", name=package)
    stopping: list[int] = []
    before = {n: signal.signal(n, lambda n, _: stopping.append(n)) for n in STOPS}
    try:
        place = nullcontext(str(folder)) if folder else tempfile.TemporaryDirectory("-evenhand")
        with place as name:
            Path(name).mkdir(exist_ok=True)
            drawn = _run(Path(name), seconds, page, port, rate, stopping)
        say(f"kept: {_kept(page if drawn else None, folder)}")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopping:
        sys.exit(130 if stopping[0] == signal.SIGINT else 143)


def _kept(page: Path | None, folder: Path | None) -> str:
    kept = [] if page is None else [f"the page {page}"]
    if folder is not None:
        kept.append(f"{folder}, of which evenhand serve --database {folder}/evenhand.db goes on")
    return " and ".join(kept) or "nothing; --page FILE keeps a page, --folder DIR the database"


STOPS = (signal.SIGINT, signal.SIGTERM)


def say(words: str) -> None:
    """Print a line at once, also where the output is a file."""
    print(words, flush=True)


def _run(
    folder: Path,
    seconds: float | None,
    page: Path | None,
    port: int,
    rate: float,
    stopping: list[int],
) -> bool:
    """Run it; say whether a page was written."""
    say("starting the service (the first time it compiles for half a minute) ...")
    from evenhand.demo.page import write_page  # now, so that Ctrl-C need not wait for it
    from evenhand.demo.run import Demo

    demo = Demo(folder, port, rate)
    try:
        demo.start(_stop_if(stopping))
        demo.send_traffic()
        say(f"watch it at {demo.url}/login?to=/experiments/shop#key={demo.reader['key']}")
        say(f"or read: curl -H 'Authorization: Bearer {demo.reader['key']}' \\")
        say(f"  {demo.url}/v1/experiments/shop/policy")
        say("Ctrl-C ends it." if seconds is None else f"It ends after {seconds:g} s, or by Ctrl-C.")
        _watch(demo, seconds, stopping)
        report = None if page is None else demo.account()
        if page is not None and report is None:
            say("no visitor came in this time: there is nothing to draw")
    except _StopError:
        return False
    finally:
        demo.stop()
    if page is None or report is None:
        return False
    write_page(page, report, demo, [] if stopping else _compare(demo))
    return True


class _StopError(Exception):
    """Ctrl-C, before there is anything to show."""


def _stop_if(stopping: list[int]) -> Callable[[], None]:
    def look() -> None:
        if stopping:
            raise _StopError

    return look


def _watch(demo: "Demo", seconds: float | None, stopping: list[int]) -> None:
    start = time.monotonic()
    spoken = start - EVERY / 2
    while not stopping and (seconds is None or time.monotonic() < start + seconds):
        demo.step()
        if time.monotonic() - spoken >= EVERY:
            spoken = time.monotonic()
            say(_progress(demo, spoken - start))
        for _ in range(5):
            time.sleep(0 if stopping else 0.1)
    if not stopping:
        demo.step()
    if demo.points:
        say(_progress(demo, time.monotonic() - start))


def _progress(demo: "Demo", elapsed: float) -> str:
    now = demo.points[-1]
    off = "" if now.off != now.off else f", shares {now.off:.1%} off what is truly due"
    joined = [f"{name} {'joined' if what == 'join' else 'left'}" for _, what, name in demo.events]
    bought = f"{now.bought / max(1, now.queries):.1%} bought"
    return f"{elapsed:4.0f} s {now.queries:8,} queries, {bought}{off}" + "".join(
        f"; {one}" for one in joined[-1:]
    )


def _compare(demo: "Demo") -> list[Any]:
    from evenhand.demo.rivals import beside

    say("the same shop under other rules, simulated ...")
    own = demo.outcome()
    outcomes = [own, *beside(demo.shop, demo.points[-1].queries)]
    say(f"{'':24}{'misplaced':>10}{'worst served':>14}{'purchases':>11}")
    for one in outcomes:
        say(f"{one.name:24}{one.off:>10.1%}{one.worst:>13.0%} {one.bought:>11.1%}")
    say("(misplaced places and given over due of the worst-served seller: last third)")
    return outcomes

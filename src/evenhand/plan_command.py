"""The command ``evenhand plan``: how long until shares are fair, for traffic like yours."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenhand.planning import Outlook

SHOWN = 6  # times in the table
FORMATS = (".svg", ".png", ".pdf")


def plan(
    arms: Annotated[int, typer.Option(min=1, help="How many there are to choose from.")],
    slots: Annotated[int, typer.Option(min=1, help="Places per page.")],
    rate: Annotated[
        float, typer.Option(help="Chance that an arm shown alone brings a reward; mean, as 0.09.")
    ],
    full: Annotated[
        float | None,
        typer.Option(help="Share of pages that are full, as 0.95; else most show one arm."),
    ] = None,
    traffic: Annotated[
        float | None, typer.Option(min=1, help="Pages per day, to count in days.")
    ] = None,
    within: Annotated[
        float, typer.Option(help="Share of exposure that may go to the wrong arm.")
    ] = 0.05,
    redraw: Annotated[
        int | None, typer.Option(min=1, help="One arm becomes another every so many pages.")
    ] = None,
    queries: Annotated[int | None, typer.Option(min=100, help="Pages to simulate.")] = None,
    worlds: Annotated[int, typer.Option(min=1, help="Worlds to simulate.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of the worlds.")] = 1,
    picture: Annotated[
        Path | None, typer.Option(help="File to draw in: .svg, .png or .pdf (extra plot).")
    ] = None,
) -> None:
    """Say how long it takes until shares are fair, from simulated worlds like yours."""
    if slots > arms:
        raise typer.BadParameter(f"there are no more than {arms} arms", param_hint="--slots")
    if picture is not None:
        _check_picture(picture)

    from evenhand.merit.bar import of_command, reporter
    from evenhand.planning import outlook

    report = reporter(of_command())
    try:
        found = outlook(
            arms,
            slots,
            rate,
            full=full,
            within=within,
            redraw=redraw,
            queries=queries,
            worlds=worlds,
            seed=seed,
            progress=lambda done: report(done, done, worlds),
        )
    except KeyboardInterrupt:
        typer.echo("stopped: nothing is kept; fewer --worlds or --queries take less time", err=True)
        raise typer.Exit(130) from None
    finally:
        report.close()
    shown = 0.4 / (slots - 1) if full is None and slots > 1 else 1.0 if full is None else full
    typer.echo(in_words(found, traffic, shown))
    if picture is not None:
        from evenhand import plot

        figure = plot.outlook(found, traffic=traffic).get_figure(root=True)
        assert figure is not None  # as no axes were given, one was made
        figure.savefig(picture)
        typer.echo(f"drawn in {picture}")


def _check_picture(file: Path) -> None:
    """Refuse a file that could not be drawn in, before all the work is done."""
    if file.suffix not in FORMATS:
        said = f"{file} must end in {', '.join(FORMATS)}"
    elif not file.parent.is_dir():
        said = f"there is no folder {file.parent}: make it first"
    elif importlib.util.find_spec("matplotlib") is None:
        said = "drawing needs matplotlib: pip install 'evenhand[plot]'"
    else:
        return
    raise typer.BadParameter(said, param_hint="--picture")


def in_words(found: "Outlook", traffic: float | None, full: float) -> str:
    """Return what an outlook says, for a terminal; ``full`` is the share of full pages."""
    import numpy as np

    low, middle, high = np.quantile(found.distance, [0.1, 0.5, 0.9], axis=0)
    worlds = len(found.distance)
    lines = [
        f"Share of exposure that goes to the wrong arm, in {worlds} simulated worlds",
        f"where {100 * full:.3g}% of the pages are full:",
        "",
        "      pages          median    eight of ten",
    ]
    for place in np.linspace(len(found.queries) // 3, len(found.queries) - 1, SHOWN).astype(int):
        spread = f"{low[place]:.1%} to {high[place]:.1%}"
        lines.append(f"{found.queries[place]:11,}    {middle[place]:12.1%}    {spread}")
    lines.append("")
    if found.changing:
        lines.append(f"As arms go on changing, {found.settled:.1%} stay off on average.")
        return "\n".join(lines)
    low, middle, high = (_said(n) for n in found.range())
    lines.append(f"Within {100 * found.within:.4g}% after {middle} pages ({low} to {high}).")
    if traffic is not None:
        low, middle, high = (_said(n / traffic) for n in found.range())
        lines.append(f"At {traffic:,.0f} pages a day: {middle} days ({low} to {high}).")
    if found.extrapolated:
        lines.append(
            f"In {found.extrapolated} of {worlds} worlds that is beyond what was simulated: "
            "extrapolated, as\ndistances fall like one over the square root of the pages."
        )
    return "\n".join(lines)


def _said(number: float) -> str:
    """Two digits: it is known no finer than that."""
    return f"{float(f'{number:.1e}'):,.12g}"

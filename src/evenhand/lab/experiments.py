"""Experiments: TOML files that describe panels of learners on a game, expanded into cells."""

import difflib
import tomllib
from dataclasses import dataclass, field, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.display import html_table
from evenhand.lab import games
from evenhand.lab.cells import Cell, in_words
from evenhand.lab.learners import KINDS

TOP = {"name", "title", "figure", "note", "seed", "replications", "horizons", "learner", "panel"}
PANEL = {"title", "k", "game", "learner", "max_horizon", "late"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a figure: a learner, its label, and the seconds the paper reports for a run."""

    label: str
    config: dict[str, Any]
    paper_seconds: float = nan


@dataclass(frozen=True, slots=True)
class Panel:
    """Learners on one game."""

    title: str
    k: int
    game: dict[str, Any]
    lines: list[Line]
    max_horizon: float = inf  # larger horizons are not run in this panel
    late: int = 0  # queries asked before a reward is told


@dataclass(frozen=True, slots=True, repr=False)
class Experiment:
    """What to run and what to draw from it."""

    name: str
    title: str
    figure: str
    panels: list[Panel]
    horizons: list[int]
    replications: int
    seed: int
    note: str = ""
    source: str = field(default="", compare=False)

    def cells(self, panel: Panel, line: Line) -> list[Cell]:
        """Cells of one line of one panel, horizon after horizon."""
        return [
            Cell(panel.game, panel.k, line.config, horizon, replication, self.seed, panel.late)
            for horizon in self.horizons
            for replication in range(1, self.replications + 1)
        ]

    def all_cells(self) -> list[Cell]:
        """Every cell once, in the order they are described."""
        found = [
            cell
            for panel in self.panels
            for line in panel.lines
            for cell in self.cells(panel, line)
            if cell.horizon <= panel.max_horizon
        ]
        return list({cell.id: cell for cell in found}.values())

    @property
    def needs_gpu(self) -> bool:
        """Whether one of its games runs on an NVIDIA GPU."""
        return any(games.needs_gpu(panel.game["kind"]) for panel in self.panels)

    def cut(self, max_horizon: float, replications: int | None) -> "Experiment":
        """Leave out larger horizons and further replications."""
        horizons = [h for h in self.horizons if h <= max_horizon]
        if not horizons:
            raise ValueError(
                f"--max-horizon must be at least {min(self.horizons)} for {self.name}, "
                f"got {max_horizon:g}"
            )
        most = replications or self.replications
        return replace(self, horizons=horizons, replications=min(self.replications, most))

    def __repr__(self) -> str:
        lines = sum(len(panel.lines) for panel in self.panels)
        return (
            f"Experiment({self.name!r}: {len(self.panels)} panels, {lines} lines, horizons "
            f"{min(self.horizons):.3g} to {max(self.horizons):.3g}, "
            f"{self.replications} replications, {len(self.all_cells())} cells)"
        )

    def _repr_html_(self) -> str:
        rows = [
            (panel.title, in_words(panel.game), panel.k, line.label, in_words(line.config))
            for panel in self.panels
            for line in panel.lines
        ]
        names = ("panel", "game", "K", "line", "learner")
        columns = dict(zip(names, np.array(rows, object).T, strict=True))
        return html_table(columns, len(rows), repr(self))


def load_file(path: Path) -> Experiment:
    """Load an experiment from a TOML file."""
    return parse(path.read_text(), str(path))


def parse(text: str, source: str) -> Experiment:
    """Make an experiment of a TOML text; a wrong key is named with the nearest right one."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} is not TOML: {error}") from None
    _check_keys(data, TOP, source, required=("name", "panel", "horizons"))
    shared = [_line(entry, source) for entry in data.get("learner", [])]
    return Experiment(
        name=str(data["name"]),
        title=str(data.get("title", data["name"])),
        figure=str(data.get("figure", "regret")),
        panels=[_panel(entry, shared, source) for entry in data["panel"]],
        horizons=[_horizon(value, source) for value in data["horizons"]],
        replications=int(data.get("replications", 10)),
        seed=int(data.get("seed", 1)),
        note=str(data.get("note", "")),
        source=text,
    )


def _panel(entry: dict[str, Any], shared: list[Line], source: str) -> Panel:
    _check_keys(entry, PANEL, f"{source}, panel", required=("k", "game"))
    game = dict(entry["game"])
    _check_game(game, f"{source}, game")
    lines = [_line(one, source) for one in entry.get("learner", [])] or shared
    if not lines:
        raise ValueError(f"{source}: a panel needs learners of its own or shared ones")
    most = _horizon(entry["max_horizon"], source) if "max_horizon" in entry else inf
    late = int(entry.get("late", 0))
    return Panel(str(entry.get("title", "")), int(entry["k"]), game, lines, most, late)


def _line(entry: dict[str, Any], source: str) -> Line:
    options = dict(entry)
    kind = options.get("kind")
    if kind not in KINDS:
        raise ValueError(f"{source}: unknown learner {kind!r}{nearest(str(kind), list(KINDS))}")
    label = str(options.pop("label", kind))
    seconds = float(options.pop("paper_seconds", nan))
    _check_keys(options, {"kind", *KINDS[kind].options}, f"{source}, learner {kind}")
    return Line(label, options, seconds)


def _check_game(game: dict[str, Any], where: str) -> None:
    kind, known = game.get("kind"), games.MAKERS
    if not isinstance(kind, str) or (kind not in known and ":" not in kind):
        raise ValueError(f"{where}: unknown game {kind!r}{nearest(str(kind), list(known))}")
    if kind in known:
        _check_keys(game, {"kind", *games.options_of(kind)}, f"{where} {kind}")


def _check_keys(
    data: dict[str, Any], allowed: set[str], where: str, required: tuple[str, ...] = ()
) -> None:
    for key in data:
        if key not in allowed:
            raise ValueError(f"{where}: unknown key {key!r}{nearest(key, sorted(allowed))}")
    for key in required:
        if key not in data:
            raise ValueError(f"{where}: {key!r} is missing")


def nearest(word: str, words: list[str]) -> str:
    """A hint at the nearest right word, or at all of them."""
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; choose from {', '.join(words)}"


def _horizon(value: Any, source: str) -> int:
    """Read a horizon; "1e4.5" is ten to the power of 4.5, rounded."""
    try:
        text = str(value)
        return round(10.0 ** float(text[2:])) if text.startswith("1e") else int(value)
    except ValueError:
        raise ValueError(
            f'{source}: horizons must be like 10000 or "1e4.5", got {value!r}'
        ) from None

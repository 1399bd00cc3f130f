"""Experiments: TOML files that describe panels of learners on a game, expanded into cells."""

import difflib
import inspect
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand.lab.catalogue import GAMES, LEARNERS
from evenhand.lab.cells import Cell

TOP = {"name", "title", "figure", "note", "seed", "replications", "horizons", "learner", "panel"}
PANEL = {"title", "k", "game", "learner", "max_horizon"}


@dataclass(frozen=True, slots=True)
class Line:
    """A learner as drawn: its label, what makes it, and the seconds the paper gives for a run."""

    label: str
    config: dict[str, Any]
    paper_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Learners on one game."""

    title: str
    k: int
    game: dict[str, Any]
    lines: list[Line]
    max_horizon: int | None = None  # no larger ones are run here


@dataclass(frozen=True, slots=True)
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
            Cell(panel.game, panel.k, line.config, horizon, replication, self.seed)
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
            if panel.max_horizon is None or cell.horizon <= panel.max_horizon
        ]
        return list({cell.id: cell for cell in found}.values())

    @property
    def on_card(self) -> bool:
        """Whether a game of it needs an NVIDIA card."""
        return any(panel.game["kind"].endswith("-cuda") for panel in self.panels)

    def cut(self, max_horizon: int | None, replications: int | None) -> "Experiment":
        """Leave out larger horizons and further replications."""
        horizons = [h for h in self.horizons if max_horizon is None or h <= max_horizon]
        if not horizons:
            raise ValueError(
                f"max-horizon must be at least {min(self.horizons)} for {self.name}, "
                f"got {max_horizon}"
            )
        n = min(self.replications, replications or self.replications)
        return Experiment(
            self.name,
            self.title,
            self.figure,
            self.panels,
            horizons,
            n,
            self.seed,
            self.note,
            self.source,
        )


def preset_names() -> list[str]:
    """Names of the experiments that come with the package."""
    folder = files("evenhand.lab").joinpath("presets")
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def load_preset(name: str) -> Experiment:
    """Load an experiment that comes with the package."""
    if name not in preset_names():
        raise ValueError(f"unknown experiment {name!r}{_nearest(name, preset_names())}")
    path = files("evenhand.lab").joinpath("presets", f"{name}.toml")
    return parse(path.read_text(), f"{name}.toml")


def load_file(path: Path) -> Experiment:
    """Load an experiment from a TOML file."""
    return parse(path.read_text(), str(path))


def parse(text: str, source: str) -> Experiment:
    """Make an experiment of a TOML text; a wrong key is named with the nearest right one."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} is not TOML: {error}") from None
    _check_keys(data, TOP, source)
    for key in ("name", "panel", "horizons"):
        if key not in data:
            raise ValueError(f"{source}: {key!r} is missing")
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
    _check_keys(entry, PANEL, f"{source}, panel")
    for key in ("k", "game"):
        if key not in entry:
            raise ValueError(f"{source}, panel: {key!r} is missing")
    game = dict(entry["game"])
    _check_game(game, f"{source}, game")
    lines = [_line(one, source) for one in entry.get("learner", [])] or shared
    if not lines:
        raise ValueError(f"{source}: a panel needs learners of its own or shared ones")
    most = _horizon(entry["max_horizon"], source) if "max_horizon" in entry else None
    return Panel(str(entry.get("title", "")), int(entry["k"]), game, lines, most)


def _line(entry: dict[str, Any], source: str) -> Line:
    options = dict(entry)
    kind = options.get("kind")
    if kind not in LEARNERS:
        raise ValueError(f"{source}: unknown learner {kind!r}{_nearest(str(kind), list(LEARNERS))}")
    label = str(options.pop("label", kind))
    seconds = options.pop("paper_seconds", None)
    _check_keys(options, {"kind", *LEARNERS[kind][1]}, f"{source}, learner {kind}")
    return Line(label, options, None if seconds is None else float(seconds))


def _check_game(game: dict[str, Any], where: str) -> None:
    kind = game.get("kind")
    if not isinstance(kind, str) or (kind not in GAMES and ":" not in kind):
        raise ValueError(f"{where}: unknown game {kind!r}{_nearest(str(kind), list(GAMES))}")
    if kind in GAMES:
        options = set(inspect.signature(GAMES[kind]).parameters) - {"place"}
        _check_keys(game, {"kind", *options}, f"{where} {kind}")


def _check_keys(data: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in data:
        if key not in allowed:
            raise ValueError(f"{where}: unknown key {key!r}{_nearest(key, sorted(allowed))}")


def _nearest(word: str, words: list[str]) -> str:
    """A hint at the nearest right word, or at all of them."""
    close = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; choose from {', '.join(words)}"


def _horizon(value: Any, source: str) -> int:
    """A horizon as written, 1e4.5 being ten to the 4.5 rounded."""
    try:
        text = str(value)
        if text.startswith("1e"):
            return round(10.0 ** float(text[2:]))
        return int(value)
    except ValueError:
        raise ValueError(
            f'{source}: horizons must be like 10000 or "1e4.5", got {value!r}'
        ) from None

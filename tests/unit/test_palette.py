"""One table of colours and markers: told apart by everyone, and the same everywhere."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import evenhand
from evenhand import palette, plot
from evenhand.demo.page import LEARNERS as RULED
from evenhand.demo.rivals import RULES
from evenhand.games import NoisyOr
from evenhand.lab.figures import looks_of
from evenhand.lab.learners import KINDS
from evenhand.lab.paper.experiments import load_preset, preset_names
from evenhand.learners import URS, EvenHand
from evenhand.palette import GROUNDS, LEARNERS, VARIANTS, looks

STYLE = Path(evenhand.__file__).parent / "pages" / "static" / "style.css"
NORMAL = np.eye(3)
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
BLIND = {
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
APART = 20.0  # distance in Lab; 2.3 is just seen side by side, thin lines need much more


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(colour, seen=NORMAL):
    xyz = TO_XYZ @ np.clip(np.array(seen) @ linear(colour), 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours, seen):
    pairs = combinations(colours, 2)
    return min(float(np.linalg.norm(lab(a, seen) - lab(b, seen))) for a, b in pairs)


def contrast(one, other):
    a, b = sorted((TO_XYZ[1] @ linear(one) + 0.05, TO_XYZ[1] @ linear(other) + 0.05))
    return b / a


@pytest.mark.parametrize("seen", [NORMAL, *BLIND.values()], ids=["normal", *BLIND])
@pytest.mark.parametrize("dark", [0, 1], ids=["light", "dark"])
def test_learners_are_told_apart_by_everyone(dark, seen):
    colours = [one[dark] for one in LEARNERS.values()]
    assert nearest(colours, seen) > APART
    assert min(contrast(one, GROUNDS[dark]) for one in colours) >= 3.0


def test_the_distance_would_find_red_and_green_alike():
    red_and_green = ["#C44040", "#757500"]
    assert nearest(red_and_green, NORMAL) > APART
    assert nearest(red_and_green, BLIND["deuteranopia"]) < APART


def test_every_learner_has_a_place_and_a_marker_of_its_own():
    assert set(KINDS) <= LEARNERS.keys() | VARIANTS.keys()
    assert len({one.marker for one in LEARNERS.values()}) == len(LEARNERS)
    assert {*RULES, "Evenhand"} == set(RULED)
    assert set(RULED.values()) <= set(LEARNERS)


@pytest.mark.parametrize("name", preset_names())
def test_a_learner_looks_the_same_in_every_figure(name):
    for panel in load_preset(name).panels:
        found = looks_of(panel)
        kinds = [line.config["kind"] for line in panel.lines]
        for line, kind in zip(panel.lines, kinds, strict=True):
            own = (LEARNERS | VARIANTS)[kind]
            assert found[line.label].marker == own.marker
            if kinds.count(kind) == 1:
                assert found[line.label] == own
        drawn = {(one.colour, one.dashes, one.open) for one in found.values()}
        assert len(drawn) == len(panel.lines)


def test_lines_of_one_learner_are_shades_and_strangers_take_what_is_free():
    first, second = looks(["even-hand", "even-hand"])
    assert first == LEARNERS["even-hand"]
    assert second.marker == first.marker
    assert second.colour != first.colour
    five = looks(["muras"] * 5)
    light = [lab(one.colour)[0] for one in five]
    assert light == sorted(light, reverse=True)
    known, stranger, other = looks(["urs", "mine:A", "mine:B"])
    assert known == LEARNERS["urs"]
    assert len({known.marker, stranger.marker, other.marker}) == 3
    assert len({known.colour, stranger.colour, other.colour}) == 3


def test_pictures_read_the_table():
    game = NoisyOr(np.linspace(0.1, 0.9, 5))
    runs = {
        name: evenhand.simulate(learner, game, 300, seed=1)
        for name, learner in {"a": URS(5, 2, seed=1), "b": EvenHand(5, 2, seed=1)}.items()
    }
    drawn = {line.get_label(): line for line in plot.regret(runs).lines}
    for name, kind in (("a", "urs"), ("b", "even-hand")):
        assert drawn[name].get_color() == LEARNERS[kind].colour
        assert drawn[name].get_marker() == LEARNERS[kind].marker
        points = plot.exposure(runs[name], ax=Figure().subplots()).containers[0].lines[0]
        assert points.get_color() == LEARNERS[kind].colour


def test_pages_have_the_colours_of_the_table():
    light, dark = STYLE.read_text().split("@media (prefers-color-scheme: dark)", 1)
    assert palette.css(dark=False) in light
    assert palette.css(dark=True) in dark
    for name in LEARNERS:
        assert f".learner-{name} {{ color: var(--learner-{name}); }}" in dark

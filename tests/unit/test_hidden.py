"""No picture hides a curve: neither axes nor a legend lie upon one."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from evenhand.lab.earlier import with_earlier
from evenhand.lab.figures import draw
from evenhand.lab.paper.experiments import load_preset
from evenhand.lab.paper.figures import KINDS
from evenhand.lab.store import Store

OTHERS = (
    *("fig2", "both-ways-cuda", "fig4", "fig5", "fig6", "fig7", "fig8"),
    *("evenhand", "lower-bound", "timing"),
)
KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def along(line, axes):
    """Points of a curve in pixels, also between those it was drawn through."""
    points = axes.transData.transform(line.get_xydata())
    if line.get_linestyle() == "None" or len(points) < 2:
        return points
    places = np.linspace(0, len(points) - 1, 20 * (len(points) - 1) + 1)
    return np.transpose([np.interp(places, np.arange(len(points)), x) for x in points.T])


def hidden(figure):
    """Points of curves that lie in other axes than their own, insets too, or under a legend."""
    FigureCanvasAgg(figure).draw()
    everything = [one for axes in figure.axes for one in (axes, *axes.child_axes)]
    boxes = {one: one.get_window_extent() for one in everything if one.axison}
    legends = [one.get_legend() for one in everything if one.get_legend()]
    found = [(a, boxes[b]) for a, b in permutations(boxes, 2)]
    found += [(one.axes, one.get_window_extent()) for one in legends]
    found += [(axes, one.get_window_extent()) for one in figure.legends for axes in boxes]
    return [
        (axes.get_title(), line.get_label(), tuple(point))
        for axes, box in found
        for line in axes.lines
        if line.get_transform() == axes.transData
        for point in along(line, axes)
        if np.isfinite(point).all() and box.contains(*point) and axes.bbox.contains(*point)
    ]


def test_an_inset_upon_a_curve_would_be_found():
    figure = Figure()
    axes = figure.subplots()
    axes.plot(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    assert hidden(figure) == []
    inset = axes.inset_axes((0.4, 0.4, 0.3, 0.3))
    assert hidden(figure)
    inset.remove()
    assert hidden(figure) == []
    axes.plot([0, 1], [0, 1], label="a line")
    axes.legend(loc="upper right")
    assert hidden(figure)


@pytest.fixture(scope="module")
def results():
    return Store(KEPT).read()


@pytest.mark.parametrize(
    "name", ["fig1", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_no_curve_of_the_reproduction_is_hidden(name, results):
    experiment = load_preset(name)
    figure = draw(experiment, with_earlier(experiment, results)[0], KINDS)
    assert hidden(figure) == []

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import evenhand
from evenhand import plot
from evenhand.games import NoisyOr
from evenhand.learners import URS, IWKSVFair

GAME = NoisyOr(np.linspace(0.1, 0.9, 8))
TARGET = evenhand.fair_policy(GAME.kshapley(3), k=3)


def play(learner, seed=2):
    return evenhand.simulate(learner, GAME, 6000, target=TARGET, seed=seed)


@pytest.fixture(scope="module")
def run():
    return play(IWKSVFair(m=8, k=3, horizon=6000, gamma=0.8, seed=1))


@pytest.fixture(scope="module")
def blind():
    return play(URS(m=8, k=3, seed=1))


def test_a_picture_draws_on_axes_of_its_own_or_given(run, tmp_path):
    for i, draw in enumerate((plot.exposure, plot.regret, plot.convergence)):
        ax = draw(run)
        assert isinstance(ax.figure, Figure)
        ax.figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000
        own = Figure().subplots()
        assert draw(run, ax=own) is own


def test_exposure_shows_what_was_due_and_given(run):
    ax = plot.exposure(run)
    points = ax.containers[0].lines[0]
    assert points.get_xdata() == pytest.approx(TARGET / 3)
    assert points.get_ydata() == pytest.approx(run.selections / run.selections.sum())


def test_the_interval_of_exposure_covers_a_fair_draw_and_not_an_unfair_one(blind):
    """Uniform draws lie within their interval of 1/M, and not within that of what is due."""
    _, _, (bars,) = plot.exposure(blind).containers[0].lines
    low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    assert np.all((low < 1 / 8) & (1 / 8 < high))
    assert not np.any(
        (low < TARGET / 3) & (TARGET / 3 < high) & (np.abs(TARGET / 3 - 1 / 8) > 0.03)
    )


def live(merit, stderr, asked, k=2, names=None):
    """A learner as the picture sees it."""
    found = SimpleNamespace(
        merit=np.array(merit), stderr=np.array(stderr), asked=np.array(asked), names=names
    )
    return SimpleNamespace(estimate=lambda: found, k=k, queries=100)


def test_exposure_of_a_live_learner_is_drawn_against_what_it_estimates_to_be_due():
    ax = plot.exposure(live([0.3, 0.2, 0.1, -0.1], [0.01, 0.02, 0.06, 0.0], [60, 50, 30, 10]))
    points, _, (across, _) = ax.containers[0].lines
    due = evenhand.fair_policy([0.3, 0.2, 0.1, 0.0], k=2) / 2
    assert points.get_xdata() == pytest.approx(due)
    assert points.get_ydata() == pytest.approx(np.array([60, 50, 30, 10]) / 150)
    low, high = np.array([segment[:, 0] for segment in across.get_segments()]).T
    # 1.96 standard errors at 1 / 0.6 per merit, within what a share can be: 0 to 1/k
    assert low == pytest.approx([0.5 - 1.96 * 0.01 / 0.6, (0.2 - 1.96 * 0.02) / 0.6, 0.0, 0.0])
    assert high == pytest.approx([0.5, (0.2 + 1.96 * 0.02) / 0.6, (0.1 + 1.96 * 0.06) / 0.6, 0.0])
    assert ax.get_xlabel() == "share due, as estimated"
    assert "after 100 queries" in ax.get_title()


def test_exposure_of_a_live_learner_bears_few_estimates_and_unknown_errors():
    nan = np.nan
    ax = plot.exposure(live([0.3, nan, nan, nan], [nan, nan, nan, nan], [6, 5, 3, 1], k=2))
    assert ax.containers[0].lines[0].get_xdata() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    with pytest.raises(ValueError, match="source must have estimated a merit above 0, got none"):
        plot.exposure(live([nan, nan], [nan, nan], [1, 1], k=1))
    with pytest.raises(ValueError, match="source must hold selections, got none"):
        plot.exposure(live([0.5, 0.5], [0.1, 0.1], [0, 0], k=1))


def test_few_arms_are_labelled_with_their_names(run):
    names = ("$a", "b$", *"cdefgh")  # no formula
    for draw in (plot.exposure, plot.convergence):
        ax = draw(replace(run, names=names))
        ax.figure.canvas.draw()
        assert [text.get_text() for text in ax.texts] == list(names)
        assert not draw(run).texts
    many = live(np.ones(31), np.ones(31), np.ones(31, int), names=tuple(map(str, range(31))))
    assert not plot.exposure(many).texts


def test_regret_of_several_runs_is_their_mean_with_an_interval(run, blind):
    runs = [play(IWKSVFair(m=8, k=3, horizon=6000, gamma=0.8, seed=s), s) for s in (3, 4, 5)]
    ax = plot.regret({"IW-KSVFair": runs, "uniform": blind})
    assert ax.get_legend_handles_labels()[1] == ["IW-KSVFair", "uniform"]
    assert ax.lines[0].get_ydata() == pytest.approx(np.mean([r.regret for r in runs], axis=0))
    assert ax.lines[1].get_ydata() == pytest.approx(blind.regret)
    assert len(ax.collections) == 1  # one run has no interval
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    at_end = np.array([r.regret[-1] for r in runs])
    half = 4.302652729911275 * at_end.std(ddof=1) / np.sqrt(3)
    assert band.max() == pytest.approx(at_end.mean() + half)


def test_convergence_draws_the_shares_estimates_call_for(run):
    ax = plot.convergence(run)
    assert len(ax.lines) == 16
    best = int(np.argmax(TARGET))
    drawn = ax.lines[1].get_ydata()
    assert drawn[-1] == pytest.approx(
        evenhand.fair_policy(np.maximum(run.merit_curve[-1], 0), k=3)[best] / 3
    )
    assert "misplaced at the end" in ax.get_title()


def test_convergence_of_many_arms_draws_some():
    game = NoisyOr(np.linspace(0.1, 0.9, 100))
    target = evenhand.fair_policy(game.kshapley(5), k=5)
    learner = IWKSVFair(m=100, k=5, horizon=2000, gamma=2.0, seed=1)
    run = evenhand.simulate(learner, game, 2000, target=target, seed=2)
    assert len(plot.convergence(run).lines) == 80


@pytest.mark.parametrize("draw", [plot.exposure, plot.regret, plot.convergence])
def test_without_matplotlib_the_extra_is_named(draw, run, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"evenhand\.plot needs matplotlib; install it with"):
        draw(run)


def test_kind_errors(run, blind):
    with pytest.raises(TypeError, match=r"source must be what .* or a learner, got list"):
        plot.exposure([run])
    with pytest.raises(TypeError, match=r"run must be what evenhand\.simulate returned, got list"):
        plot.convergence([run])
    with pytest.raises(ValueError, match="run must hold estimates of merits"):
        plot.convergence(blind)
    with pytest.raises(ValueError, match="at least one run for every label, got none for 'a'"):
        plot.regret({"a": []})
    with pytest.raises(ValueError, match="at least one run, got none"):
        plot.regret({})
    other = replace(run, checkpoints=run.checkpoints[:-1], regret=run.regret[:-1])
    with pytest.raises(ValueError, match="same checkpoints"):
        plot.regret([run, other])
    with pytest.raises(ValueError, match="source must hold selections"):
        plot.exposure(replace(run, selections=np.zeros(8, np.int64)))

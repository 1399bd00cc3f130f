"""Worlds that change in the lab: presets, oracles and tables, compared with plain versions."""

import dataclasses
import json

import numpy as np
import pytest
from benchmarks import half_lives

from evenhand import fair_policy, kshapley, simulate
from evenhand.games import Abrupt, NoisyOr, restrict
from evenhand.lab.cells import Cell, run_cell
from evenhand.lab.games import build, build_game
from evenhand.lab.learners import KINDS, build_learner
from evenhand.lab.oracles import Knowing, Restarted
from evenhand.lab.paper.drift import COURSES, Course, course_rows
from evenhand.lab.paper.experiments import GROUPS, load_preset
from evenhand.lab.paper.report import write_report
from evenhand.lab.rehearsals import noticed
from evenhand.lab.runner import local, run_missing
from evenhand.lab.store import Store
from evenhand.learners import EvenHand
from evenhand.merit import reverse_reachable
from evenhand.randomness.streams import stream

DRIFT = ["drift-still", "drift-changes", "drift-smooth", "drift-stand-in", "roster"]
SMALL = {
    "redrawn": {"every": 80},
    "moving-pair": {"every": 80},
    "turnover": {"every": 80},
    "season": {"period": 100},
    "stand-in-livelier": {"at": 80, "reference_sets": 20_000},
}


def small(name, store):
    """A preset with quicker changes, and its results."""
    preset = load_preset(name)
    panels = [
        dataclasses.replace(p, game={**p.game, **SMALL.get(p.game["kind"], {})})
        for p in preset.panels
    ]
    experiment = dataclasses.replace(preset, panels=panels, horizons=[200], replications=1)
    run_missing(experiment.all_cells(), store, local(1))
    return experiment, store.read()


@pytest.mark.parametrize(
    "name", ["roster", *(pytest.param(name, marks=pytest.mark.slow) for name in DRIFT[:-1])]
)
def test_presets_run_and_are_drawn_at_tiny_size(name, tmp_path):
    experiment, results = small(name, Store(tmp_path))
    rows = course_rows(experiment, results)
    assert len(rows) == sum(len(panel.lines) for panel in experiment.panels)
    assert all(len(row) == len(COURSES) and "nan" not in " ".join(row) for row in rows)
    page = write_report(tmp_path, [experiment]).read_text()
    assert "of the knowing" in page
    assert experiment.panels[0].title in page
    assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000


def test_presets_have_enough_replications_and_groups_name_presets():
    assert set(GROUPS["drift"]) < {*DRIFT, "drift-facebook"}
    for name in (*GROUPS["drift"], "roster"):
        assert load_preset(name).replications >= 20


def test_what_is_kept_of_a_run_is_what_simulate_says():
    game = {"kind": "redrawn", "family": "noisy-or", "m": 6, "every": 200}
    one, two = (Cell(game, 2, {"kind": "even-hand"}, 800, r, 5) for r in (1, 2))
    record = run_cell(one)
    learner = EvenHand(6, 2, seed=stream(5, 1, "learner"))
    run = simulate(
        learner,
        build(game, 2, seed=5).world,
        800,
        seed=stream(5, 1, "environment"),
    )
    assert record["regret"] == record["regret_curve"][-1] == run.regret[-1]
    assert record["marks"] == run.checkpoints.tolist()
    assert record["due"] == run.due_curve.reshape(-1).tolist()
    assert json.loads(record["changes"]) == [[t, "game", []] for t in (200, 400, 600)]
    noticed = learner.estimate().changes
    assert noticed
    assert json.loads(record["noticed"]) == [list(change) for change in noticed]
    assert "due" not in run_cell(two)  # of one replication only


def test_older_results_have_none_of_it(tmp_path):
    store = Store(tmp_path)
    cell = Cell({"kind": "synthetic", "m": 5}, 2, {"kind": "urs"}, 50, 1, 1)
    store.write(cell, run_cell(cell))
    assert store.read()["regret_curve"].to_list() == [None]


# ---- worlds ----


def made(kind, **options):
    config = {"kind": kind, "family": "noisy-or", "m": 6, **options}
    return build(config, 2, horizon=1000, replication=1, seed=1).world


def test_worlds_start_alike_and_change_as_they_say():
    start = made("still").at(0).mu
    for kind in ("redrawn", "walk"):
        np.testing.assert_array_equal(made(kind).at(0).mu, start)
    few = made("redrawn", arms=2, every=100)
    assert [(few.at(t).mu != few.at(t - 1).mu).sum() for t in (99, 100, 200)] == [0, 2, 2]
    every = made("redrawn", every=100)
    assert (every.at(100).mu != every.at(0).mu).all()
    season = made("season", period=100)
    ends = np.array([season.parameters(t) for t in range(0, 100_000, 500)])
    assert ends.min() >= 0.2
    assert ends.max() <= 0.9
    roster = made("turnover", every=300)
    assert roster.m == 6 + 3
    with pytest.raises(ValueError, match="family must be one of"):
        made("walk", family="shop")
    with pytest.raises(ValueError, match="must be one that does not change, got 'walk'"):
        build_game({"kind": "walk", "family": "noisy-or", "m": 6}, 2)


def test_a_third_of_the_nodes_spreads_more():
    config = {"kind": "stand-in-livelier", "at": 100, "reference_sets": 20_000}
    world, due = build(config, 10, seed=1)
    before, after = world.at(99), world.at(100)
    changed = before.p != after.p
    sources = np.unique(before.edges[changed, 0])
    assert set(np.unique(after.p)) == {0.1, 0.15}
    assert len(sources) <= 534 // 3
    assert not np.isin(before.edges[~changed, 0], sources).any()
    rng = stream(1, 0, "reference")
    for game, t in ((before, 0), (after, 100)):
        expected = fair_policy(reverse_reachable(game, 10, 20_000, rng), 10)
        np.testing.assert_allclose(due(t), expected)


# ---- learners that know ----


def test_the_restarted_learner_begins_anew_at_each_change():
    world = Abrupt([NoisyOr([0.5] * 6), NoisyOr([0.6] * 6)], [300])
    learner, sizes = Restarted(6, 2, world=world, seed=1), []
    simulate(learner, world, 500, seed=1, late=50, watch=lambda b: sizes.append(learner._before))
    assert set(sizes) == {0, 300}
    assert learner._learner.queries == 200
    assert learner._learner.evidence.told == 150  # rows of the one before are dropped


def test_the_restarted_learner_shows_the_arms_present_by_id():
    world = made("turnover", every=100)
    learner, seen = Restarted(6, 2, world=world, seed=1), {}

    def note(batch):
        arms = batch.orders[batch.orders >= 0]
        seen.setdefault(learner._before, set()).update(arms.tolist())

    simulate(learner, world, 400, seed=1, watch=note)
    assert seen == {t: set(world.present(t).tolist()) for t in (0, 100, 200, 300)}


def test_the_knowing_learner_knows_all_but_the_newcomer():
    world = made("turnover", every=300)
    learner = Knowing(6, 2, world=world, seed=1)
    simulate(learner, world, 350, seed=1)
    truth = kshapley(restrict(world.at(300), world.present(300)), 2)
    old = learner.roster.joined < 300
    assert old.sum() == 5
    np.testing.assert_allclose(learner.merit[old], truth[old])
    assert learner.merit[~old] != pytest.approx(truth[~old])


def test_kinds_of_learners_are_data():
    rng = np.random.default_rng(1)
    world = made("turnover", every=300)
    for kind in ("even-hand-unwatched", "restarted", "knowing"):
        assert "world" not in KINDS[kind].options
        assert build_learner({"kind": kind}, 6, 2, 100, rng, world).m == 6


def test_changes_noticed_are_kept_as_lists():
    class Says:
        def estimate(self):
            return type("Found", (), {"changes": [(np.int64(7), "alone", 3)]})

    assert noticed(Says()) == [[7, "alone", 3]]
    assert noticed(EvenHand(4, 2, seed=1)) == []


# ---- tables ----


def test_a_course_says_what_came_after_the_first_change_and_what_was_seen():
    course = Course(
        np.array([100, 200]),
        np.array([[10.0, 30.0], [20.0, 60.0]]),
        np.array([1.0, 2.0]),
        [[50, 150], []],
        [[60, 190_000], [10]],
    )
    assert course.total.tolist() == [30.0, 60.0]
    assert course.later[0] == 25.0  # half of the first window came before
    assert np.isnan(course.later[1])
    assert course.seen == 0.5  # 60 comes before the second change, 190 000 too long after it
    late = course._replace(noticed=[[30_000], []])
    assert late.seen == 0.0


# ---- learners that forget ----


def test_fading_multiplies_all_that_is_known():
    learner = half_lives.Fading(6, 2, half_life=200.0, seed=1)
    world = made("still")
    simulate(learner, world, 600, seed=1)
    before = learner.evidence.singles.copy(), learner.evidence.weighted.copy()
    told = learner.evidence.told
    learner._memory = told
    learner._fade(0.5)
    np.testing.assert_allclose(learner.evidence.singles, 0.5 * before[0])
    np.testing.assert_allclose(learner.evidence.weighted[..., :2], 0.5 * before[1][..., :2])
    np.testing.assert_allclose(learner.evidence.weighted[..., 2:], 0.25 * before[1][..., 2:])
    assert abs(learner.evidence.told - told / 2) <= 1
    assert told == pytest.approx(200 / np.log(2) * (1 - 2**-3), rel=0.05)  # what is left of 600


@pytest.mark.slow
def test_a_long_half_life_forgets_nothing():
    ever = half_lives.Fading(6, 2, half_life=1e15, seed=1)
    plain = EvenHand(6, 2, seed=1)
    for learner in (ever, plain):
        simulate(learner, made("still"), 2000, seed=1)
    np.testing.assert_allclose(ever.merit, plain.merit, rtol=0.05)
    assert ever.evidence.told == plain.evidence.told


@pytest.mark.slow
def test_a_half_life_that_fits_beats_one_that_never_forgets():
    runs = [half_lives.regret("season", "noisy-or", 1, 60_000, h) for h in (4096, 0)]
    assert runs[0] < runs[1]

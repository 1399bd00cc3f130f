"""What is measured of deployments, compared with plain versions of it."""

import json
from collections import namedtuple

import numpy as np
import polars as pl
import pytest
from benchmarks import company, deployments, misfits, same_rewards, sensitivity, varied
from benchmarks.deployments import WORLDS, settings

from evenhand import simulate
from evenhand.datasets import facebook_stand_in
from evenhand.games import SetFunction, rare_coverage, shop
from evenhand.lab.cells import Cell, play, run_cell
from evenhand.lab.experiments import parse
from evenhand.lab.games import MAKERS, build_game
from evenhand.lab.paper.deployments import HONESTY, ORACLE, PAGES, honesty_rows, page_rows
from evenhand.lab.paper.experiments import GROUPS, load_preset
from evenhand.lab.ratios import against, log_ratio
from evenhand.lab.readings import Reading, condense
from evenhand.lab.runner import local, run_missing
from evenhand.lab.store import SCHEMA, Store
from evenhand.learners import EvenHand
from evenhand.merit import kshapley
from evenhand.randomness.streams import stream

THIS = namedtuple("This", "first second")(2.0, 8.0)
NUMBER = 3.0


def reading(estimate, marginals, stderr=0.01):
    merit, some = np.array([0.1, 0.1, 0.2]), np.full(3, stderr)
    estimate = np.array(estimate)
    ends = estimate - 0.05, estimate + 0.05
    return Reading(1, merit, estimate, some, np.array(marginals), *ends)


def test_a_reading_says_how_far_off_a_learner_is():
    one = reading([0.1, 0.07, 0.22], [0.5, 0.1, 0.4])
    assert one.z == pytest.approx([0.0, -3.0, 2.0])
    assert one.due == pytest.approx([0.25, 0.25, 0.5])
    assert one.misplaced == pytest.approx(0.25)  # what the first has too much
    assert one.least == pytest.approx(0.4)


def test_readings_of_several_worlds_are_condensed():
    both = condense(
        [reading([0.1, 0.07, 0.22], [0.5, 0.1, 0.4]), reading([0.1, 0.1, 0.3], [0.25, 0.25, 0.5])]
    )
    z = np.array([[0.0, -3.0, 2.0], [0.0, 0.0, 10.0]])
    assert (both.worlds, both.within, both.largest) == (2, pytest.approx(4 / 6), pytest.approx(10))
    assert both.rms == pytest.approx(np.sqrt((z**2).mean()))
    assert both.thirds == pytest.approx(np.sqrt((z**2).mean(axis=0)))  # merits increase
    assert (both.misplaced, both.least) == (pytest.approx(0.125), pytest.approx(0.7))
    assert both.misplaced_stderr == pytest.approx(0.125)
    assert (both.covered, both.width) == (pytest.approx(5 / 6), pytest.approx(0.1))


class Watched(EvenHand):
    """Notes how many queries had been asked when each reward was told."""

    def __init__(self, m, k, *, seed):
        super().__init__(m, k, seed=seed)
        self.ages = []

    def tell(self, batch, rewards):
        self.ages += [self.queries - 1 - int(i) for i in batch.index]
        super().tell(batch, rewards)


@pytest.mark.parametrize("late", [0, 1, 70, 400])
def test_rewards_come_late_and_as_many_as_are_left(late):
    game = shop(6, np.random.default_rng(1))
    learner = Watched(6, 2, seed=1)
    simulate(learner, game, 400, seed=2, late=late)
    assert learner.queries == 400
    assert len(learner.ages) == 400 - late == learner.evidence.told
    assert not learner.ages or min(learner.ages) >= late


def test_late_rewards_need_a_number_of_queries():
    with pytest.raises(ValueError, match="late must be at least 0"):
        simulate(EvenHand(3, 2, seed=1), shop(3, np.random.default_rng(1)), 9, seed=2, late=-1)


def test_a_cell_counts_rewards_told_and_says_what_the_learner_said():
    cell = Cell({"kind": "shop", "m": 8}, 3, {"kind": "even-hand"}, 300, 1, 5, late=100)
    record = run_cell(cell)
    assert record["queries"] == 400
    assert len(record["estimate"]) == len(record["stderr"]) == len(record["low"]) == 8
    assert np.sum(record["marginals"]) == pytest.approx(3)
    at_once = run_cell(Cell(cell.game, 3, cell.learner, 300, 1, 5))
    assert at_once["queries"] == 300
    assert at_once["merit"] == record["merit"]  # the same world
    assert at_once["estimate"] != record["estimate"]


def test_the_fair_policy_earns_what_its_sets_are_worth():
    """Of one arm at a time: the mean of worths weighted by the due shares."""
    cell = Cell({"kind": "shop", "m": 8}, 1, {"kind": "even-hand"}, 20_000, 1, 5)
    merit = np.array((record := run_cell(cell))["merit"])  # with k = 1 the arms' worths
    worth = merit @ merit / merit.sum()
    assert abs(record["fair_reward"] - worth) < 4.5 * np.sqrt(worth / 20_000)


def test_worlds_are_as_rare_as_they_say():
    rngs = [np.random.default_rng(i) for i in range(40)]
    alone = np.concatenate([shop(40, rng).value(np.eye(40, dtype=bool)) for rng in rngs])
    assert (alone.min(), alone.max()) >= (0.004, 0.004)
    assert alone.max() <= 0.9
    assert abs(alone.mean() - 1.2 / 13.2) < 4.5 * 0.077 / np.sqrt(len(alone))
    few = np.concatenate([rare_coverage(30, rng).value(np.eye(30, dtype=bool)) for rng in rngs])
    assert abs(few.mean() - 0.0275) < 4.5 * 0.025 / np.sqrt(len(few))
    assert abs(np.mean(few == 0) - 0.256) < 4.5 * 0.44 / np.sqrt(len(few))


def test_a_graph_is_cut_to_nodes_that_keep_their_arcs():
    config = {"kind": "stand-in-cut", "nodes": 60, "p": 0.02, "reference_sets": 120}
    one, other = (build_game(config, 5, replication=r, seed=3).game for r in (1, 2))
    assert one.m == 60
    assert not np.array_equal(one.edges, other.edges)
    whole = facebook_stand_in()
    kept = stream(3, 1, "instance").permutation(whole.m)[:60]
    arcs = {(int(u), int(v)) for u, v in whole.edges}
    found = {(int(kept[u]), int(kept[v])) for u, v in one.edges}
    assert found == {(u, v) for u, v in arcs if u in kept and v in kept}


RARE = """
name = "rare"
figure = "honesty"
horizons = [200, 400]
replications = 2
seed = 4
[[panel]]
title = "shop"
k = 2
game = { kind = "shop", m = 6 }
[[panel.learner]]
label = "EvenHand"
kind = "even-hand"
[[panel]]
title = "shop, late"
k = 2
late = 50
game = { kind = "shop", m = 6 }
[[panel.learner]]
label = "EvenHand"
kind = "even-hand"
"""


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    experiment, store = parse(RARE, "rare.toml"), Store(tmp_path_factory.mktemp("rare"))
    run_missing(experiment.all_cells(), store, local(1))
    return experiment, store.read()


def test_the_oracle_stands_beside_the_learner_in_the_same_worlds(rare):
    experiment, results = rare
    alone = honesty_rows(experiment, results)
    assert len(alone) == 4
    assert all(len(row) == len(HONESTY) for row in alone)
    assert not any(row[-1] for row in alone)
    # an oracle that says just what the learner said
    game = pl.col("late") == 0
    twin = results.filter(game).with_columns(
        learner=pl.lit(json.dumps({"kind": ORACLE})), id="oracle" + pl.col("id")
    )
    rows = honesty_rows(experiment, pl.concat([results, twin]))
    assert [row[1] for row in rows] == [
        *["EvenHand"] * 2,
        *["oracle for EvenHand"] * 2,
        *["EvenHand"] * 2,
    ]
    assert (rows[0][8], rows[0][10], rows[0][13]) == ("1.00", "1.00", "1.0")
    assert rows[4][8] != ""
    half = pl.concat([results, twin.filter(pl.col("replication") == 1)])
    assert honesty_rows(experiment, half)[0][8] == ""  # other worlds are not compared


def test_pages_compare_replication_by_replication():
    preset = load_preset("full-pages")
    experiment = preset.cut(1e5, 2)
    panel = experiment.panels[0]
    rows = []
    for line, factor in zip(panel.lines, (8.0, 1.0, 2.0), strict=True):
        for cell in experiment.cells(panel, line):
            regret = factor * cell.horizon**0.5 * cell.replication
            rows.append({"id": cell.id, "horizon": cell.horizon, "regret": regret})
            rows[-1] |= {"reward": 0.3, "fair_reward": 0.4 if factor < 8 else None}
    results = pl.DataFrame(rows, schema=SCHEMA)
    one = experiment.__class__(
        **{n: getattr(experiment, n) for n in experiment.__slots__} | {"panels": [panel]}
    )
    found = page_rows(one, results)
    assert all(len(row) == len(PAGES) for row in found)
    assert [row[5] for row in found] == [
        *["1/1.00 ± 0 %"] * 2,
        *["1/8.00 ± 0 %"] * 2,
        *["1/4.00 ± 0 %"] * 2,
    ]
    assert [row[6] for row in found] == ["", "0.50"] * 3
    assert [row[8] for row in found] == ["", "", "0.7500", "0.7500", "0.7500", "0.7500"]


def test_ratios_are_paired():
    old = np.array([1.0, 10.0, 100.0, np.nan])
    ratio = log_ratio(1.1 * old, old)
    assert (ratio.value, ratio.n) == (pytest.approx(np.log(1.1)), 3)
    assert ratio.stderr == pytest.approx(0.0, abs=1e-12)  # however different the replications are
    assert np.isnan(log_ratio(old[:1], old[:1]).stderr)


def test_results_are_compared_with_older_ones_of_the_same_cells(rare):
    _, results = rare
    old = results.with_columns(
        regret=pl.col("regret") / 2,
        id="old" + pl.col("id"),
        late=pl.when(pl.col("late") > 0).then(pl.col("late")),
    )
    table = against(results, old.filter(pl.col("horizon") == 200))
    assert table["n"].to_list() == [2, 2]
    assert table["late"].to_list() == [0, 50]
    assert table["value"].to_list() == pytest.approx([np.log(2)] * 2)


def test_deployments_are_some_of_the_presets():
    experiments = [load_preset(name) for name in GROUPS["deployments"]]
    rare, full, _ = experiments
    worlds = deployments.WORLDS.items()
    games = [world.game for _, world in worlds if "benchmarks" not in world.game["kind"]]
    assert [panel.game for panel in rare.panels] == [game for game in games for _ in range(2)]
    for experiment in (rare, full):
        for panel in experiment.panels:
            for line in panel.lines:
                assert sum(line.config.get("sizes", [1.0])) == pytest.approx(1.0)


def test_varied_worlds_differ_in_weights_alone():
    made = varied.cover(8, 2, np.random.default_rng(3))
    alike = rare_coverage(8, np.random.default_rng(3))
    np.testing.assert_allclose(made.known.merit, kshapley(made.game, 2), rtol=1e-12)
    alone, same = (game.value(np.eye(8, dtype=bool)) for game in (made.game, alike))
    assert ((alone > 0) == (same > 0)).all()
    assert not np.allclose(alone, same)
    spread = varied.cascade(2, 1, np.random.default_rng(3), nodes=30, reference_sets=60)
    plain = MAKERS["stand-in-cut"](
        nodes=30, k=2, seed=1, rng=np.random.default_rng(3), p=0.02, reference_sets=60
    )
    assert (spread.game.edges == plain.game.edges).all()
    assert np.ptp(spread.game.p) > 0.01
    assert abs(spread.game.p.mean() - 0.02) < 4 * 0.02 / np.sqrt(len(spread.game.p))


def test_worlds_that_are_other_in_company_are_what_they_say():
    rng = np.random.default_rng(4)
    made = {"fee": company.fee(6, 3, rng), "quiet": company.quiet(6, rng)}
    made["together"] = company.together(6, 3)
    orders, n = np.tile([2, 0, 5], (20_000, 1)), np.full((20_000, 1), 3)
    for name, (game, known) in made.items():
        np.testing.assert_allclose(known.merit, kshapley(game, 3), rtol=1e-12)
        drawn = game.pull(orders, n, rng)
        mean = game.value(np.array([[True, False, True, False, False, True]]))
        assert abs(drawn.mean() - mean) < 4.0 * drawn.std() / np.sqrt(len(drawn))
        alone = game.pull(orders, np.ones_like(n), rng)
        assert np.ptp(drawn) > 0.01
        assert (np.ptp(alone) > 0.0) == (name == "fee")


def test_worlds_that_the_model_does_not_describe_are_what_they_say():
    def value(kind, *sets):
        game = getattr(misfits, kind)(6, 3, np.random.default_rng(2)).game
        return game.value(np.array([[arm in members for arm in range(6)] for members in sets]))

    one, two, both = value("star", [0], [1], [0, 1])
    assert one == pytest.approx(0.7)
    assert both == pytest.approx(one + two - one * two)
    apart, pair, more = value("pairs", [0, 1, 2], [1, 4], [0, 1, 4])
    assert apart == 0.0 < pair == more
    one, two, both = value("crowd", [0], [1], [0, 1])
    assert both == pytest.approx((one + two) / 2**1.3)
    one, two, both, none = value("weakest", [0], [1], [0, 1], [])
    assert both == min(one, two) > none == 0.0
    each = value("twins", *([a] for a in range(6)))
    kinds = np.random.default_rng(2).integers(0, misfits.KINDS, 6)
    together = value("twins", range(6))[0]
    assert together == pytest.approx(sum(each[kinds == kind].max() for kind in set(kinds)))
    one, two, both = value("team", [0], [1], [0, 1])
    assert both == pytest.approx((np.sqrt(one) + np.sqrt(two)) ** 2)
    chances = np.sort(value("tail", *([a] for a in range(6))))[::-1]
    assert chances == pytest.approx(0.4 / np.arange(1, 7))
    game, known = misfits.tail(6, 3, np.random.default_rng(2))
    np.testing.assert_allclose(known.merit, kshapley(SetFunction(game.value, 6), 3), rtol=1e-12)


def test_a_number_is_changed_for_a_while():
    first, second, plain = sensitivity.constants([f"{__name__}:THIS", f"{__name__}:NUMBER"])
    with second.times(1.5), plain.times(2.0):
        assert (first.value, second.value, plain.value) == (2.0, 12.0, 6.0)
    assert (THIS, NUMBER) == ((2.0, 8.0), 3.0)


@pytest.mark.slow
def test_a_number_that_is_not_read_is_told_from_one_that_does_not_matter():
    names = [f"{__name__}:NUMBER", "evenhand.learners.proportional:GROWTH"]
    varied = sensitivity.constants(names)
    text = sensitivity.table(varied, {"kind": "even-hand"}, ["synthetic"], 800, 2, 1)
    rows = text.splitlines()[2:]
    assert ["not reached" in row for row in rows] == [True, True, False, False]


def test_the_script_prints_a_line_per_mark(monkeypatch, capsys):
    command = "deployments shop --worlds 2 --marks 300 600 --late 0 100 --full 0.9"
    monkeypatch.setattr("sys.argv", command.split())
    deployments.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all("rms" in line and "nan" not in line for line in lines)


def test_exact_posteriors_are_told_what_the_learner_was():
    setting = settings(WORLDS["cover"], 5, 1)[0]
    found = same_rewards.readings("cover", WORLDS["cover"], setting, None, 150, 5, 1)
    assert list(found) == ["EvenHand", "oracle", "uneven", "smooth", "some nothing"]
    learner = EvenHand(30, 5, seed=stream(5, 1, "learner"))
    play(setting, learner, 150, 0, stream(5, 1, "environment"))
    np.testing.assert_allclose(found["EvenHand"].estimate, learner.merit, rtol=1e-9)
    apart = [np.abs(one.estimate - found["smooth"].estimate).mean() for one in found.values()]
    assert max(apart) < found["smooth"].stderr.mean()


def test_arms_that_do_harm_are_due_nothing_and_claims_about_them_are_judged_as_they_are():
    (setting,) = settings(WORLDS["weakest"], 5, 1)
    read = deployments.reading(setting, 4, deployments.factory("even-hand", None), 3000, 0, 5, 1)
    np.testing.assert_array_equal(read.merit, setting.known.merit)
    harm = read.merit < -0.05
    assert harm.any()
    assert not read.due[harm].any()
    assert condense([read]).covered == 1.0
    assert not ((read.low <= 0.0) & (read.high >= 0.0))[harm].all()  # else clipping would not show

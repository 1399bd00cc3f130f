"""How long until shares are fair: against a run by hand, against longer runs, and refusals."""

import signal

import numpy as np
import pytest

import evenhand
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.learners import EvenHand
from evenhand.plan_command import in_words
from evenhand.planning import Outlook, _reached, _times, outlook
from evenhand.randomness.streams import stream

RATES = [0.5, 0.3, 0.2, 0.1, 0.05, 0.05]


def test_it_is_what_a_run_by_hand_gives():
    found = outlook(6, 2, RATES, queries=400, worlds=2, seed=7)
    game = BinaryNoisyOr(np.array(RATES))
    due = evenhand.fair_policy(game.kshapley(2), 2)
    learner, rng = EvenHand(6, 2, seed=stream(7, 1, "learner")), stream(7, 1, "environment")
    for place, time in enumerate(found.queries.tolist()):
        while learner.queries < time:
            batch = learner.ask(time - learner.queries)
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        apart = 0.5 * np.abs(learner.marginals / 2 - due / 2).sum()
        assert found.distance[1, place] == pytest.approx(apart)
    again = outlook(6, 2, RATES, queries=400, worlds=2, seed=7)
    np.testing.assert_array_equal(found.distance, again.distance)


def test_when_a_distance_stays_within():
    times = np.array([100, 200, 400, 800, 1600])
    curves = np.array(
        [
            [0.2, 0.04, 0.06, 0.04, 0.03],  # once above again
            [0.04, 0.04, 0.03, 0.03, 0.02],  # from the beginning
            0.05 * np.sqrt(6400 / times),  # falls like one over the square root: at 6400
        ]
    )
    np.testing.assert_allclose(_reached(times, curves, 0.05), [800, 100, 6400])
    found = Outlook(times, curves, 0.05, _reached(times, curves, 0.05), False)
    luckier = np.append(0.9 * curves[2, :-1], curves[2, -1])  # before it was last looked at
    assert _reached(times, luckier[None], 0.05) == pytest.approx(6400)
    assert found.extrapolated == 1
    assert found.range()[1] == 800
    assert found.settled == pytest.approx(curves[:, -1:].mean())


def test_times_end_where_asked():
    times = _times(12_345)
    assert times[0] == 50
    assert times[-1] == 12_345
    assert np.all(np.diff(times) > 0)


@pytest.mark.slow
def test_short_simulations_foretell_long_ones():
    """Extrapolated from a quarter of the time, against worlds of another seed to the end."""
    short = outlook(20, 4, 0.15, queries=4000, worlds=20, seed=1)
    long = outlook(20, 4, 0.15, queries=64_000, worlds=20, seed=2)
    assert short.extrapolated > 10
    assert long.extrapolated < 4
    apart = np.log(short.reached).mean() - np.log(long.reached).mean()
    error = np.sqrt(np.log(short.reached).var() / 20 + np.log(long.reached).var() / 20)
    assert abs(apart) < 3.0 * error + 0.2


def test_more_pages_are_needed_where_rewards_are_rarer():
    often, rarely = (outlook(8, 2, r, queries=1500, worlds=3).distance[:, -3:] for r in (0.4, 0.02))
    assert rarely.mean() > 1.5 * often.mean()


def test_arms_that_change_keep_a_distance():
    still = outlook(8, 2, 0.3, queries=3000, worlds=3)
    moving = outlook(8, 2, 0.3, queries=3000, worlds=3, redraw=300)
    assert moving.changing
    assert np.isnan(moving.reached).all()
    assert moving.settled > 1.5 * still.settled


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must lie strictly between 0 and 1"),
        ({"rate": [0.1, 0.2]}, "one per arm"),
        ({"rate": [0.0] * 6}, "not all 0"),
        ({"within": 0.0}, "within must be above 0"),
        ({"queries": 10}, "queries"),
        ({"rate": 9}, "rate must lie strictly between 0 and 1, as 0.09 for 9 %, got rate=9"),
        ({"rate": np.nan}, "rate must"),
        ({"worlds": 0}, "worlds"),
        ({"redraw": 0}, "redraw"),
        ({"full": 1.0}, "full must lie strictly between 0 and 1"),
        ({"k": 7}, "k"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        outlook(**{"m": 6, "k": 2, "rate": 0.1, **arguments})


def test_the_command_says_it_in_words(tmp_path):
    from typer.testing import CliRunner

    from evenhand.cli import app

    line = "plan --arms 8 --slots 2 --rate 0.3 --queries 800 --worlds 2 --traffic 500"
    picture = tmp_path / "plan.svg"
    answer = CliRunner().invoke(app, [*line.split(), "--picture", str(picture)])
    assert answer.exit_code == 0, answer.output
    assert "pages a day" in answer.output
    assert "where 40% of the pages are full" in answer.output
    assert picture.read_text().startswith("<?xml")
    assert max(map(len, answer.output.splitlines()[:-1])) <= 80
    answer = CliRunner().invoke(app, [*line.split(), "--redraw", "500", "--full", "0.9"])
    assert "where 90% of the pages are full" in answer.output
    assert "stay off on average" in answer.output


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--slots 9", "no more than 8 arms"),
        ("--picture plan.bmp", "must end in .svg"),
        ("--picture nowhere/plan.svg", "there is no folder"),
    ],
)
def test_the_command_refuses_before_it_works(wrong, message):
    from typer.testing import CliRunner

    from evenhand.cli import app

    line = f"plan --arms 8 --slots 2 --rate 0.3 --worlds 1000000 {wrong}"
    answer = CliRunner().invoke(app, line.split(), env={"COLUMNS": "200"})
    assert answer.exit_code == 2
    assert message in answer.output
    assert wrong.split()[0] in answer.output


def test_ctrl_c_stops_between_two_batches():
    """Not within compiled code, which would make another error of it."""
    done = []

    def press(worlds):
        done.append(worlds)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            outlook(6, 2, RATES, queries=400, worlds=3, progress=press)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [1]


def test_ctrl_c_says_that_nothing_is_kept(monkeypatch):
    from typer.testing import CliRunner

    from evenhand import planning
    from evenhand.cli import app

    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "_play", stopped)
    answer = CliRunner().invoke(app, "plan --arms 8 --slots 2 --rate 0.3".split())
    assert answer.exit_code == 130
    assert "nothing is kept" in answer.output


def test_shares_are_not_rounded_to_others():
    times = np.array([100, 200, 400])
    found = Outlook(times, np.full((2, 3), 0.05), 0.025, np.full(2, 1600.0), False)
    assert "Within 2.5% after 1,600" in in_words(found, None, 0.995)
    assert "where 99.5% of the pages are full" in in_words(found, None, 0.995)
    assert "At 1 pages a day: 1,600 days (1,600 to 1,600)" in in_words(found, 1.0, 0.9)
    assert ": 0.16 days (" in in_words(found, 9999.0, 0.9)
    axes = evenhand.plot.outlook(found)
    assert axes.get_title().startswith("within 2.5% after")
    assert axes.yaxis.get_major_formatter()(0.175) == "17.5%"

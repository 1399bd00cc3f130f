"""Trajectories pinned before the learners were cut into parts: they stay, and so do all results."""

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import evenhand
from evenhand.games import hidden_pair, synthetic
from evenhand.randomness.streams import stream
from tests.contracts import LEARNERS

PINNED = Path(__file__).with_name("pinned.json")
HORIZONS = (400, 4000, 12_000)


def paper_game():
    return synthetic(20, stream(3, 1, "instance")), 5


def pair_game():
    return hidden_pair(12, stream(3, 1, "instance")), 4


GAMES = {"synthetic": paper_game, "hidden-pair": pair_game}


class Asks:
    """A number for all that was asked, in order; what stands behind a prefix does not count."""

    def __init__(self):
        self.sum, self.first = 0, []

    def add(self, batch):
        behind = np.arange(batch.orders.shape[1]) >= batch.sizes.max(axis=1)[:, None]
        orders = np.where(behind, -1, batch.orders)
        for array in (orders, batch.sizes, batch.times):
            self.sum = crc32(np.ascontiguousarray(array, np.int64).tobytes(), self.sum)
        self.first += orders.tolist()[: max(0, 5 - len(self.first))]


def trajectory(learner_name, game_name, horizon):
    """What a learner does on a game, as the lab runs it: both given generators."""
    game, k = GAMES[game_name]()
    merit = evenhand.kshapley(game, k)
    learner = LEARNERS[learner_name](game.m, k, horizon, stream(3, 1, "learner"))
    asks = Asks()
    run = evenhand.simulate(
        learner,
        game,
        horizon,
        target=evenhand.fair_policy(merit, k),
        seed=stream(3, 1, "environment"),
        checkpoints=[horizon // 4, horizon],
        watch=asks.add,
    )
    return {
        "asks": asks.sum,
        "first": asks.first,
        "regret": run.regret.tolist(),
        "merit": [None if np.isnan(x) else x for x in run.merit],
        "marginals": run.marginals.tolist(),
        "selections": run.selections.tolist(),
    }


def names():
    return [(game, learner, t) for game in GAMES for learner in LEARNERS for t in HORIZONS]


@pytest.mark.parametrize(("game", "learner", "horizon"), names())
def test_trajectories_are_as_pinned(game, learner, horizon):
    pinned = json.loads(PINNED.read_text())[f"{game}/{learner}/{horizon}"]
    found = trajectory(learner, game, horizon)
    assert found["first"] == pinned["first"]
    for name in ("regret", "merit", "marginals"):
        one, other = (np.array(x[name], dtype=float) for x in (found, pinned))
        # sets are the same everywhere; where equations are solved, OpenBLAS differs by up to 1e-7
        # between kinds of processors
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=name)
    assert found["selections"] == pinned["selections"]
    assert found["asks"] == pinned["asks"]


if __name__ == "__main__":  # pins what is computed now: only for a new learner or new numbers
    kept = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    for game, learner, t in names():
        kept.setdefault(f"{game}/{learner}/{t}", trajectory(learner, game, t))
    lines = (f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n")

"""The oracle's posteriors, compared with those found by listing what may be true."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import oracle, posteriors
from benchmarks.posteriors import Told
from scipy.stats import beta

from evenhand.games import NoisyOr, SetFunction
from evenhand.lab.paper.experiments import load_preset
from evenhand.learners import EvenHand
from evenhand.merit import kshapley

K = 2
ORDERS = np.array([[0, -1], [1, -1], [2, -1], [0, 1], [1, 2], [2, 0]])
SIZES = np.array([1, 1, 1, 2, 2, 2])
ROWS = list(zip(ORDERS, SIZES, strict=True))


def told(value, n, rng):
    """Each of the sets of at most two of three arms so often."""
    rows = np.repeat(np.arange(len(ORDERS)), n)
    sets = np.array(
        [[a in order[:r] for a in range(3)] for order, r in zip(ORDERS, SIZES, strict=False)]
    )
    rewards = (rng.random(len(rows)) < value(sets)[rows]).astype(float)
    return Told(ORDERS[rows], SIZES[rows], rewards), sets


def log_likelihood(data, sets, values):
    """Of tables of values (w, n_sets), one row per possible world."""
    key = [tuple(np.flatnonzero(s)) for s in sets]
    at = [key.index(tuple(sorted(o[:r]))) for o, r in zip(data.orders, data.sizes, strict=False)]
    wins = np.bincount(at, data.rewards, len(sets))
    losses = np.bincount(at, minlength=len(sets)) - wins
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(wins > 0, wins * np.log(values), 0.0)
        parts += np.where(losses > 0, losses * np.log1p(-values), 0.0)
    return parts.sum(axis=1)


def moments(log_weights, merits):
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ merits
    return mean, np.sqrt(weights @ (merits - mean) ** 2)


def agree(draws, mean, sd, block=25):
    """Compare with standard errors from means of blocks, as successive draws are alike."""
    blocks = draws[: len(draws) // block * block].reshape(-1, block, 3).mean(axis=1)
    stderr = blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))
    close = np.abs(draws.mean(axis=0) - mean) < 4.5 * stderr
    return bool(close.all() and np.all(np.abs(draws.std(axis=0) / sd - 1) < 0.12))


def test_shop():
    truth, n = (0.2, 0.02, 0.004), 60
    rng = np.random.default_rng(5)
    data, sets = told(NoisyOr(truth).value, n, rng)
    levels = (np.arange(60) + 0.5) / 60  # equally likely under the prior, cut ends included
    a, b, low, high = posteriors.QUALITIES
    grid = np.clip(beta(a, b).ppf(levels), low, high)
    quality = np.array(list(itertools.product(grid, repeat=3)))
    values = np.stack([1 - np.prod(1 - quality * s, axis=1) for s in sets], axis=1)
    others = quality.sum(axis=1, keepdims=True) - quality
    merits = 0.5 * quality * (2.0 - 0.5 * others)  # alone, and beside one of the two others
    mean, sd = moments(log_likelihood(data, sets, values), merits)
    draws = posteriors.shop(data, 3, K, rng, n=2500)
    assert agree(draws, mean, sd)
    assert not agree(draws, mean + 0.3 * sd, sd)


@pytest.mark.slow  # compiling takes most of it
def test_cover():
    rng, items = np.random.default_rng(6), 3
    truth = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], bool)

    def game(covers):
        return SetFunction(lambda sets: ((sets.astype(float) @ covers) > 0).mean(axis=1), 3)

    data, sets = told(game(truth).value, 12, rng)
    worlds = np.array(list(itertools.product([0, 1], repeat=9))).reshape(-1, 3, items)
    values = np.array([game(world).value(sets) for world in worlds])
    merits = np.array([kshapley(game(world), K) for world in worlds])
    prior = posteriors._log_prior(items)[worlds.sum(axis=2)].sum(axis=1)
    mean, sd = moments(prior + log_likelihood(data, sets, values), merits)
    draws = posteriors.cover(data, 3, K, rng, n=6000, items=items)
    assert agree(draws, mean, sd)
    assert not agree(draws, mean + 0.3 * sd, sd)


def test_cascade():
    rng = np.random.default_rng(7)
    prior = posteriors.Known(np.array([0.0, 0.1, 0.3, 0.6]), np.array([1.0, 1.1, 1.3, 1.5]))
    rates, m = np.array([0.1, 0.3, 0.0]), 3
    rows = np.repeat(np.arange(len(ORDERS)), 15)
    inside = np.arange(2) < SIZES[rows][:, None]
    open_to = (1 - (SIZES[rows] - 1) / (m - 1))[:, None] * inside
    # extra nodes are not bounded by m in the sampler's model
    extra = rng.poisson((rates[ORDERS[rows]] * open_to).sum(axis=1))
    data = Told(ORDERS[rows], SIZES[rows], (SIZES[rows] + extra) / m)
    found, log_weights = [], []
    for which in itertools.product(range(4), repeat=3):
        chosen = np.maximum(prior.extra[list(which)], 1e-9)
        each = (chosen[ORDERS[rows]] * open_to).sum(axis=1)
        log_weights.append(np.sum(extra * np.log(each) - each))
        found.append(prior.merit[list(which)])
    mean, sd = moments(np.array(log_weights), np.array(found))
    draws = posteriors.cascade(data, m, prior, rng, n=6000)
    assert agree(draws, mean, sd)
    assert not agree(draws, mean + 0.3 * sd, sd)


def test_the_oracle_shows_the_sets_that_the_learner_does(tmp_path, monkeypatch):
    """Its rows of mostly full pages rest on mostly full pages."""
    seen = []

    def noted(setting, k, conclude, sizes, *_):
        seen.append(sizes)
        raise StopIteration

    monkeypatch.setattr(oracle, "reading", noted)
    preset = load_preset("rare-rewards").cut(math.inf, 1)
    for line in preset.panels[0].lines:
        only = replace(preset, panels=(replace(preset.panels[0], lines=(line,)),))
        monkeypatch.setattr(oracle, "load_preset", lambda _, only=only: only)
        with pytest.raises(StopIteration):
            oracle.keep(tmp_path, 1)
    np.testing.assert_allclose(seen[0], EvenHand(7, 6, seed=1).sizes)
    np.testing.assert_allclose(seen[1], EvenHand(7, 6, full=0.95, seed=1).sizes)

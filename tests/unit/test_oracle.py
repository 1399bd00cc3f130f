"""The oracle's posteriors, compared with those found by listing what may be true."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import covering, oracle, posteriors, unequal
from benchmarks.told import Told, members
from scipy.stats import beta, chisquare

from evenhand.games import IndependentCascade, NoisyOr, SetFunction
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


@pytest.mark.parametrize("nothing", [0.0, 0.4])
def test_shop(nothing):
    truth, n = (0.2, 0.02, 0.004 if nothing == 0.0 else 0.0), 60
    rng = np.random.default_rng(5)
    data, sets = told(NoisyOr(truth).value, n, rng)
    levels = (np.arange(60) + 0.5) / 60  # equally likely under the prior, cut ends included
    prior = posteriors.QUALITIES._replace(nothing=nothing)
    grid = np.append(np.clip(beta(prior.a, prior.b).ppf(levels), prior.low, prior.high), 0.0)
    with np.errstate(divide="ignore"):
        log_chance = np.log(np.append(np.full(60, (1.0 - nothing) / 60), nothing))
    quality = np.array(list(itertools.product(grid, repeat=3)))
    believed = np.array(list(itertools.product(log_chance, repeat=3))).sum(axis=1)
    values = np.stack([1 - np.prod(1 - quality * s, axis=1) for s in sets], axis=1)
    others = quality.sum(axis=1, keepdims=True) - quality
    merits = 0.5 * quality * (2.0 - 0.5 * others)  # alone, and beside one of the two others
    mean, sd = moments(believed + log_likelihood(data, sets, values), merits)
    n, block = (2500, 25) if nothing == 0.0 else (20000, 500)  # who brings nothing changes seldom
    draws = posteriors.shop(data, 3, K, rng, prior, n)
    assert agree(draws, mean, sd, block)
    assert not agree(draws, mean + 0.3 * sd, sd, block)


def test_a_smooth_prior_keeps_mean_and_variance():
    exact = posteriors.Known(np.array([0.0, 0.0, 0.02, 0.04, 0.1]), np.arange(5.0))
    many = posteriors.Known(np.repeat(exact.extra, 400), np.repeat(exact.merit, 400))
    smooth = posteriors.smoothed(many)
    assert smooth.extra.mean() == pytest.approx(many.extra.mean(), rel=0.01)
    assert smooth.extra.std() == pytest.approx(many.extra.std(), rel=0.02)


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
    prior = covering._log_prior(items)[worlds.sum(axis=2)].sum(axis=1)
    mean, sd = moments(prior + log_likelihood(data, sets, values), merits)
    draws = covering.cover(data, 3, K, rng, n=6000, items=items, units=items)
    assert agree(draws, mean, sd)
    assert not agree(draws, mean + 0.3 * sd, sd)


@pytest.mark.slow
def test_cover_of_items_that_weigh_differently():
    """Every table of three arms and two items, with every way to share six units of weight."""
    rng, items, units = np.random.default_rng(16), 2, 6
    truth, weights = np.array([[1, 0], [1, 1], [0, 0]], bool), np.array([1, 5])

    def game(covers, weights):
        return SetFunction(lambda sets: ((sets.astype(float) @ covers) > 0) @ weights / units, 3)

    data, sets = told(game(truth, weights).value, 12, rng)
    tables = np.array(list(itertools.product([0, 1], repeat=6))).reshape(-1, 3, items)
    worlds = [(table, np.array([n, units - n])) for table in tables for n in range(1, units)]
    values = np.array([game(*world).value(sets) for world in worlds])
    merits = np.array([kshapley(game(*world), K) for world in worlds])
    prior = covering._log_prior(items)[[table.sum(axis=1) for table, _ in worlds]].sum(axis=1)
    mean, sd = moments(prior + log_likelihood(data, sets, values), merits)
    draws = covering.cover(data, 3, K, rng, n=12000, items=items, units=units)
    assert agree(draws, mean, sd)
    assert not agree(draws, mean + 0.3 * sd, sd)


@pytest.mark.slow
def test_weight_passes_between_items_so_that_all_ways_to_share_it_stay_equally_likely():
    """Without rewards nothing says which of the ten ways it is."""
    rng, none = np.random.default_rng(8), np.zeros(0, np.int64)
    world = covering.Coverage(
        np.zeros((1, 3), bool),
        np.full(3, 2),
        np.zeros((3, 0), np.int16),
        none,
        np.zeros(2, np.int64),
        none,
        np.zeros(0),
        np.zeros(0),
    )
    flat, seen = np.zeros(7), []
    for _ in range(40000):
        covering._pass_on(world, flat, flat, rng)
        seen.append(tuple(world.weights.tolist()))
    counts = np.unique(np.array(seen[::10]), axis=0, return_counts=True)[1]
    assert counts.sum() == 4000
    assert len(counts) == 10
    assert chisquare(counts).pvalue > 1e-4
    assert chisquare(counts + np.append(np.zeros(9), 200)).pvalue < 1e-4  # negative control


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


def test_information_about_the_weights_of_items():
    """That of enumerated rewards: the mean square of the slope of their log probability."""
    covered = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], bool)
    weights, times, step = np.array([0.2, 0.1, 0.3]), np.array([5.0, 2.0, 7.0]), 1e-6
    expected = np.zeros((3, 3))
    for items, n in zip(covered, times, strict=True):
        for reward in (0.0, 1.0):

            def chance(p, items=items, reward=reward):
                return items @ p if reward else 1.0 - items @ p

            slope = [(chance(weights + e) - chance(weights - e)) / 2 for e in step * np.eye(3)]
            slope = np.array(slope) / step / chance(weights)
            expected += n * chance(weights) * np.outer(slope, slope)
    mean = covered @ weights
    none = np.zeros(3)
    unknown = unequal.Unknown(weights, covered, mean * (1.0 - mean), times, np.eye(3), none)
    assert np.allclose(unequal.information(unknown), expected, rtol=1e-6)


def test_least_misplaced_is_the_error_of_who_knows_which_arm_covers_what():
    """Of weights fitted by least squares, with the weights' true variances, to many rewards."""
    rng, k = np.random.default_rng(3), 2
    table = np.zeros((3, covering.N_ITEMS), bool)
    table[0, :6] = table[1, 4:12] = table[2, 12:15] = True  # two items are covered twice
    game = SetFunction(lambda sets: ((sets.astype(float) @ table) > 0).mean(axis=1), 3)
    merit = kshapley(game, k)
    rows = np.repeat(np.arange(len(ORDERS)), 4000)
    groups, counts = np.unique(table[:, table.any(axis=0)], axis=1, return_counts=True)
    sets = np.array([[a in o[:r] for a in range(3)] for o, r in ROWS])
    covered = (sets.astype(int) @ groups) > 0
    values = covered @ (counts / covering.N_ITEMS)
    scale = 1.0 / np.sqrt(values * (1.0 - values))
    found = []
    for _ in range(2000):
        means = rng.binomial(4000, values) / 4000
        fitted = np.linalg.lstsq(covered * scale[:, None], means * scale, rcond=None)[0]
        members = groups.sum(axis=0)
        each = np.where(members == 1, 1.0, 0.75)  # of an item that two of three arms cover
        guess = groups @ (fitted * each)
        found.append(np.abs(guess / guess.sum() - merit / merit.sum()).sum() / 2.0)
    data = Told(ORDERS[rows], SIZES[rows], np.zeros(len(rows)))
    least = unequal.least_misplaced(unequal.weights_of_items(table, data, k), rng)
    stderr = np.std(found, ddof=1) * np.sqrt(1 / len(found) + 1 / unequal.DRAWS)
    assert abs(np.mean(found) - least) < 4.0 * stderr
    assert abs(np.mean(found) - 1.3 * least) > 4.0 * stderr


def test_weights_of_arcs_are_those_of_a_cascade_that_hardly_spreads():
    game = IndependentCascade([[0, 1], [0, 2], [1, 2], [3, 0]], m=5, p=1e-5)
    data = Told(ORDERS, SIZES, np.zeros(len(ORDERS)))
    unknown = unequal.weights_of_arcs(game, data, K)
    sets = members(data, 5)
    spread = 5 * game.value(sets) - SIZES
    np.testing.assert_allclose(unknown.means @ unknown.weights, spread, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(unknown.variance, spread, rtol=1e-4, atol=1e-12)
    found = unknown.merits @ unknown.weights + unknown.known
    np.testing.assert_allclose(found - 0.2, kshapley(game, K) - 0.2, rtol=1e-3, atol=1e-12)
    assert list(unknown.weights) == pytest.approx([2e-5, 1e-5, 1e-5])

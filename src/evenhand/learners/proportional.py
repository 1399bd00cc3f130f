"""Policies in proportion to merit that leave room for uniform sets, as long as they are needed."""

import math

import numpy as np

from evenhand.checks import check_number
from evenhand.learners.learner import MAX_BATCH
from evenhand.policy import Bounds, Terms, clip_to_sum, find_scale, project
from evenhand.typing import Bools, Floats

ROOM = 0.9  # with all of it, some arm could be in uniform sets only
GROWTH = 0.01  # a policy serves this share of the queries so far


def mixing_rate(queries: int, m: int) -> float:
    """Share of uniformly drawn sets that the next policy has room for."""
    return min(0.5, (1.0 + queries / m) ** (-1.0 / 3.0))


def proportional(merit: Floats, known: Bools, k: int, mixing: float) -> Floats:
    """Marginals proportional to the merits, those below 0 counted as 0, with room for mixing.

    Arms that are not ``known`` get an even share, k/m; all do as long as most are not.
    """
    share = k / len(merit)
    low, high = mixing * share, 1.0 - mixing * (1.0 - share)
    top = max(float(merit.max()), 1e-12)  # where no merit is above 0, all arms are alike
    scores = _even_if_unknown(np.maximum(merit, 1e-9 * top), known, low, high, k)
    return clip_to_sum(scores, low, high, k)


def on_terms(
    merit: Floats, known: Bools, k: int, terms: Terms, bounds: Bounds, mixing: float
) -> Floats:
    """Marginals on terms that keep for each arm a share of what it has where all are alike.

    The terms hold, as what all would have if they were alike, e, satisfies them too: exploring
    takes the place of e, not that of K/M. But for terms, arms that are not ``known`` get K/M;
    all do as long as most are not.
    """
    even = alike(bounds, k)
    within = bounds.narrowed(mixing * even, 1.0 - mixing * (1.0 - even))
    ends = float(within.low.min()), float(within.high.max())
    return project(_even_if_unknown(terms.scores(merit), known, *ends, k), within, k)


def _even_if_unknown(scores: Floats, known: Bools, low: float, high: float, k: int) -> Floats:
    """Scores in which arms not known have what gives them k/m beside the others.

    As long as most are not known, all are alike: those few that are would share what is left on
    the strength of a reward or two.
    """
    if known.all():
        return scores
    if known.mean() <= 0.5 or not scores[known].any():
        return np.ones(len(scores))
    own, share = scores[known], k / len(scores)
    scale, _, _ = find_scale(np.maximum(own, 1e-9 * own.max()), low, high, share * len(own))
    return np.where(known, scores, share / scale)


def alike(bounds: Bounds, k: int) -> Floats:
    """What the terms give to arms of equal merit (m,)."""
    return project(np.ones(len(bounds.low)), bounds, k)


def room_for_uniform(marginals: Floats, k: int) -> float:
    """Largest share of uniformly drawn sets for which others can make up."""
    share = k / len(marginals)
    most = float(marginals.min()) / share
    if share < 1.0:
        most = min(most, (1.0 - float(marginals.max())) / (1.0 - share))
    return max(most, 0.0)


def room_for_mixing(marginals: Floats, k: int) -> float:
    """Nearly that, so that no arm is in uniform sets only."""
    return ROOM * room_for_uniform(marginals, k)


def uniform_shares(sizes: Floats, mixing: float) -> Floats:
    """Share of uniform sets among those of each size (k,), where that of all places is ``mixing``.

    Each size has as many places in uniform sets as any other, or all that it has: weights are large
    where uniform sets are few, and this makes the sum of variances over sizes nearly least.
    """
    places = sizes * np.arange(1.0, len(sizes) + 1.0)
    least_first = np.sort(places)
    rest = mixing * places.sum() - (least_first.cumsum() - least_first)
    levels = rest / np.arange(len(sizes), 0, -1)  # if those before have no others
    level = levels[np.argmax(least_first >= levels)]
    shares = np.minimum(places, level) / places
    return np.where(shares > 1.0 - 1e-9, 1.0, shares)  # hardly any others: none


def queries_to_serve(queries: int, m: int) -> int:
    """Queries that the next policy serves, after ``queries`` queries."""
    return min(max(1, m // 10, int(GROWTH * queries)), MAX_BATCH)


def miss_chance(level: float) -> float:
    """One less the level of an interval, checked."""
    alpha = 1.0 - check_number("level", level, 0.0, 1.0)
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got level={level!r}")
    return alpha


def anytime_width(level: float, told: int, m: int) -> float:
    r"""Half-width, in standard errors, of an interval that holds at whatever time one looks.

    Robbins' normal mixture: :math:`\sqrt{(1 + 1/n\rho^2) \log((1 + n\rho^2)/\alpha^2)}` after n
    rewards, tightest after some hundred of them per arm.
    """
    alpha = miss_chance(level)
    n = max(told, 1) / (100.0 * m)
    scaled = n * (math.log(1.0 / alpha**2) + math.log(1.0 + math.log(1.0 / alpha**2)))
    return math.sqrt((1.0 + 1.0 / scaled) * math.log((1.0 + scaled) / alpha**2))

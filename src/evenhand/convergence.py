"""How far shares are from what is truly due, as far as that can be known."""

from typing import NamedTuple

import numpy as np

from evenhand.account import Account
from evenhand.policy import Bounds, fair_policy, project
from evenhand.typing import Floats

DRAWS = 32  # merits that may be true


class Nearness(NamedTuple):
    """How far shares in force are from those that the true merits call for.

    Attributes
    ----------
    distance, low, high
        Share of all exposure that would have to move: its expectation, and where it lies with a
        chance of 90 %.
    ends
        (n, 2) per arm where the marginal that is truly due lies with a chance of 95 %.
    """

    distance: float
    low: float
    high: float
    ends: Floats


def nearness(account: Account, draws: int = DRAWS) -> Nearness | None:
    """Compare the shares in force with those of merits that may be true.

    Merits that may be true are drawn from their posterior: normal, with the standard errors that
    the learner claims, independent between arms; arms not seen yet are like some arm that was.
    Each draw is turned into shares on the terms that hold. Nothing can be said where no errors are
    known. In shadow mode what is compared are the shares that merits would get.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> nearness(EvenHand(m=4, k=2, seed=1).account()) is None
    True
    """
    there = ~account.paused
    merit, stderr = account.merit[there], account.stderr[there]
    known = np.isfinite(merit) & np.isfinite(stderr)
    if known.sum() < 2:
        return None
    rng = np.random.default_rng(0)  # the same at all times: differences are not noise
    merit, stderr = _like_others(merit, stderr, known, rng)
    current = (account.by_merit if account.shadow else account.due)[there]
    found = np.empty((draws, len(merit)))
    for i in range(draws):
        may_be = np.maximum(merit + stderr * rng.standard_normal(len(merit)), 0.0)
        found[i] = _shares(account, may_be, there)
    apart = 0.5 * np.abs(found - current).sum(axis=1) / account.k
    ends = np.full((len(there), 2), np.nan)
    middle, reach = found.mean(axis=0), 1.96 * found.std(axis=0)
    ends[there] = np.clip(np.column_stack([middle - reach, middle + reach]), 0.0, 1.0)
    low, high = np.quantile(apart, [0.05, 0.95])
    return Nearness(float(apart.mean()), float(low), float(high), ends)


def _like_others(
    merit: Floats, stderr: Floats, known: np.ndarray, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Give arms that were not seen the mean of those that were, and their spread as error."""
    typical, spread = merit[known].mean(), np.hypot(merit[known].std(), stderr[known].mean())
    return np.where(known, merit, typical), np.where(known, stderr, spread)


def _shares(account: Account, merit: Floats, there: np.ndarray) -> Floats:
    """Marginals that merits call for on the account's terms."""
    if not merit.any():
        merit = np.ones(len(merit))
    if account.shadow or (account.floors is None and account.power == 1.0):
        return fair_policy(merit, account.k)
    scores = (merit / merit.max()) ** account.power
    n = len(merit)
    low = np.zeros(n) if account.floors is None else account.floors[there]
    high = np.ones(n) if account.caps is None else account.caps[there]
    group = np.full(n, -1) if account.group is None else account.group[there]
    floors = np.array([one.floor for one in account.groups])
    caps = np.array([one.cap for one in account.groups])
    return project(scores, Bounds(low, high, group, floors, caps), account.k)

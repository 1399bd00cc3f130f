"""EvenHand: merit-proportional selection from small sets, without a horizon."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_number, check_vector
from evenhand.designs import ConditionalPoisson, Mixture
from evenhand.exchange.batch import Batch, Marginals
from evenhand.learners.evidence import Estimates, Forecast, Sums, absorb, estimate
from evenhand.learners.learner import MAX_BATCH, Draft, Learner, Seed
from evenhand.learners.pending import Pending
from evenhand.policy import clip_to_sum
from evenhand.typing import Floats, Ints

SINGLE = 0.6  # share of queries of one arm
GROWTH = 0.01  # a policy serves this share of the queries so far


class Diagnostics(NamedTuple):
    """How well the merits are founded.

    Attributes
    ----------
    effective_sample_size
        (k, m) by size and arm, how many equally weighted rewards the weighted ones are worth.
    largest_weight
        Largest importance weight told so far; 1 is that of a single arm.
    mixing
        Share of uniformly drawn sets.
    size_shares
        (k,) share of queries of each size.
    trust
        (m,) how far merits rest on the weighted means, which are right for any game, instead of
        the model, in [0, 1].
    curvature
        The model's gamma: 0 where worths add up, 1 for noisy-OR.
    """

    effective_sample_size: Floats
    largest_weight: float
    mixing: float
    size_shares: Floats
    trust: Floats
    curvature: float


class EvenHand(Learner):
    r"""The learner to use by default: no horizon, nothing to tune, a fraction of the regret.

    Every query is one set of a size r drawn by fixed shares; it comes from a law over r-sets whose
    marginals are :math:`\frac rK \pi`, :math:`\pi` being proportional to the merits, so that each
    query is charged :math:`\| \pi - \pi^* \|_1` whatever its size. A share
    :math:`\delta` of the sets is drawn uniformly and the others so as to make up for it,
    :math:`\pi = (1-\delta) \rho + \delta K/M`: every set has its chance, no marginal is moved, and
    exploring is free. Merits blend two estimates (:mod:`evenhand.learners.evidence`):

    * a model of three parts: what each arm brings alone, how gains shrink as sets fill up, and by
      how much more or less they do so for each arm;
    * importance-weighted means by size and arm, right for any game, trusted as far as they
      are precise and the model is seen to be wrong.

    For that, marginals stay within :math:`\delta \frac KM` and :math:`1 - \delta (1 - \frac KM)`,
    with :math:`\delta = \min(\frac12, (1 + t/M)^{-1/3})`; only arms beyond them cost anything.

    Parameters
    ----------
    m, k
        Arms and budget.
    sizes
        Shares (k,) of queries of 1, ..., k arms, all above 0; scaled to sum to 1. By default 0.6
        for one arm and the rest equally. ``np.ones(k)`` is the mix of the paper's learner.
    seed
        Seed or generator of all of the learner's randomness.

    Examples
    --------
    >>> learner = EvenHand(m=20, k=5, seed=1)
    >>> batch = learner.ask()
    >>> learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    >>> learner.merit.shape, learner.intervals().shape
    ((20,), (20, 2))
    """

    notes = ("weights",)

    def __init__(self, m: int, k: int, *, sizes: ArrayLike | None = None, seed: Seed) -> None:
        super().__init__(m, k, None, seed)
        self.sizes = _shares(self.k, sizes)
        self._sums, self._forecast = Sums.zeros(self.m, self.k), Forecast.blank(self.m, self.k)
        self._told, self._faded = 0, 0  # rewards told, and when the older ones last faded
        self._largest = 1.0
        self._mixing = self._rate()
        self._policy = np.full(self.m, self.k / self.m)
        self._pending = Pending()

    @property
    def merit(self) -> Floats:
        """Estimated merits (m,); nan for arms not yet seen."""
        return np.where(self._seen, self._estimates.merit, np.nan)

    @property
    def merit_stderr(self) -> Floats:
        """Standard errors (m,) of the merits, what the model may be wrong by included.

        An approximation. On seven games errors were 0.5 to 1.15 times what it says after 40 000
        queries, and up to 1.8 times after 4000, fewer than a hundred an arm. :meth:`intervals`
        do not use it.
        """
        return np.where(self._seen, np.sqrt(self._estimates.variance), np.nan)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        return self._policy.copy() if self._pending.left else self._proportional(self._estimates)

    def intervals(self, level: float = 0.95) -> Floats:
        r"""Intervals (m, 2) for the merits, valid at whatever time one chooses to look.

        They rest on the weighted means alone, not on the model: an asymptotic confidence sequence
        by Robbins' normal mixture. With a standard error :math:`\hat\sigma` after n rewards, the
        half-width is :math:`\hat\sigma \sqrt{(1 + 1/n\rho^2) \log((1 + n\rho^2)/\alpha^2)}`.
        Each arm's interval holds with this level, not all of them together.

        References
        ----------
        I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, "Time-uniform central
        limit theory and asymptotic confidence sequences", Annals of Statistics 52 (2024).
        """
        alpha = 1.0 - check_number("level", level, 0.0, 1.0)
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got level={level!r}")
        found = self._estimates
        n = max(self._told, 1) / (100.0 * self.m)  # tightest after some hundred rewards an arm
        scaled = n * (math.log(1.0 / alpha**2) + math.log(1.0 + math.log(1.0 / alpha**2)))
        width = math.sqrt((1.0 + 1.0 / scaled) * math.log((1.0 + scaled) / alpha**2))
        radius = width * np.sqrt(found.free_variance)
        return np.clip(np.column_stack([found.free - radius, found.free + radius]), -1.0, 1.0)

    @property
    def diagnostics(self) -> Diagnostics:
        """How well the merits are founded."""
        found, forecast = estimate(self._sums)
        total, _, squares, _ = np.moveaxis(self._sums.weighted, 2, 0)
        effective = total**2 / np.where(squares > 0.0, squares, 1.0)
        return Diagnostics(
            effective, self._largest, self._mixing, self.sizes.copy(), found.trust, forecast.gamma
        )

    @property
    def _estimates(self) -> Estimates:
        return estimate(self._sums)[0]

    @property
    def _seen(self) -> Any:
        return self._sums.weighted[:, :, 0].any(axis=0)

    def _proportional(self, found: Estimates) -> Floats:
        """Marginals proportional to the merits, within the bounds of uniform mixing."""
        rate = self._rate()
        share = self.k / self.m
        scores = np.maximum(found.merit, 1e-9 * found.merit.max())
        return clip_to_sum(scores, rate * share, 1.0 - rate * (1.0 - share), self.k)

    def _rate(self) -> float:
        """Share of uniformly drawn sets that the next policy has room for."""
        return min(0.5, (1.0 + self.queries / self.m) ** (-1.0 / 3.0))

    def _refresh(self) -> None:
        """Make a policy and draw all queries it serves."""
        found, self._forecast = estimate(self._sums)
        self._mixing = self._rate()
        self._policy = self._proportional(found)
        self._policy.flags.writeable = False  # handed out with every batch
        # reward i of n keeps weight i/n: early surprises are those of poor forecasts
        self._sums.fade((1.0 + self._faded) / (1.0 + self._told))
        self._faded = self._told
        n = min(max(1, self.m // 10, int(GROWTH * self.queries)), MAX_BATCH)
        sizes = self._rng.choice(self.k, n, p=self.sizes) + 1
        orders, weights = np.zeros((n, self.k), np.int64), np.zeros((n, self.k))
        for r in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == r)
            orders[rows, :r], weights[rows, :r] = self._draw(r, len(rows))
        self._pending = Pending(orders=orders, sizes=sizes[:, None], weights=weights)

    def _draw(self, r: int, n: int) -> tuple[Ints, Floats]:
        """Draw n sets of r arms with marginals r/K pi, and the weights of their members."""
        target = r / self.k * self._policy
        rest = np.clip((target - self._mixing * r / self.m) / (1.0 - self._mixing), 0.0, 1.0)
        design = Mixture(ConditionalPoisson.fit(rest), self._mixing)
        sets = design.sample(n, self._rng)
        return sets, design._weights(sets)

    def _ask(self, limit: int) -> Draft:
        if not self._pending.left:
            self._refresh()
        rows = self._pending.take(min(limit, MAX_BATCH, self._pending.left))
        exposure = Marginals(self._policy)
        return Draft(rows["orders"], rows["sizes"], exposure, {"weights": rows["weights"]})

    def _tell(self, batch: Batch, rewards: Floats) -> None:
        weights = batch.notes["weights"]
        self._told += absorb(
            self._sums, self._forecast, batch.orders, batch.sizes, weights, rewards
        )
        self._largest = max(self._largest, float(weights.max()))

    def _config(self) -> dict[str, Any]:
        return {"m": self.m, "k": self.k, "sizes": self.sizes.tolist()}

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        values = {"told": self._told, "faded": self._faded, "largest": self._largest}
        values |= {"gamma": self._forecast.gamma, "mixing": self._mixing}
        arrays = self._sums._asdict() | self._forecast._asdict() | {"policy": self._policy}
        arrays |= self._pending.state()
        del arrays["gamma"]
        return values, {name: array.copy() for name, array in arrays.items()}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._told, self._faded = int(values["told"]), int(values["faded"])
        self._largest, self._mixing = float(values["largest"]), float(values["mixing"])
        self._sums = Sums(*(arrays[name] for name in Sums._fields))
        worth, expected, offset = (arrays[name] for name in ("worth", "expected", "offset"))
        self._forecast = Forecast(worth, float(values["gamma"]), expected, offset)
        self._policy = arrays["policy"]
        self._pending = Pending.from_state(arrays)
        if self._pending.arrays.keys() not in ({"orders", "sizes", "weights"}, set()):
            raise ValueError(f"pending arrays are {sorted(self._pending.arrays)}")


def _shares(k: int, sizes: ArrayLike | None) -> Floats:
    """Return the shares of queries of 1..k arms, checked."""
    if sizes is None:
        rest = np.full(k, (1.0 - SINGLE) / max(1, k - 1))
        rest[0] = SINGLE if k > 1 else 1.0
        return rest
    shares = check_vector("sizes", sizes, 0.0, np.inf)
    if shares.shape != (k,):
        raise ValueError(
            f"sizes must hold k={k} shares, those of queries of 1..{k} arms, got {len(shares)}"
        )
    if not shares.all():
        r = int(np.argmin(shares)) + 1
        raise ValueError(
            f"sizes must give every size a share above 0, got 0 for sets of {r}: a merit is the "
            f"mean of gains at all sizes up to k={k}, so without sets of {r} merits are not "
            "identifiable; give them a small share, such as 0.01"
        )
    return shares / shares.sum()

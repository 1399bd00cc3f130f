"""FullSets: selection in proportion to full-set values, where only sets of K can be shown."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.estimate import Estimate
from evenhand.exchange import FullSetPlan, Roster
from evenhand.exchange.fields import ANY, Field, Fields
from evenhand.learners import full_evidence
from evenhand.learners.accounting import part_after_shrinking
from evenhand.learners.curves import Extrapolation
from evenhand.learners.drafts import Draft
from evenhand.learners.full_evidence import (
    COUNTED,
    SQUARE,
    WEIGHT,
    Conclusions,
    FullEvidence,
    shrink,
)
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.prior import Prior
from evenhand.learners.proportional import (
    alike,
    anytime_width,
    mixing_rate,
    queries_to_serve,
    room_for_mixing,
)
from evenhand.learners.termed import TermedLearner
from evenhand.policy import Bounds, Terms
from evenhand.randomness.streams import Seed
from evenhand.subsets.full_sets import coefficients
from evenhand.typing import Bools, Floats, Ints


class Diagnostics(NamedTuple):
    """How well the full-set values are founded.

    Attributes
    ----------
    effective_sample_size
        (m,) how many equally weighted sets with each arm the weighted ones are worth.
    largest_weight
        Largest importance weight of a set told so far.
    mixing
        Share of uniformly drawn sets.
    """

    effective_sample_size: Floats
    largest_weight: float
    mixing: float


class FullSets(TermedLearner[FullSetPlan]):
    r"""For those who can only ever show K arms: selection in proportion to full-set values.

    Every query is a set of exactly K arms. From such sets alone K-Shapley values cannot be known,
    so this learner does not estimate them. It estimates and follows the *full-set value*

    .. math:: \psi_a = \frac{\bar V_K}{K} + \frac{M-1}{M-K} (v^+_{aK} - \bar V_K),

    made of the mean value :math:`\bar V_K` of the K-sets and :math:`v^+_{aK}` of those with arm a:
    linear, symmetric and K-efficient as the K-Shapley value is, equal to it for additive games, but
    not 0 for an arm that never adds anything. :func:`evenhand.merit.full_set_value` computes it
    for a game that is known.

    Marginals are proportional to the values, those below 0 counted as 0, within bounds that leave
    room for a share :math:`\delta = \min(\frac12, (1 + t/M)^{-1/3})` of uniformly drawn sets; where
    the marginals have room for more of them, more are drawn, as that moves no marginal. The policy
    uses values that are steadier than the unbiased ones that :attr:`merit` shows: least squares
    where the game looks additive, and shrunk to their mean as long as they are noise
    (:mod:`evenhand.learners.full_evidence`).

    Parameters
    ----------
    m, k
        Arms, and arms in every set. With k = m there is a single set, and all arms have V / m.
    terms
        Floors, caps, groups and a power of values (:class:`~evenhand.policy.Terms`). They hold for
        the marginals of every query. Arms with a cap of 0 are paused.
    seed
        Seed or generator of all of the learner's randomness.

    Examples
    --------
    >>> learner = FullSets(m=20, k=5, seed=1)
    >>> batch = learner.ask()
    >>> batch.sizes.tolist()
    [[5], [5]]
    >>> learner.tell(batch, [0.5, 0.7])
    >>> learner.merit.shape, learner.intervals().shape, learner.extrapolate().kshapley.shape
    ((20,), (20, 2), (20,))
    """

    name = "full-sets"
    evidence: FullEvidence
    forgets_late = True  # weights of sets among other arms say nothing about sets among these

    def __init__(
        self,
        m: int,
        k: int,
        *,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        terms: Terms | Mapping[str, Any] | None = None,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, None, seed, names, rewards, empty)
        self.evidence = FullEvidence(self.m, self.k)
        # values and variances before the last change of arms, and those of paused arms
        self._before, self._away = np.zeros((0, 2)), np.zeros((0, 2))
        self._agree(terms)

    @property
    def merit(self) -> Floats:
        """Estimated full-set values (m,), not K-Shapley values; nan for arms not yet seen."""
        return self._unit * np.where(self._known, self._joined(self.evidence.estimate())[0], np.nan)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        if self.plan is not None and self._left:
            return self.plan.marginals.copy()
        return self._share_out(*self._wanted())

    def estimate(self) -> Estimate:
        """Full-set values as ``merit``, with standard errors, intervals and diagnostics.

        Values and errors are right for any game: they use no model but as a control variate.
        """
        with self._lock:
            variance = self._joined(self.evidence.estimate())[1]
            stderr = np.where(self._known, np.sqrt(variance), np.nan)
            return replace(
                super().estimate(),
                stderr=self._unit * stderr,
                intervals=self.intervals(),
                diagnostics=self._diagnostics(),
            )

    def intervals(self, level: float = 0.95) -> Floats:
        """Intervals (m, 2) for the full-set values, valid at whatever time one chooses to look.

        An asymptotic confidence sequence: it holds in the limit, where those of EvenHand are proved
        for finite samples. Each arm's interval holds with this level, not all of them together.
        """
        width = anytime_width(level, self.evidence.told, self.m)
        found = self.evidence.estimate()
        radius = width * np.sqrt(found.variance)
        ends = np.column_stack([found.value - radius, found.value + radius])
        return self._unit * np.clip(ends, -1.0, 1.0)

    def extrapolate(self) -> Extrapolation:
        """Guess K-Shapley values by a curve through the full-set values: not an estimate.

        No reward of a smaller set has been seen. The guess is right if small sets follow the
        noisy-OR curve that fits the full ones (:mod:`evenhand.learners.curves`), and nothing the
        learner sees can tell whether they do. It has no standard errors for that reason, and the
        policy does not use it.
        """
        with self._lock:
            found = self.evidence.extrapolate()
            return found._replace(
                kshapley=self._unit * np.where(self._seen, found.kshapley, np.nan),
                worth=self._unit * np.where(self._seen, found.worth, np.nan),
            )

    def _diagnostics(self) -> Diagnostics:
        sums = self.evidence.sums[:-1]
        squares = np.where(self._seen, sums[:, SQUARE], 1.0)
        mixing = mixing_rate(self.queries, self.m) if self.plan is None else self.plan.mixing
        return Diagnostics(sums[:, WEIGHT] ** 2 / squares, self.evidence.largest, mixing)

    @property
    def _seen(self) -> Bools:
        return self.evidence.sums[:-1, COUNTED] > 0.0

    @property
    def _known(self) -> Bools:
        return self._seen | np.isfinite(self._before[:, 1]) if len(self._before) else self._seen

    def _joined(self, found: Conclusions) -> tuple[Floats, Floats]:
        """Values and variances, with what was known before the last change of arms."""
        if not len(self._before):
            return found.value, found.variance
        return Prior(self._before[:, 0], np.sqrt(self._before[:, 1])).join(
            found.value, found.variance, 1.0
        )

    def _shrunk(self, found: Conclusions) -> Floats:
        return shrink(*self._joined(found)) if len(self._before) else found.shrunk

    def _wanted(self) -> tuple[Floats, float]:
        return self._shrunk(self.evidence.estimate()), mixing_rate(self.queries, self.m)

    def _background(self) -> dict[str, Any]:
        said, found = self._diagnostics(), self.evidence.estimate()
        return super()._background() | {
            "settled": part_after_shrinking(*self._joined(found)),
            "sizes": np.eye(self.k)[-1],
            "mixing": said.mixing,
            "diagnostics": {"largest_weight": said.largest_weight},
        }

    def _set_aside(self) -> tuple[Floats, Floats]:
        value, variance = self._away.T
        return self._unit * value, self._unit * np.sqrt(variance)

    def _bounds_of(self, terms: Terms, roster: Roster) -> Bounds:
        bounds = super()._bounds_of(terms, roster)
        always = alike(bounds, self.k) >= 1.0
        if self.k < roster.m and always.any():
            arm = roster.label(int(roster.ids[int(np.argmax(always))]))
            raise ValueError(
                "terms must leave every set of k a chance, as full-set values compare sets with "
                f"and without an arm, got terms by which arm {arm!r} is always shown; make the "
                "learner without it and for k - 1 arms, and show it besides"
            )
        return bounds

    def _rearrange(self, source: Ints, away: Ints) -> None:
        value, variance = self._joined(self.evidence.estimate())
        # where no reward was a surprise so far, the next one may be
        least = (coefficients(self.m, self.k)[0] / max(self.evidence.told, 1)) ** 2
        known = np.column_stack([value, np.where(variance > 1e-12, variance, least)])
        every = np.concatenate([known, self._away, [[0.0, np.inf]]])  # the last is a newcomer
        before = every[source]
        self._before = before if np.isfinite(before[:, 1]).any() else before[:0]
        self._away = every[away]
        self.evidence = FullEvidence(len(source), self.k)

    def _make_plan(self) -> tuple[FullSetPlan, int]:
        rate = mixing_rate(self.queries, self.m)
        policy = self._share_out(self._shrunk(self.evidence.renew()), rate)
        mixing = self._uniform_share(policy, rate)
        mixing = max(mixing, room_for_mixing(policy, self.k))
        plan = FullSetPlan(self._plans, self.roster.ids, self.k, policy, mixing)
        return plan, queries_to_serve(self.queries, self.m)

    def _ask(self, limit: int) -> Draft:
        return self._take(min(limit, MAX_BATCH))

    def _fields(self) -> Fields:
        fields = {f"evidence.{name}": field for name, field in full_evidence.FIELDS.items()}
        before = Field(shape=(ANY, 2), rule=lambda x: _of_arms(x, self.m))
        return fields | {"_before": before, "_away": Field(shape=(ANY, 2))}


def _of_arms(values: Floats, m: int) -> str | None:
    return None if len(values) in (0, m) else "must hold a value per arm, or none"

"""EvenHand: merit-proportional selection from small sets, without a horizon."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand.account import Noticed
from evenhand.checks import check_truth
from evenhand.estimate import Change, Estimate
from evenhand.exchange import Plan, Rows, SetPlan
from evenhand.exchange.fields import ANY, Field, Fields
from evenhand.exchange.rewards import check_rewards
from evenhand.learners import band, evidence, evidence_fields, watch
from evenhand.learners.accounting import own_part
from evenhand.learners.band import Band
from evenhand.learners.drafts import Draft
from evenhand.learners.evidence import REFIT, Evidence
from evenhand.learners.exchangeable import Recalled
from evenhand.learners.learner import MAX_BATCH
from evenhand.learners.log import logged_rows
from evenhand.learners.prior import Prior
from evenhand.learners.proportional import (
    miss_chance,
    mixing_rate,
    queries_to_serve,
    uniform_shares,
)
from evenhand.learners.sizes import size_shares
from evenhand.learners.termed import TermedLearner
from evenhand.learners.watch import SHOWN, Cut, Watch
from evenhand.policy import Terms
from evenhand.randomness.streams import Seed
from evenhand.theory import exploring
from evenhand.threads import side_by_side
from evenhand.typing import Bools, Floats, Ints


class Diagnostics(NamedTuple):
    """How well the merits are founded.

    Attributes
    ----------
    effective_sample_size
        (k, m) by size and arm, how many equally weighted rewards the weighted ones are worth.
    largest_weight
        Largest importance weight told so far; 1 is that of a single arm.
    mixing
        Share of all places that are in uniformly drawn sets.
    size_shares
        (k,) share of queries of each size.
    trust
        (m,) how far merits rest on the weighted means, which are right for any game, instead of
        the model, in [0, 1].
    curvature
        The model's gamma: 0 where worths add up, 1 for noisy-OR.
    half_life
        Rewards after which what was told counts half, where arms change little by little; infinite
        where nothing, or changes that are noticed one by one, forecast what came as well.
    """

    effective_sample_size: Floats
    largest_weight: float
    mixing: float
    size_shares: Floats
    trust: Floats
    curvature: float
    half_life: float


class EvenHand(TermedLearner[SetPlan]):
    r"""The learner to use by default: no horizon, nothing to tune, a fraction of the regret.

    Every query is one set of a size r drawn by fixed shares. Of all places an arm has the share
    :math:`\pi_a / K`, :math:`\pi` being proportional to the merits, so that each query adds
    :math:`\| \pi - \pi^* \|_1` to the fairness regret. A share :math:`\delta` of the places is in
    sets drawn uniformly, of each size alike, and the others are drawn so as to make up for it,
    :math:`\pi = (1-\delta) \rho + \delta K/M`: every set can be drawn, nobody's share is moved, and
    exploring is free. Merits rest on two estimates (:mod:`evenhand.learners.evidence`):

    * a model: what each arm brings alone, how gains shrink as sets fill up, and by how much more or
      less they do so for each arm;
    * importance-weighted means by size and arm, right for any game, smoothed over sizes as far as
      noise asks for it, and followed as far as they are precise and the model is seen to be wrong.

    This needs marginals between :math:`\delta \frac KM` and :math:`1 - \delta (1 - \frac KM)`, with
    :math:`\delta = \beta \min(\frac12, (1 + t/M)^{-1/3})`, :math:`\beta` being 1, or less on pages
    that are mostly full (:func:`evenhand.theory.exploring`); only arms whose due marginal lies
    outside add regret.

    Parameters
    ----------
    m, k
        Arms and budget.
    full
        Share of queries that show k arms, such as 0.95; half of the others show one arm.
    sizes
        Shares (k,) of queries of 1, ..., k arms, all above 0; scaled to sum to 1. By default 0.6
        for one arm and the rest equally. ``np.ones(k)`` is the mix of the paper's learner.
    names
        Names of the arms.
    rewards, empty
        Smallest and largest possible reward, and what the empty set is worth, which belongs to no
        arm. Merits, their errors and intervals are in the same units.
    prior
        Merits (m,) believed beforehand and their standard errors, (m,) or one for all, infinite
        where nothing is known; or an :class:`~evenhand.merit.Estimate`. They count as far as
        what was seen is less sure.
    terms
        Floors, caps, groups and a power of merit (:class:`~evenhand.policy.Terms`). They hold for
        the marginals of every query. Arms with a cap of 0 are paused.
    watch
        Whether to look out for changes of what arms bring (:mod:`evenhand.learners.watch`), and to
        forget what they no longer say. Intervals and the guarantee are then about the time since
        the last change that was noticed; while most arms change little by little and all that is
        known fades, there are none.
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

    name = "even-hand"
    trajectory = 15
    evidence: Evidence

    def __init__(
        self,
        m: int,
        k: int,
        *,
        full: float | None = None,
        sizes: ArrayLike | None = None,
        names: Iterable[str] | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
        prior: tuple[ArrayLike, ArrayLike] | Estimate | None = None,
        terms: Terms | Mapping[str, Any] | None = None,
        watch: bool = True,
        seed: Seed,
    ) -> None:
        super().__init__(m, k, None, seed, names, rewards, empty)
        self.full = None  # the sizes say it
        self.sizes = size_shares(self.k, full, sizes)
        self.prior = None if prior is None else Prior.of(prior, self.m)
        self.evidence = Evidence(self.m, self.k, self._low)
        self.band = Band(self.m, self.k, self.sizes, self._low)
        self.watch = check_truth("watch", watch)
        self._watch = Watch(self.m, self.k, self.sizes)
        self._changes = np.zeros((0, 3), np.int64)  # queries, arm, and kind of those noticed
        self._away = np.zeros((0, 2))  # of paused arms, merits and errors believed beforehand
        self._agree(terms)

    @property
    def merit(self) -> Floats:
        """Estimated merits (m,) in the units of rewards; nan for arms not yet seen."""
        return self._unit * np.where(self._known, self._conclude()[0], np.nan)

    @property
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,)."""
        if self.plan is not None and (self._left or self._more()):
            return self.plan.marginals.copy()
        return self._share_out(*self._wanted())

    def estimate(self) -> Estimate:
        """All that the learner has to say about the arms now, in one value.

        Standard errors are those of a posterior, and include what the model may be wrong by. On
        worlds of rare 0/1 rewards 94 to 98 % of the arms were within two of them, after 80 to
        2700 queries per arm; with 95 % full sets 91 to 99 %. Intervals do not use them.
        """
        with self._lock:
            stderr = np.where(self._known, np.sqrt(self._conclude()[1]), np.nan)
            return replace(
                super().estimate(),
                stderr=self._unit * stderr,
                intervals=self.intervals(),
                diagnostics=self._diagnostics(),
                changes=self._noticed() if self.watch else None,
            )

    def _noticed(self) -> tuple[Change, ...]:
        """Changes noticed, of arms that are still known by a name or an id."""
        label, found = self.roster.label, self._changes.tolist()
        return tuple(Change(queries, label(arm), bool(alone)) for queries, arm, alone in found)

    def intervals(self, level: float = 0.95) -> Floats:
        r"""Intervals (m, 2) for the merits, valid at whatever time one chooses to look.

        They rest on no model and on no limit theorem (``Band.radius``): for any game with rewards
        in the range given, told without selection, an arm's interval holds its merit at all times
        together with this chance. That is said of each arm; for all m together, ask for the level
        ``1 - (1 - level) / m``.
        """
        centre, radius = self.band.radius(math.log(2.0 / miss_chance(level)))
        ends = np.column_stack([centre - radius, centre + radius])
        return self._unit * np.clip(ends, -1.0, 1.0)  # gains span no more than rewards do

    def learn(self, sets: Iterable[Iterable[Any]], rewards: ArrayLike, chances: ArrayLike) -> None:
        """Learn from sets that were shown before, by any policy that drew them at random.

        What was learnt shows from the next policy on. Intervals, and the band that merits are held
        in, leave such sets out: their proofs need sets that this learner asked.

        Parameters
        ----------
        sets
            The sets, each a list of 1 to k arms that are here now, by id or by name.
        rewards
            One reward per set, nan or None where there is none.
        chances
            The chance that each set had, when it was shown, among the sets of its size. Every set
            of a size that occurs must have had one above 0, or merits are those of a smaller
            game; and it must not have depended on anything that the reward depends on as well.

        Examples
        --------
        >>> learner = EvenHand(m=4, k=2, names=["ada", "bob", "cy", "dee"], seed=1)
        >>> learner.learn([["ada"], ["bob", "dee"]], [1, 0], chances=[1 / 4, 1 / 6])  # uniform
        """
        rows = logged_rows(sets, chances, self.roster, self.k)
        values, _ = check_rewards(rewards, rows.sizes, self.rewards, self.empty)
        with self._lock:
            # each part is compared with what those before it taught: that cancels only if all of
            # them hold sets of all kinds, which those of a sorted log do not
            order, start = self._rng.permutation(len(values)), 0
            while start < len(order):
                self.evidence.renew()
                part = order[start : start + max(self.m, self.evidence.told)]
                self.evidence.absorb(rows.pick(part), values[part])
                start += len(part)
            self.evidence.due = self.evidence.told  # the next plan is to know of it

    def _diagnostics(self) -> Diagnostics:
        found = self.evidence.estimate()
        mixing = self._rate() if self.plan is None else self.plan.mixing
        return Diagnostics(
            self.evidence.effective,
            self.evidence.largest,
            mixing,
            self.sizes.copy(),
            found.trust,
            found.forecast.gamma,
            self._watch.half_life(self.evidence),
        )

    @property
    def _known(self) -> Bools:
        seen = self.evidence.known
        return seen if self.prior is None else seen | self.prior.known

    def _conclude(self) -> tuple[Floats, Floats]:
        found = self.evidence.estimate()
        return self._believed(found.merit, found.variance)

    def _believed(self, merit: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Merits and variances, with what was believed beforehand."""
        if self.prior is None:
            return merit, variance
        return self.prior.join(merit, variance, self._unit)

    def _wanted(self) -> tuple[Floats, float]:
        return self.band.hold(self._believed(*self.evidence.upcoming)[0]), self._rate()

    def _background(self) -> dict[str, Any]:
        said, (merit, variance) = self._diagnostics(), self._conclude()
        noticed = [Noticed(n, arm, bool(alone)) for n, arm, alone in self._changes.tolist()]
        return super()._background() | {
            "settled": own_part(merit, variance),
            "trust": said.trust,
            "sizes": said.size_shares,
            "mixing": said.mixing,
            "diagnostics": {
                "curvature": said.curvature,
                "largest_weight": said.largest_weight,
                **({"half_life": said.half_life} if said.half_life < np.inf else {}),
            },
            "changes": tuple(noticed) if self.watch else None,
        }

    def _set_aside(self) -> tuple[Floats, Floats]:
        *_, merit, variance, _ = self.evidence.away.T  # as columns.AXES says
        return self._unit * merit, self._unit * np.sqrt(variance)

    def _rate(self) -> float:
        """Share of uniformly drawn sets that the next policy has room for."""
        clock = self._clock
        return exploring(self.sizes, clock / self.m) * mixing_rate(clock, self.m)

    @property
    def _clock(self) -> int:
        """Queries since what is remembered of the mean arm began; rewards of logs are none."""
        return self._asked(self.evidence.age)

    def _asked(self, remembered: int) -> int:
        """Queries less what was forgotten of rewards, which may be more where logs were learnt."""
        return max(self.queries - self.evidence.told + remembered, 0)

    def _make_plan(self) -> tuple[SetPlan, int]:
        renews = self.watch and 0 < self.evidence.told >= self.evidence.due
        if renews:
            self._watch.end(self.evidence)
        merits = self._believed(*self.evidence.renew())[0]
        rate = self._rate()
        policy = self._share_out(self.band.hold(merits), rate)
        if renews:
            self._watch.mark(self.evidence)
        worth, gamma = self.evidence.forecast.worth, self.evidence.forecast.gamma
        mixing = self._uniform_share(policy, rate)
        # terms hold for sets of every size: then all have the same share of uniform ones
        same = np.full(self.k, mixing)
        uniform = uniform_shares(self.sizes, mixing) if self.terms is None else same
        law = (self._plans, self.roster.ids, self.k, policy, self.sizes, uniform)
        plan = SetPlan(*law, worth.astype(np.float32), gamma)
        return plan, self._serves()

    def _more(self, ahead: int = 0) -> int:
        """As long as the model is not fitted anew, merits stay, and so may the plan.

        Logs put that off: then for as many queries as it would serve without them.
        """
        plan, known = self.plan, self.evidence
        if plan is None or plan.number < self._since or known.told + ahead >= known.due:
            return 0
        served, most = known.age + ahead - known.faded, REFIT * (self._asked(known.youth) + ahead)
        return self._serves(ahead) if served < most else 0

    def _serves(self, ahead: int = 0) -> int:
        return queries_to_serve(self._asked(self.evidence.youth) + ahead, self.m)

    def _agree(self, given: Terms | Mapping[str, Any] | None) -> None:
        super()._agree(given)
        self.evidence.due = self.evidence.told  # no more rows of a plan on other terms

    def _rearrange(self, source: Ints, away: Ints) -> None:
        if self.watch and self.evidence.told:
            self._watch.end(self.evidence)
        self._watch.rearrange(source)
        self.evidence.rearrange(source, away)
        self._watch.mark(self.evidence)
        self.band = Band(len(source), self.k, self.sizes, self._low, self._plans)
        if self.prior is not None:
            every = np.append(np.column_stack(self.prior), self._away, axis=0)
            every = np.append(every, [[0.0, np.inf]], axis=0)  # a newcomer
            self.prior, self._away = Prior(*every[source].T), every[away]

    def _tell_late(self, plan: Plan, rows: Rows, rewards: Floats) -> None:
        self.evidence.absorb_late(rows, rewards)

    def _tell(self, kept: Recalled, rewards: Floats) -> None:
        tell = super()._tell
        side_by_side(
            lambda: tell(kept, rewards), lambda: self._tell_beside(kept, rewards), len(rewards)
        )
        if self.watch and self._watch.due(self.evidence):
            self._glance()

    def _tell_beside(self, kept: Recalled, rewards: Floats) -> None:
        """Take in rewards where the evidence does not matter."""
        for plan, places, rows in kept.parts:
            self.band.absorb(cast(SetPlan, plan), rows, rewards[places])
            if self.watch and plan.number >= self._since:
                self._watch.pairs.absorb(cast(SetPlan, plan), rows, rewards[places])

    def _glance(self) -> None:
        """Look for changes; forget what no longer holds."""
        cuts, share = self._watch.glance(self.evidence)
        if not cuts and share == 1.0:
            return
        if share < 1.0:
            self.evidence.fade(share)
        if cuts:
            self._forget(cuts)
        self._watch.mark(self.evidence)
        # what the band is about has changed
        self.band = Band(self.m, self.k, self.sizes, self._low, self._plans)

    def _forget(self, cuts: list[Cut]) -> None:
        """Forget what was known of arms that have changed, and say so."""
        self.evidence.carry()
        for cut in cuts:
            self.evidence.forget(*cut)
        ids = self.roster.ids
        noticed = [(self.queries, ids[cut.column], cut.alone is not None) for cut in cuts]
        self._changes = np.append(self._changes, noticed, axis=0)[-SHOWN:]
        self._shelf.cut(self.ledger)

    def warm(self) -> None:
        """Compile now what this learner may need later, so that no other call waits for it."""
        super().warm()
        evidence.warm()

    def _ask(self, limit: int) -> Draft:
        most = self._watch.interval(self.evidence) if self.watch else MAX_BATCH
        return self._take(min(limit, most, MAX_BATCH))

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        super()._set_parts(arrays)
        if len(self.evidence.orders) != len(self.evidence.rewards):
            raise ValueError("evidence must hold a reward per set that is kept")
        if len(self.evidence.noise) == 2:  # files from before trajectory 13 have no factor
            self.evidence.noise = np.append(self.evidence.noise, 1.0)
        seen = self._watch
        if not (
            len(seen.spans) == len(seen.ends) == len(seen.alone) == len(seen.company)
            and len(seen.pairs.spans) == len(seen.pairs.ends) == len(seen.pairs.sums)
        ):
            raise ValueError("watch must hold sums of all stretches")

    def _fields(self) -> Fields:
        parts = {
            "evidence": evidence_fields.fields(self.m, self.k),
            "band": band.FIELDS,
            "_watch": watch.fields(self.m),
        }
        fields = {f"{part}.{n}": field for part, all in parts.items() for n, field in all.items()}
        return fields | {"_away": Field(shape=(ANY, 2)), "_changes": Field(0, 2**62, (ANY, 3))}

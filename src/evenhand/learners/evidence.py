r"""What rewards of sets of every size say about merits: sums that grow.

The K-Shapley value needs the mean value :math:`v^+_{ar}` of the r-sets that hold arm a, for every
size r, and nothing else: with :math:`\bar V_r` its mean over arms,

.. math:: \phi_a = \frac1K \Bigl[ \sum_{r<K} \frac{M}{M-r} (v^+_{ar} - \bar V_r) + v^+_{aK} \Bigr],

because :math:`\bar V_r = \frac rM v^+_{ar} + (1 - \frac rM) v^-_{ar}` gives the mean over the sets
without a. Importance weights estimate :math:`v^+_{ar}` for any game whatever; a model of few
numbers (:mod:`evenhand.learners.model`) does so with less noise and some bias.
:meth:`Evidence.estimate` puts the two together, as :mod:`evenhand.learners.inference` says.
"""

from typing import Any

import numpy as np

from evenhand.exchange import Rows
from evenhand.learners import columns, inference, model
from evenhand.learners.accounting import Counted
from evenhand.learners.free import free_merits, means_by_size, renoise
from evenhand.learners.inference import Conclusions, Hyper
from evenhand.learners.intake import Means, add_rewards, linearised
from evenhand.learners.model import Forecast, Kept, Sums
from evenhand.learners.posterior import Information
from evenhand.learners.slopes import slopes
from evenhand.typing import Bools, Floats, Ints, Shorts, Singles

BLOCK = 2**13  # rows taken in at a time: what is seen of them then stays in the cache
SPACE = 2**23  # bytes of kept sets at most: of many arms they would outweigh all other memory
REFIT = 0.03  # the model is fitted anew when rewards have grown by this share: a matter of cost


class Evidence:
    """What rewards have said so far: the sums, and the forecast that they are taken in against.

    The forecast changes in :meth:`renew` alone. Rows told late are taken in against the present
    forecast, which is better than that of the plan they were drawn from.

    Attributes
    ----------
    singles
        (m, 5) per arm, over its rewards alone: 1, y, y^2, y^3 and y^4.
    weighted
        (k - 1, m, 4) per size from 2 on and arm, with w a member's weight, z the reward corrected
        by the forecast and v its variance, as the forecast has it now: w, w z, w^2 and w^2 v.
    together
        (m, 3) per arm, over the larger sets with it, e being a reward less its forecast: 1, e and
        e^2.
    orders, rewards
        The larger sets that are kept, and what they brought; behind the columns come paused arms.
    carried
        (k - 1, m, 4) like ``weighted``, but of surprises, y less its forecast, from before the last
        change of arms or of what they are worth: what is forecast now is added when merits are
        read, so that they go with the arms that there are now. Empty before the first change.
    told
        Rewards absorbed.
    start
        (m,) how many rewards had been absorbed when what is remembered of each arm began.
    away
        What is known of paused arms, a row each.
    merit, variance
        (m,) merits at the last :meth:`renew`, and their variances.
    largest
        Largest importance weight so far; 1 is that of a single arm.
    """

    def __init__(self, m: int, k: int, low: float = 0.0) -> None:
        self.m, self.k, self.low = m, k, low
        # full, not zeros: of many arms, memory is fetched now and not while rewards are told
        self.singles, self.weighted = np.full((m, 5), 0.0), np.full((k - 1, m, 4), 0.0)
        self.told, self.due, self.faded, self.largest = 0, 0, 0, 1.0
        short = np.int16 if m < 2**15 else np.int32
        nobody = np.zeros((0, k), short), np.zeros(0, np.float32)
        self._kept: list[tuple[Any, Singles]] = [nobody]
        self.keeping = 1  # 0 once enough larger sets were kept
        self.merit, self.variance = np.full(m, 0.5), np.full(m, np.inf)
        self._add(Sums.blank(m, k))
        self._use(Forecast.blank(m, k), Hyper.blank())
        self.together = np.full((m, 3), 0.0)
        self.carried, self.start = np.zeros((0, m, 4)), np.zeros(m)
        self.away = np.zeros((0, columns.width(k)))
        self._found: Conclusions | None = None

    def _add(self, sums: Sums) -> None:
        self.cells, self.curve, self.saturation, self.scatter, self.weight = sums

    def _use(self, forecast: Forecast, hyper: Hyper) -> None:
        self.worth, self.extra, self.gamma, self.noise, self.own = forecast[:5]
        self.reference, self.expected, self.met, self.edge = forecast[5:]
        self.centre, self.spread, self.extra_spread = hyper

    @property
    def orders(self) -> Shorts:
        """(n, k) members of the sets that are kept, -1 behind them."""
        return self._all_kept()[0]

    @orders.setter
    def orders(self, orders: Shorts) -> None:
        self._kept = [(orders, self.rewards)]

    @property
    def rewards(self) -> Singles:
        """(n,) their rewards."""
        return self._all_kept()[1]

    @rewards.setter
    def rewards(self, rewards: Singles) -> None:
        self._kept = [(self.orders, rewards)]

    def _all_kept(self) -> tuple[Shorts, Singles]:
        """Sets that are kept, put together when they are needed: each time copies all of them."""
        if len(self._kept) > 1:
            orders, rewards = zip(*self._kept, strict=True)
            self._kept = [(np.concatenate(orders), np.concatenate(rewards))]
        return self._kept[0]

    @property
    def sums(self) -> Sums:
        """What larger sets say about the model, those that are kept excepted."""
        return Sums(self.cells, self.curve, self.saturation, self.scatter, self.weight)

    @property
    def forecast(self) -> Forecast:
        """What sets are expected to bring."""
        own = self.worth, self.extra, self.gamma, self.noise, self.own
        return Forecast(*own, self.reference, self.expected, self.met, self.edge)

    @property
    def known(self) -> Bools:
        """(m,) whether there are rewards of sets with each arm."""
        found = self.singles[:, 0] > 0.0
        for sums in (*self.weighted, *self.carried):
            found |= sums[:, 0] > 0.0
        return found

    @property
    def effective(self) -> Floats:
        """(k, m) by size and arm, how many equally weighted rewards the weighted ones are worth."""
        every = self.weighted + self.carried if len(self.carried) else self.weighted
        larger = [s[:, 0] * (s[:, 0] / np.where(s[:, 2] > 0.0, s[:, 2], 1.0)) for s in every]
        return np.stack([self.singles[:, 0], *larger])

    @property
    def age(self) -> int:
        """How many rewards are remembered, of the mean arm."""
        return self.told - int(self.start.sum() / self.m)

    @property
    def youth(self) -> int:
        """The same as a harmonic mean, which is small as long as one arm is new."""
        if not self.start.any():
            return self.told
        return int(1.0 / np.mean(1.0 / (1.0 + self.told - self.start)))

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        self._absorb(self.weighted, self.expected, rows, rewards)

    def absorb_late(self, rows: Rows, rewards: Floats) -> None:
        """Add rewards of rows drawn before the arms changed, as if they had been told then.

        They count with the weights they were drawn with: means over sets are divided by the sum of
        weights, so that the share of sets that are possible still cancels.
        """
        self._absorb(self.carried, np.zeros_like(self.expected), rows, rewards)

    def _absorb(self, weighted: Floats, expected: Floats, rows: Rows, rewards: Floats) -> None:
        self._found = None
        sums, forecast = self.sums, self.forecast
        means = Means(self.singles, weighted, self.together, expected)
        adds = not self.keeping  # sets that are kept are added when the model is fitted
        looks = np.empty((min(len(rewards), BLOCK), self.k + 3))
        for start in range(0, len(rewards), BLOCK):
            part, given = rows.pick(slice(start, start + BLOCK)), rewards[start : start + BLOCK]
            told, largest = add_rewards(sums, means, forecast, self.low, *part, given, looks, adds)
            self.told += told
            self.largest = max(self.largest, largest)
        if self.keeping:
            large = (rows.sizes[:, 0] > 1) & ~np.isnan(rewards[:, 0])
            self._keep(rows.orders[large], rewards[large, 0])

    def _keep(self, orders: Ints | Shorts, rewards: Floats | Singles) -> None:
        short = self._kept[0][0].dtype
        self._kept.append((orders.astype(short), rewards.astype(np.float32)))

    def _close(self) -> None:
        """Keep no more larger sets if there are enough; none if far too many came at once.

        Not while rewards are taken in, so that it does not matter who takes in which.
        """
        room = min(inference.BELIEFS.kept * self.m, SPACE)
        if self.keeping and self.orders.nbytes > room:
            self.keeping = 0
            if self.orders.nbytes > 2.0 * room:
                self._add(self._linearised(self.forecast)[0])
                self.orders, self.rewards = self.orders[:0], self.rewards[:0]

    def _linearised(self, forecast: Forecast) -> tuple[Sums, Kept]:
        """Sums of the kept sets against a forecast, and what their products need."""
        orders, rewards = self.orders, self.rewards
        if orders.max(initial=0) >= self.m:  # sets with a paused arm wait for it
            here = np.all(orders < self.m, axis=1)
            orders, rewards = orders[here], rewards[here]
        return linearised(orders.astype(np.int64), rewards, forecast, self.low)

    def branch(self) -> "Evidence":
        """Return evidence of no rewards with the same forecast, to be merged into this one."""
        other = Evidence(self.m, self.k, self.low)
        other._use(self.forecast, Hyper(self.centre, self.spread, self.extra_spread))
        other.faded, other.keeping, other.due = self.faded, self.keeping, self.due
        other.carried = np.zeros_like(self.carried)
        return other

    def merge(self, other: "Evidence") -> None:
        """Add what another one absorbed against the same forecast."""
        if self.faded != other.faded or self.gamma != other.gamma:
            raise ValueError("evidence must have the same forecast to be merged; see branch")
        self._found = None
        mine = (self.singles, self.weighted, self.carried, self.together, *self.sums)
        given = (other.singles, other.weighted, other.carried, other.together, *other.sums)
        for array, more in zip(mine, given, strict=True):
            array += more
        self.told += other.told
        self.largest = max(self.largest, other.largest)
        self._keep(other.orders, other.rewards)

    def estimate(self) -> Conclusions:
        """All that follows from the sums."""
        if self._found is None:
            self._found = self._conclude()
        return self._found

    def counted(self) -> Counted:
        """Return how many rewards it rests on."""
        alone, company = self.singles[:, 0].astype(np.int64), self.together[:, 0].astype(np.int64)
        return Counted(self.told, alone, company, self.start.astype(np.int64))

    @property
    def upcoming(self) -> tuple[Floats, Floats]:
        """What :meth:`renew` would return now."""
        found = self if self.told < self.due else self.estimate()
        return found.merit, found.variance

    def renew(self) -> tuple[Floats, Floats]:
        """Take over the present forecast if there are enough new rewards.

        Returns the merits and their variances that go with it.
        """
        if self.told < self.due or not self.told:
            return self.merit, self.variance
        found = self.estimate()
        if not self.keeping:
            self._move(found.forecast)
        for sums in (self.weighted, self.carried):
            renoise(sums, found.forecast, self.forecast, self.low)
        self._use(found.forecast, found.hyper)
        if not self.keeping:
            # set i of n keeps weight i/n: early surprises are those of poor forecasts
            factor = min(1.0, (1.0 + self.faded) / (1.0 + self.age))
            self.sums.fade(factor)
        self._close()
        self.merit, self.variance = found.merit, found.variance
        self.faded, self.due = self.age, self.told + max(1, int(REFIT * self.youth))
        return self.merit, self.variance

    # ---- arms come and go ----

    def carry(self) -> None:
        """Let what larger sets said go with the forecast from here on."""
        self._found = None
        self.weighted[:, :, 1] -= self.weighted[:, :, 0] * self.expected[1:]
        self.carried = self.carried + self.weighted if len(self.carried) else self.weighted.copy()
        self.weighted[:] = 0.0
        self.due = self.told

    def rearrange(self, source: Ints, away: Ints) -> None:
        """Go on with other arms.

        ``source`` says for each column that there will be where it comes from: a column of now,
        behind those a paused arm, or -1 for a newcomer; ``away`` the same for arms paused then.
        """
        self.carry()
        old, m = self.m, len(source)
        stays = np.flatnonzero((source >= 0) & (source < old))
        leave = np.setdiff1d(np.arange(old), source[stays])
        own = columns.on_its_own(self.cells[leave], self.reference[leave])
        self._drop(leave)
        self.cells[leave] = own
        rows = np.concatenate([columns.pack(self), self.away])
        self.away = rows[away]
        places = np.full(len(rows), -1)
        known = np.flatnonzero(source >= 0)
        places[source[known]], places[away] = known, m + np.arange(len(away))
        self.orders, kept = columns.in_columns(self.orders.astype(np.int32), places)
        if m + len(away) < 2**15:
            self.orders = self.orders.astype(np.int16)
        self.rewards, self.m = self.rewards[kept], m
        columns.unpack(self, rows[source])
        self._begin(source < 0)
        self.expected = model.expectations(
            self.worth, self.extra, self.gamma, self.met, self.worth
        )[0]

    def forget(self, column: int, start: int, alone: Floats | None) -> None:
        """Forget what larger sets said of an arm; and what it brought alone but for the latest.

        ``start`` is the number of rewards told when the latest began, ``alone`` their n, y and y^2,
        or None where all of them stay. To be called after :meth:`carry`.
        """
        self.carried[:, column] = 0.0
        self._drop(np.array([column]))
        places = np.arange(self.m + len(self.away))
        places[column] = -1
        self.orders, kept = columns.in_columns(self.orders, places)
        self.rewards = self.rewards[kept]
        self.start[column] = max(self.start[column], start)
        if alone is not None:
            self.singles[column] = columns.moments(alone, self.singles[column])

    def fade(self, share: float) -> None:
        """Let all rewards so far count for less; squares of weights fade twice as fast."""
        self._found = None
        self.singles *= share
        self.together *= share
        for sums in (self.weighted, self.carried):
            sums *= np.array([share, share, share**2, share**2])
        self.sums.fade(share)
        if not self.keeping:
            gone = len(self.rewards) - int(share * len(self.rewards))  # the oldest
            self.orders, self.rewards = self.orders[gone:], self.rewards[gone:]
        self.start = self.told - share * (self.told - self.start)
        self.faded = min(self.faded, self.age)
        self.due = self.told + int(share * (self.due - self.told))

    def _drop(self, arms: Ints) -> None:
        """Take arms out of what larger sets say about the model."""
        if len(arms):
            self.cells[:, 5:] = Information(self.sums, self.reference).without(arms)
            self.cells[arms] = 0.0

    def _begin(self, new: Bools) -> None:
        """Know nothing of some arms."""
        for name, axis in columns.AXES.items():
            np.moveaxis(getattr(self, name), axis, 0)[new] = 0.0
        self.worth[new] = self.reference[new] = self.centre
        self.own[new], self.variance[new], self.start[new] = 1.0, np.inf, self.told
        self.edge[new] = 0.5
        self.merit[new] = self.merit[~new].mean() if not new.all() else 0.5

    def _move(self, forecast: Forecast) -> None:
        """Make surprises over the old forecast into those over a new one."""
        bend = np.array([forecast.gamma - self.gamma])
        step = np.concatenate([forecast.worth - self.worth, forecast.extra - self.extra, bend])
        information = Information(self.sums, self.reference)
        change = information.matrix.times(step) / information.up
        self.cells[:, 3] -= change[: self.m]
        self.cells[:, 4] -= change[self.m : -1]
        self.curve[1] -= change[-1]

    def _conclude(self) -> Conclusions:
        forecast, hyper = self.forecast, Hyper(self.centre, self.spread, self.extra_spread)
        if not self.told:
            half, never = np.full(self.m, 0.5), np.full(self.m, np.inf)
            return Conclusions(half, never, half, never, half, never, half, forecast, hyper)
        if self.keeping:
            _, _, forecast, hyper, _ = self._step(forecast, hyper)
        found, posterior, forecast, hyper, saturation = self._step(forecast, hyper)
        met = saturation[:, 1] / np.maximum(saturation[:, 0], 1.0)
        expected, merits = model.expectations(
            forecast.worth, forecast.extra, forecast.gamma, met, found
        )
        forecast = forecast._replace(expected=expected, met=met, edge=self._edge())
        means, noise = self._means(forecast)
        believed = inference.BELIEFS.curve
        shape = slopes(means, noise, forecast, posterior.variances[0], believed)
        free = free_merits(means, noise, forecast)
        return inference.weigh(forecast, hyper, merits, posterior, shape, free)

    def _edge(self) -> Floats:
        """Half a reward, of so many per arm since it began; 0 while sets can be looked at anew."""
        if self.keeping:
            return np.zeros(self.m)
        return 0.5 / (1.0 + np.maximum(self.told - self.start, 0.0) / self.m)

    def _step(self, forecast: Forecast, hyper: Hyper) -> inference.Fit:
        """Go one step from a forecast."""
        sums, kept = self._linearised(forecast)
        told = self.told, self.singles, self.together[:, 0], sums, kept, self.sums
        fit = inference.fit(*told, forecast, hyper, self.low)
        if self.keeping:
            fit = fit._replace(forecast=fit.forecast._replace(reference=fit.forecast.worth))
        return fit

    def _means(self, forecast: Forecast) -> tuple[Floats, Floats]:
        """Means of the sets of each size with an arm, without a model, and their variances."""
        sums, noises = (self.weighted, self.carried), (forecast, self.forecast)
        return means_by_size(self.singles, *sums, *noises, self.low, inference.BELIEFS.few)


def warm() -> None:
    """Take in every arm in sets of every size, so that all kernels are compiled."""
    some = Evidence(4, 3)
    orders = np.array([[a, (a + 1) % 4, (a + 2) % 4] for a in range(4)] * 3)
    sizes = np.repeat([[1], [2], [3]], 4, axis=0)
    some.absorb(Rows(orders, sizes, np.ones((12, 3))), np.full((12, 1), 0.5))
    some.renew()
    some._move(some.forecast)  # as it is done once sets are no longer kept

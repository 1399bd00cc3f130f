"""How long until shares are fair: worlds like yours, simulated before the first query is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_integer, check_number, check_vector
from evenhand.games import Redrawn, Still, World
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.learners import EvenHand
from evenhand.merit import kshapley
from evenhand.policy import fair_policy
from evenhand.randomness.streams import stream
from evenhand.simulation.interrupts import CtrlC
from evenhand.typing import Floats, Ints

SHAPE = 1.2  # of the Beta that rates follow: most arms bring little, a few bring much
PER_ARM = 2000  # queries per arm to simulate, if nothing is said
LEAST, MOST = 20_000, 200_000  # of them in all
PER_DECADE = 8  # times at which to look
LATE = 5  # of these, the last ones, from which the rest is extrapolated


@dataclass(frozen=True, slots=True)
class Outlook:
    """How far shares were from those due, in simulated worlds.

    Attributes
    ----------
    queries
        (c,) numbers of queries at which it was looked.
    distance
        (worlds, c) share of all exposure that went to the wrong arm: half the sum of absolute
        differences between the learner's marginals and those due, over k.
    within
        The distance aimed at.
    reached
        (worlds,) queries after which it stayed within; beyond the last of ``queries`` extrapolated,
        as distances fall like one over the square root. Where arms change, nan.
    changing
        Whether arms changed.
    """

    queries: Ints
    distance: Floats = field(repr=False)
    within: float
    reached: Floats
    changing: bool

    def range(self) -> tuple[float, float, float]:
        """Queries until it stays within: in one world of ten, in half of them, in nine of ten."""
        low, median, high = np.quantile(self.reached, [0.1, 0.5, 0.9])
        return float(low), float(median), float(high)

    @property
    def extrapolated(self) -> int:
        """Worlds in which it was not reached in time."""
        return int((self.reached > self.queries[-1]).sum())

    @property
    def settled(self) -> float:
        """Mean distance in the second half of the time: what remains where arms go on changing."""
        late = self.queries > self.queries[-1] / 2
        return float(self.distance[:, late].mean())


def outlook(
    m: int,
    k: int,
    rate: float | ArrayLike,
    *,
    full: float | None = None,
    within: float = 0.05,
    redraw: int | None = None,
    queries: int | None = None,
    worlds: int = 10,
    seed: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Outlook:
    """Simulate :class:`~evenhand.learners.EvenHand` in worlds like yours.

    A set brings a reward, 0 or 1, unless all its arms fail, each on its own. This is a guess about
    your world, and so is what follows from it.

    Parameters
    ----------
    m, k
        Arms, and places per page.
    rate
        Chance that an arm shown alone brings a reward: the mean over arms, of which most bring
        little and a few bring much; or (m,) one chance per arm.
    full
        Share of pages that show k arms; the learner's own sizes if not given.
    within
        Distance to reach: the share of exposure that goes to the wrong arm.
    redraw
        One arm is replaced by another, unannounced, every so many queries; never if not given.
    queries
        How many to simulate: 2000 per arm if not given, but 20 000 to 200 000.
    worlds
        How many worlds to simulate.
    seed
        Seed of everything.
    progress
        Called with the number of worlds done.

    Examples
    --------
    >>> found = outlook(m=8, k=2, rate=0.3, queries=1000, worlds=2)
    >>> low, median, high = found.range()
    >>> bool(low <= median <= high)
    True
    """
    m, k = check_budget(m, k)
    worlds, seed = check_integer("worlds", worlds, 1), check_integer("seed", seed, 0)
    within = check_number("within", within, 0.0, 1.0)
    if not within > 0.0:
        raise ValueError(f"within must be above 0, got within={within!r}: it is never reached")
    rates = _check_rate(rate, m)
    redraw = None if redraw is None else check_integer("redraw", redraw, 1)
    end = min(max(PER_ARM * m, LEAST), MOST) if queries is None else queries
    times = _times(check_integer("queries", end, 100))
    EvenHand(m, k, full=full, seed=seed)  # refuses what it cannot do before any work is done
    distance = np.empty((worlds, len(times)))
    with CtrlC() as ctrl_c:
        for i in range(worlds):
            world = _world(rates, m, redraw, seed, i)
            learner = EvenHand(m, k, full=full, seed=stream(seed, i, "learner"))
            distance[i] = _play(learner, world, times, stream(seed, i, "environment"), ctrl_c)
            if progress is not None:
                progress(i + 1)
    changing = redraw is not None
    reached = np.full(worlds, np.nan) if changing else _reached(times, distance, within)
    return Outlook(times, distance, within, reached, changing)


def _check_rate(rate: float | ArrayLike, m: int) -> Floats | float:
    if np.ndim(rate):
        rates = check_vector("rate", rate, 0.0, 1.0)
        if len(rates) != m or not rates.any():
            raise ValueError(
                f"rate must be one number, or one per arm, not all 0: m={m}, got {len(rates)}"
            )
        return rates
    mean = check_number("rate", rate, -np.inf, np.inf)
    if not 0.0 < mean < 1.0:
        raise ValueError(
            f"rate must lie strictly between 0 and 1, as 0.09 for 9 %, got rate={mean!r}"
        )
    return mean


def _draw(rate: Floats | float, m: int, rng: np.random.Generator) -> Floats:
    if isinstance(rate, np.ndarray):
        return rate
    drawn = rng.beta(SHAPE, SHAPE * (1.0 / rate - 1.0), m)
    return np.clip(drawn, rate / 20.0, 0.95)


def _world(rate: Floats | float, m: int, redraw: int | None, seed: int, i: int) -> World:
    rng = stream(seed, i, "instance")
    start = _draw(rate, m, rng)
    if redraw is None:
        return Still(BinaryNoisyOr(start))

    def replace_one(rates: Floats, rng: np.random.Generator) -> Floats:
        rates = rates.copy()
        some = rates if isinstance(rate, np.ndarray) else _draw(rate, m, rng)
        rates[rng.integers(m)] = rng.choice(some)
        return rates

    return Redrawn(BinaryNoisyOr, start, replace_one, every=redraw, seed=rng)


def _times(end: int) -> Ints:
    """When to look, ever more rarely: the last time is the end."""
    count = int(PER_DECADE * np.log10(end / 50.0)) + 1
    return np.unique(np.geomspace(50.0, end, count).astype(np.int64))


def _play(
    learner: EvenHand, world: World, times: Ints, rng: np.random.Generator, ctrl_c: CtrlC
) -> Floats:
    """Distances from what is due, at the times given."""
    found = []
    for time in times.tolist():
        while learner.queries < time:
            if ctrl_c.pressed:
                raise KeyboardInterrupt
            change = world.next_change(learner.queries)
            until = time if change is None else min(time, change)
            batch = learner.ask(until - learner.queries)
            game = world.at(learner.queries - len(batch.orders))
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        due = fair_policy(kshapley(world.at(learner.queries), learner.k), learner.k)
        found.append(np.abs(learner.marginals - due).sum() / (2.0 * learner.k))
    return np.array(found)


def _reached(times: Ints, distance: Floats, within: float) -> Floats:
    """From when on each distance stays within, by the inverse square root after the last time."""
    result = np.empty(len(distance))
    for i, row in enumerate(distance):
        above = np.flatnonzero(row > within)
        if not len(above):
            result[i] = times[0]
        elif above[-1] < len(times) - 1:
            result[i] = times[above[-1] + 1]
        else:
            late = np.log(times[-LATE:]) + 2.0 * np.log(row[-LATE:] / within)
            result[i] = np.exp(max(late.mean(), late[-1]))  # not before the last time
    return result

"""How far EvenHand is from the best forecast: the same learner with the true V as its forecast.

    python -m benchmarks.limit --replications 10 --seed 23

Sizes, schedule, mixing and policy are EvenHand's; the free merits have z = y - V(S) + E[V | a, r],
so that all that is left in them is the noise of rewards, weighted by how the sets were drawn. These
are the merits of :class:`Limit`. Weights are not needed where V is known, and :class:`Unweighted`
does without; :class:`WithModel` puts the free merits together with the model's, as EvenHand does.
:class:`Knowing` knows the merits themselves, so that it pays for nothing but the room that uniform
sets take. All play the same instances with the same streams. Sets of the small games are listed; on
the Facebook graph V comes from a sample (:mod:`benchmarks.spread`).
"""

import argparse
import sys
from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np

from benchmarks.deployments import World
from benchmarks.harness import number, plain_table
from benchmarks.spread import Spread
from evenhand import simulate
from evenhand.exchange import Rows
from evenhand.games import Game, IndependentCascade
from evenhand.lab.cells import fair_reward
from evenhand.lab.games import build_game
from evenhand.lab.ratios import log_ratio
from evenhand.learners import EvenHand
from evenhand.learners.evidence import Evidence
from evenhand.learners.free import free_merits
from evenhand.learners.inference import Conclusions, Hyper
from evenhand.learners.intake import Means, add_rewards
from evenhand.learners.model import Forecast
from evenhand.policy import fair_policy
from evenhand.randomness.streams import Seed, stream
from evenhand.subsets.combinations import all_sets
from evenhand.typing import Bools, Floats, Ints, compiled

GAMES = {
    "synthetic, M=20": World({"kind": "synthetic", "m": 20}, 5),
    "coverage, M=30": World({"kind": "drawn", "family": "coverage", "m": 30}, 5),
    "additive, M=30": World({"kind": "drawn", "family": "additive", "m": 30}, 5),
    "best member, M=20": World({"kind": "drawn", "family": "best-member", "m": 20}, 5),
    "hidden pair, M=20": World({"kind": "drawn", "family": "hidden-pair", "m": 20}, 5),
    "Facebook as listed": World({"kind": "facebook"}, 10),
    "Facebook both ways": World({"kind": "facebook", "both_ways": True}, 10),
}
HEAD = ["game", "T", "n", "regret of the limit", "of EvenHand"]
HEAD += ["EvenHand / limit", "/ unweighted", "/ with the model"]
WHO = ["the limit", "unweighted", "with the model", "knowing the merits", "EvenHand"]
MORE = ["game", "T", "who", "regret", "over EvenHand's", "reward over the fair policy's"]


class Truth(NamedTuple):
    """A game's values of all sets of at most k arms.

    Attributes
    ----------
    choose
        (m + 1, k + 1) binomial coefficients, by which sets are ranked.
    starts
        (k,) where the sets of each size begin in
    values
        those of all sets, size after size, by rank.
    expected
        (k, m) mean over the sets of each size with an arm.
    """

    choose: Ints
    starts: Ints
    values: Floats
    expected: Floats

    @classmethod
    def of(cls, game: Game, k: int) -> "Truth":
        """List all sets and value them."""
        m = game.m
        choose = np.array([[comb(n, r) for r in range(k + 1)] for n in range(m + 1)])
        starts = np.concatenate([[0], np.cumsum(choose[m, 1:])])[:-1]
        values, expected = np.empty(choose[m, 1:].sum()), np.empty((k, m))
        for r in range(1, k + 1):
            sets = all_sets(m, r)
            inside = np.zeros((len(sets), m), np.bool_)
            np.put_along_axis(inside, sets, True, axis=1)
            found = game.value(inside)
            values[places(sets, np.full(len(sets), r), choose, starts)] = found
            expected[r - 1] = found @ inside / comb(m - 1, r - 1)
        return cls(choose, starts, values, expected)

    def look(self, orders: Ints, sizes: Ints) -> Floats:
        """V of the first arms of each row."""
        return self.values[places(orders, sizes, self.choose, self.starts)]


@compiled
def places(orders: Ints, sizes: Ints, choose: Ints, starts: Ints) -> Ints:
    """Where the values of sets stand: a set's rank is the sum of C(a, 1 + members below a)."""
    found = np.empty(len(orders), np.int64)
    for i in range(len(orders)):
        r = sizes[i]
        place = starts[r - 1]
        for j in range(r):
            below = 0
            for other in range(r):
                if orders[i, other] < orders[i, j]:
                    below += 1
            place += choose[orders[i, j], below + 1]
        found[i] = place
    return found


class KnownValues(Evidence):
    """Evidence whose forecast is the truth, and whose merits are the free ones alone.

    Its sums are the learner's own, of rewards less what sets are truly worth. Where nothing was
    seen of an arm at some size, the truth stands in.
    """

    def __init__(self, truth: Truth | Spread) -> None:
        k, m = truth.expected.shape
        super().__init__(m, k)
        self.truth = truth
        # plans carry worths for the band, whose centre is noisy without a forecast
        known = self.forecast._replace(worth=truth.expected[0], expected=truth.expected)
        self._use(known, Hyper(self.centre, self.spread, self.extra_spread))

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        self._found = None
        sizes = rows.sizes[:, 0]
        # arms worth nothing are forecast to bring nothing, so that rewards of larger sets are to
        # be surprises already; there is no model of noise
        nothing = Forecast.blank(self.m, self.k)._replace(worth=np.zeros(self.m))
        surprises = rewards[:, 0] - self.truth.look(rows.orders, sizes)
        given = np.where(sizes > 1, surprises, rewards[:, 0])[:, None]
        means = Means(self.singles, self.weighted, self.together, self.expected)
        looks = np.empty((len(sizes), self.k + 3))
        told, largest = add_rewards(self.sums, means, nothing, 0.0, *rows, given, looks, False)
        self.told += told
        self.largest = max(self.largest, largest)

    def _conclude(self) -> Conclusions:
        free = free_merits(*self._means(self.forecast), self.forecast).merit
        unknown = np.full(self.m, np.nan)  # variances: there is no model of noise
        hyper = Hyper(self.centre, self.spread, self.extra_spread)
        return Conclusions(free, unknown, free, unknown, free, unknown, free, self.forecast, hyper)


class WithoutWeights(KnownValues):
    """The same with plain means."""

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        super().absorb(rows._replace(weights=np.ones(rows.orders.shape)), rewards)


class BesideModel(Evidence):
    """The learner's evidence, model and all, but with free merits whose forecast is the truth."""

    def __init__(self, truth: Truth | Spread) -> None:
        k, m = truth.expected.shape
        super().__init__(m, k)
        self.beside = KnownValues(truth)

    def absorb(self, rows: Rows, rewards: Floats) -> None:
        """Add the rewards (n, 1) of rows of one set each, skipping nan."""
        super().absorb(rows, rewards)
        self.beside.absorb(rows, rewards)

    def _means(self, forecast: Forecast) -> tuple[Floats, Floats]:
        """Those over the truth, with the variances that the learner's own have."""
        own = self.weighted
        self.weighted = own.copy()
        self.weighted[:, :, 1] = self.beside.weighted[:, :, 1]
        found = super()._means(forecast._replace(expected=self.beside.truth.expected))
        self.weighted = own
        return found


class Limit(EvenHand):
    """EvenHand with the free merits of the true V alone."""

    kind: Callable[[Truth | Spread], Evidence] = KnownValues

    def __init__(self, truth: Truth | Spread, *, full: float | None = None, seed: Seed) -> None:
        k, m = truth.expected.shape
        super().__init__(m, k, full=full, seed=seed)
        self.evidence = self.kind(truth)


class Unweighted(Limit):
    """The same with means that need no weights, as surprises over the truth have mean 0."""

    kind = WithoutWeights


class WithModel(Limit):
    """EvenHand with the true V as the forecast of its free merits.

    It does not look out for changes, as what it has beside its own sums would not be forgotten
    with them: after a false alarm the two would no longer fit together.
    """

    kind = BesideModel

    def __init__(self, truth: Truth | Spread, *, full: float | None = None, seed: Seed) -> None:
        super().__init__(truth, full=full, seed=seed)
        self.watch = False


class Knowing(EvenHand):
    """EvenHand that knows all merits, and still leaves room for uniform sets."""

    def __init__(self, merit: Floats, k: int, *, full: float | None = None, seed: Seed) -> None:
        super().__init__(len(merit), k, full=full, seed=seed)
        self.true = merit

    @property
    def _known(self) -> Bools:
        return np.ones(self.m, np.bool_)

    def _believed(self, merit: Floats, variance: Floats) -> tuple[Floats, Floats]:
        return self.true, np.zeros_like(variance)


LIMITS = (Limit, Unweighted, WithModel)


class Found(NamedTuple):
    """What those of ``WHO`` had: regret (5, n, marks), and reward (5, n) over the fair policy's."""

    regret: Floats
    reward: Floats


def truth_of(game: Game, k: int) -> Truth | Spread:
    """Values of all sets of at most k arms."""
    return Spread.of(game, k) if isinstance(game, IndependentCascade) else Truth.of(game, k)


def played(world: World, marks: list[int], n: int, seed: int, full: float | None = None) -> Found:
    """Let all of them play the same games with the same streams."""
    k, before, truth = world.k, None, None
    found = Found(np.empty((len(WHO), n, len(marks))), np.empty((len(WHO), n)))
    for r in range(1, n + 1):
        setting = build_game(world.game, k, replication=r, seed=seed)
        game, merit = setting.game, np.maximum(setting.known.merit, 0.0)
        if truth is None or game is not before:  # a graph is the same for all replications
            before, truth = game, truth_of(game, k)
        target = fair_policy(merit, k)
        made: list[EvenHand] = [
            make(truth, full=full, seed=stream(seed, r, "learner")) for make in LIMITS
        ]
        made.append(Knowing(merit, k, full=full, seed=stream(seed, r, "learner")))
        made.append(EvenHand(game.m, k, full=full, seed=stream(seed, r, "learner")))
        fair = fair_reward(setting, made[-1], max(marks), stream(seed, r, "reference"))
        assert fair is not None
        for i, learner in enumerate(made):
            noise = stream(seed, r, "environment")
            run = simulate(learner, game, max(marks), target=target, seed=noise, checkpoints=marks)
            found.regret[i, r - 1] = run.regret
            found.reward[i, r - 1] = run.reward / fair
            said = ", ".join(f"{x:.4g}" for x in run.regret)
            print(f"{r}: {WHO[i]}: {said}; {run.reward / fair:.4f}", file=sys.stderr, flush=True)
    return found


def lines(name: str, marks: list[int], found: Found) -> list[list[str]]:
    """A line of the table per mark."""
    n, shown = found.regret.shape[1], []
    for j, mark in enumerate(marks):
        *limits, _, ours = found.regret[:, :, j]
        both = limits[0], ours
        means = (f"{number(x.mean())} ± {number(x.std(ddof=1) / n**0.5)}" for x in both)
        ratios = (log_ratio(ours, x) for x in limits)
        times = (f"{np.exp(x.value):.2f} ± {100 * x.stderr:.0f} %" for x in ratios)
        shown.append([name, f"{mark:.0e}", str(n), *means, *times])
    return shown


def more_lines(name: str, mark: int, found: Found) -> list[list[str]]:
    """A line for each of them, at the last mark."""
    shown, n = [], found.regret.shape[1]
    for who, regret, reward in zip(WHO, found.regret[:, :, -1], found.reward, strict=True):
        ratio = log_ratio(regret, found.regret[-1, :, -1])
        had = f"{number(regret.mean())} ± {number(regret.std(ddof=1) / n**0.5)}"
        times = f"{np.exp(ratio.value):.2f} ± {100 * ratio.stderr:.0f} %"
        earned = f"{reward.mean():.4f} ± {reward.std(ddof=1) / n**0.5:.4f}"
        shown.append([name, f"{mark:.0e}", who, had, times, earned])
    return shown


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    parser.add_argument("--marks", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--replications", type=int, default=10, help="at least 2")
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--full", type=float, help="share of full sets, if not the default sizes")
    given = parser.parse_args()
    marks, rows, more = sorted(map(round, given.marks)), list[list[str]](), list[list[str]]()
    for name in given.games:
        found = played(GAMES[name], marks, given.replications, given.seed, given.full)
        rows += lines(name, marks, found)
        more += more_lines(name, marks[-1], found)
    print(plain_table(HEAD, rows), plain_table(MORE, more), sep="\n\n")


if __name__ == "__main__":
    main()

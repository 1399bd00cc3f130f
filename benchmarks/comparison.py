"""Evenhand and what people would otherwise use for the same job: one table, one command.

    python -m benchmarks.comparison --worlds 10 --pages 60000

A shop window with 40 sellers and 6 places (:func:`evenhand.games.shop`): a visitor buys something
or not, and nobody knows because of whom. Other tools want a reward per arm: the usual way out is
to split it among those shown. Every contender shows six sellers on every page, but for EvenHand,
whose rows say how many pages are full. Worlds and purchases are paired: contenders meet the same
sellers. MABWiser (PyPI) is a row if it is installed.
"""

import argparse
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.harness import plain_table
from evenhand import fair_policy
from evenhand.exchange import Batch
from evenhand.games import Redrawn, Still, World, shop
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.learners import EvenHand, FullSets
from evenhand.randomness.streams import stream
from evenhand.typing import Bools, Floats, Ints

M, K, SEED = 40, 6, 41
BATCH = 100  # pages between two updates of those who cannot say it themselves
SMALL = 0.02  # marginals below which an arm is left out of "worst served"

try:
    from mabwiser.mab import MAB, LearningPolicy
except ImportError:
    MAB = None


class Contender(Protocol):
    """Chooses pages and hears what they brought."""

    def show(self, n: int) -> Ints:
        """Return (n, K) sellers, -1 where a place is left empty; fewer rows if it likes."""

    def hear(self, bought: Floats) -> None:
        """Hear (n,) what these pages brought."""


class Uniform:
    """Six at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def show(self, n: int) -> Ints:
        return self.rng.random((n, M)).argpartition(K, axis=1)[:, :K]

    def hear(self, bought: Floats) -> None: ...


class SplitCredit(Uniform):
    """Sums of rewards, each split among the sellers shown."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.credit, self.times = np.ones(M), np.full(M, float(K))
        self.orders = np.zeros((0, K), np.int64)

    def keep(self, orders: Ints) -> Ints:
        """Remember what was shown."""
        self.orders = orders
        return orders

    def hear(self, bought: Floats) -> None:
        self.times += np.bincount(self.orders.ravel(), minlength=M)
        self.credit += np.bincount(self.orders.ravel(), np.repeat(bought / K, K), M)


class EpsilonGreedy(SplitCredit):
    """The six of most credit per showing; one page in ten at random."""

    def show(self, n: int) -> Ints:
        best = np.argsort(-self.credit / self.times)[:K]
        orders = super().show(n)
        orders[self.rng.random(n) > 0.1] = best
        return self.keep(orders)


class Thompson(SplitCredit):
    """Six of largest draw from Beta posteriors of single sellers."""

    def show(self, n: int) -> Ints:
        missed = np.maximum(self.times - self.credit, 1.0)
        drawn = self.rng.beta(self.credit, missed, (n, M))
        return self.keep(np.argpartition(-drawn, K, axis=1)[:, :K])


class WeightedChoice(SplitCredit):
    """rng.choice without replacement, weighted by credit per showing."""

    def show(self, n: int) -> Ints:
        p = self.credit / self.times
        p /= p.sum()
        pages = [self.rng.choice(M, K, replace=False, p=p) for _ in range(n)]
        return self.keep(np.array(pages))


class Quotas(WeightedChoice):
    """Shares by credit after 5000 random pages, then fixed for good."""

    heard = 0

    def show(self, n: int) -> Ints:
        return super().show(n) if self.heard >= 5000 else self.keep(Uniform.show(self, n))

    def hear(self, bought: Floats) -> None:
        if self.heard < 5000:
            super().hear(bought)
        self.heard += len(bought)


class Mabwiser(SplitCredit):
    """MABWiser's Thompson sampling, the six of largest expectation."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.mab = MAB(list(range(M)), LearningPolicy.ThompsonSampling(), seed=int(rng.integers(9)))
        self.mab.fit(np.arange(M), np.zeros(M))

    def show(self, n: int) -> Ints:
        said = (self.mab.predict_expectations() for _ in range(n))
        return self.keep(np.array([sorted(e, key=e.get, reverse=True)[:K] for e in said]))

    def hear(self, bought: Floats) -> None:
        # it takes rewards of 0 or 1: a sixth of one is one in six times
        ones = self.rng.random((len(bought), K)) < bought[:, None] / K
        self.mab.partial_fit(self.orders.ravel(), ones.ravel().astype(float))


class Learner:
    """A learner of Evenhand."""

    def __init__(self, learner: EvenHand | FullSets) -> None:
        self.learner = learner
        self.batch: Batch | None = None

    def show(self, n: int) -> Ints:
        self.batch = self.learner.ask(n)
        return self.batch.orders

    def hear(self, bought: Floats) -> None:
        assert self.batch is not None
        self.learner.tell(self.batch, bought[:, None])


Make = Callable[[np.random.Generator], Contender]
CONTENDERS: dict[str, Make] = {
    "uniform": Uniform,
    "quotas fixed after 5000 pages": Quotas,
    "weighted choice, split credit": WeightedChoice,
    "epsilon-greedy, split credit": EpsilonGreedy,
    "Thompson sampling, split credit": Thompson,
    "MABWiser, Thompson sampling": Mabwiser,
    "EvenHand, as it comes": lambda rng: Learner(EvenHand(M, K, seed=rng)),
    "EvenHand, 95 % full pages": lambda rng: Learner(EvenHand(M, K, full=0.95, seed=rng)),
    "FullSets": lambda rng: Learner(FullSets(M, K, seed=rng)),
}


class Outcome(NamedTuple):
    """What the second half of the pages brought, and to whom it went."""

    reward: float
    off: float
    worst: float


def play(contender: Contender, world: World, pages: int, rng: np.random.Generator) -> Outcome:
    """Show so many pages; judge the second half."""
    given, due, bought, full, done = np.zeros(M), np.zeros(M), 0.0, 0, 0
    while done < pages:
        change = world.next_change(done)
        left = min(BATCH, pages - done, pages if change is None else change - done)
        orders = contender.show(left)
        sizes = (orders >= 0).sum(axis=1)[:, None]
        game = world.at(done)
        rewards = game.pull(orders, sizes, rng)[:, 0]
        contender.hear(rewards)
        if done >= pages // 2:
            given += np.bincount(orders[orders >= 0], minlength=M)
            due += len(orders) * fair_policy(game.kshapley(K), K)  # type: ignore[attr-defined]
            whole = sizes[:, 0] == K
            bought, full = bought + rewards[whole].sum(), full + int(whole.sum())
        done += len(orders)
    given, due = given / given.sum(), due / due.sum()
    some: Bools = due > SMALL / K
    return Outcome(bought / full, 0.5 * np.abs(given - due).sum(), (given / due)[some].min())


def still(world: int) -> World:
    """Make a shop that stays as it is."""
    return Still(shop(M, stream(SEED, world, "instance")))


def drifting(world: int) -> World:
    """Make a shop in which every 5000 pages four sellers are others, unannounced."""
    rng = stream(SEED, world, "instance")

    def redraw(rates: Floats, rng: np.random.Generator) -> Floats:
        rates = rates.copy()
        rates[rng.choice(M, 4, replace=False)] = _rates(4, rng)
        return rates

    return Redrawn(BinaryNoisyOr, _rates(M, rng), redraw, every=5000, seed=rng)


def _rates(m: int, rng: np.random.Generator) -> Floats:
    """What sellers of a shop sell alone."""
    return shop(m, rng).value(np.eye(m, dtype=bool))


def lines(make: Any) -> str:
    """How many lines one has to write, with what it is built on here."""
    if not inspect.isclass(make):
        return "4"
    parts = [one for one in make.__mro__ if one is not object]
    source = "\n".join(inspect.getsource(one) for one in parts).splitlines()
    return str(sum(bool(line.strip()) and '"""' not in line for line in source))


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--pages", type=float, default=6e4)
    given = parser.parse_args()
    head = ["", "purchases per full page", "exposure off what is due", "worst served", "lines"]
    for title, make_world in (("still", still), ("every 5000 pages four others", drifting)):
        rows = []
        for name, make in CONTENDERS.items():
            if make is Mabwiser and MAB is None:
                continue
            found = [
                play(
                    make(stream(SEED, w, "learner")),
                    make_world(w),
                    int(given.pages),
                    stream(SEED, w, "environment"),
                )
                for w in range(given.worlds)
            ]
            reward, off, worst = np.mean(found, axis=0)
            error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
            rows.append(
                [
                    name,
                    f"{reward:.3f} ± {error[0]:.3f}",
                    f"{off:.1%} ± {error[1]:.1%}",
                    f"{worst:.2f} ± {error[2]:.2f}",
                    lines(make),
                ]
            )
            print(f"  {title}: {name} done", flush=True)
        print(f"\n{title}, {given.worlds} worlds, {int(given.pages)} pages\n")
        print(plain_table(head, rows), flush=True)


if __name__ == "__main__":
    main()

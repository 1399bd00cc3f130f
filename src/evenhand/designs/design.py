"""What every design offers: a law over K-sets of arms."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.checks import as_integers, check_integer, check_memory, check_rng, first_bad_query
from evenhand.designs.pairs import PairMarginals, listed_pairs
from evenhand.display import html_table, span
from evenhand.randomness.alias import alias_bits, draw_alias
from evenhand.randomness.splitmix import draw_row_word, shuffle_row, start_row, uniform
from evenhand.subsets.combinations import all_orders, all_sets, count_sets, log_comb
from evenhand.typing import Floats, Ints, Words, compiled

BLOCK = 2**16  # more draws than this are counted at once where the sets can be listed
MAX_ORDERED = 7  # sets of up to so many arms are put in order by a table of all their orders
MAX_SETS = 10**6  # listed for what has no closed form
MAX_COUNT = 2**63 - 1  # counts are 64-bit integers


class Design(ABC):
    """A law over the K-subsets of m arms with known marginals.

    Attributes
    ----------
    m, k
        Arms, and arms in a set.
    marginals
        (m,) how often each arm is in a set; sums to k.
    names
        Labels of the arms, from :meth:`named`, or None.

    Examples
    --------
    >>> from evenhand.designs import Uniform
    >>> design: Design = Uniform(4, 2)
    >>> design
    Uniform(m=4, k=2, marginals=0.5)
    >>> sets, times = design.tally(1000, np.random.default_rng(1))
    >>> len(sets), int(times.sum())
    (6, 1000)
    """

    m: int
    k: int
    marginals: Floats
    names: tuple[str, ...] | None = None

    def named(self, names: Iterable[str]) -> Self:
        """Return the same design with labels of its arms.

        Examples
        --------
        >>> from evenhand.designs import Uniform
        >>> design = Uniform(3, 2).named(["north", "south", "west"])
        >>> design.label([[0, 2]]), design.unlabel(["west"])
        (array([['north', 'west']], dtype='<U5'), array([2]))
        """
        if isinstance(names, str):
            raise TypeError(f"names must be a list of labels, got {names!r}")
        labels = tuple(str(name) for name in names)
        if len(labels) != self.m or len(set(labels)) != self.m:
            raise ValueError(
                f"names must be {self.m} different labels, one per arm, got {len(labels)} of which "
                f"{len(set(labels))} are different"
            )
        other = copy(self)
        other.names = labels
        return other

    def label(self, arms: ArrayLike) -> NDArray[Any]:
        """Labels of arms, such as those of drawn sets; the arms themselves if they have none."""
        rows = as_integers("arms", arms)
        return rows if self.names is None else np.array(self.names)[rows]

    def unlabel(self, labels: ArrayLike) -> Ints:
        """Return the arms with these labels."""
        place = {name: arm for arm, name in enumerate(self.names or ())}
        given = np.asarray(labels)
        unknown = [one for one in given.reshape(-1).tolist() if one not in place]
        if unknown:
            raise ValueError(f"labels must be names of the design, got {unknown[0]!r}")
        return np.array([place[one] for one in given.reshape(-1).tolist()]).reshape(given.shape)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}(m={self.m}, k={self.k}, marginals={span(self.marginals)})"

    def _repr_html_(self) -> str:
        return html_table(
            {"arm": self.label(np.arange(self.m)), "marginal": self.marginals}, self.m
        )

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets (n, k), each in uniformly random order."""
        n = check_integer("n", n, 0)
        if n * self.k > BLOCK:
            check_memory(f"n={n} sets of {self.k} arms", 8 * self.k * n)
        return self._sample(n, check_rng(rng))

    @property
    def listed(self) -> tuple[Ints, Floats] | None:
        """All sets that can be drawn, with their probabilities, where they are few enough."""
        return None

    def tally(self, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw n sets and count equal ones: sets (d, k), and how often each was drawn (d,).

        The counts have exactly the law of n independent draws. Up to 65536 draws are made and
        counted; more are one multinomial draw where all sets can be listed. Where there are no
        fewer different sets than draws, equal draws are not added up, and rows may repeat.
        """
        n = check_integer("n", n, 0)
        check_rng(rng)
        if n > MAX_COUNT:
            raise ValueError(f"n must be below 2^63, as counts are 64-bit integers, got n={n}")
        if n > BLOCK and self.listed is not None:
            sets, probabilities = self.listed
            times = rng.multinomial(n, probabilities / probabilities.sum())
            return sets[times > 0], times[times > 0]
        distinct = count_sets(self.m, self.k, max(n, 1))
        check_memory(f"counting n={n} sets of {self.k} arms", 8 * (self.k + 1) * min(n, distinct))
        sets, times = np.empty((0, self.k), np.int64), np.empty(0, np.int64)
        for start in range(0, n, BLOCK):
            drawn = self._sample_alike(min(BLOCK, n - start), rng)
            sets = np.concatenate([sets, np.sort(drawn, axis=1)])
            times = np.concatenate([times, np.ones(len(drawn), np.int64)])
            if distinct < n:
                sets, times = merge(sets, times, self.m)
        return sets, times

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Ints: ...

    def _sample_alike(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n sets; the first j of them do not depend on n."""
        return self._sample(n, rng)


class ExplicitDesign(Design, PairMarginals):
    """A design that knows how likely each set is, so that learners can learn from its draws."""

    def entropy(self) -> float:
        """Entropy of the law, in nats; by listing all sets where there is no better way.

        Examples
        --------
        >>> from evenhand.designs import Uniform
        >>> round(float(np.exp(Uniform(5, 2).entropy())), 6)  # as of so many equally likely sets
        10.0
        """
        _, chances = self._listed_law("entropy")
        possible = chances[chances > 0.0]
        return float(-(possible * np.log(possible)).sum())

    def _listed_law(self, what: str) -> tuple[Ints, Floats]:
        """All sets and their probabilities, up to a million sets."""
        if count_sets(self.m, self.k, MAX_SETS) > MAX_SETS:
            raise ValueError(
                f"{what} of {type(self).__name__} lists all sets, at most {MAX_SETS:,}, got m="
                f"{self.m} and k={self.k}; draw sets, and take the mean of what you need"
            )
        sets = all_sets(self.m, self.k)
        return sets, np.exp(self._log_prob(sets))

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        return listed_pairs(*self._listed_law("pair marginals"), self.m)[first, second]

    def log_prob(self, sets: ArrayLike) -> Floats:
        """Log-probability (n,) of the sets (n, k) given as rows of arms in any order."""
        return self._log_prob(self._check_rows(sets))

    def weights(self, sets: ArrayLike) -> Floats:
        r"""Importance weights (n, k) of the members of sets (n, k) that can be drawn.

        .. math:: w(a, S) = q_a \Big/ \Bigl( \binom{M-1}{K-1} P(S) \Bigr)

        is the chance of S among the K-sets with a when all are equally likely, over that when they
        are drawn by the design. A weighted mean over drawn sets with a is an unbiased estimate of
        the mean over all of them.

        Examples
        --------
        >>> from evenhand.designs import Uniform
        >>> Uniform(4, 2).weights([[0, 3]]).round(12)
        array([[1., 1.]])
        """
        return self._weights(self._check_rows(sets))

    def _check_rows(self, sets: ArrayLike) -> Ints:
        """Return sets as rows of k distinct arms."""
        rows = as_integers("sets", sets)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise ValueError(f"sets must have shape (n, {self.k}), got {rows.shape}")
        bad, _ = first_bad_query(rows, np.full((len(rows), 1), self.k), self.m)
        if bad >= 0:
            raise ValueError(
                f"sets must hold distinct arms in 0..{self.m - 1}, "
                f"got row {bad}: {rows[bad].tolist()}"
            )
        return rows

    @abstractmethod
    def _log_prob(self, rows: Ints) -> Floats: ...

    def _weights(self, rows: Ints) -> Floats:
        """Importance weights of rows that the design drew: unchecked."""
        rarity = np.exp(-self._log_prob(rows) - log_comb(self.m - 1, self.k - 1))
        return weigh(self.marginals, rows, rarity)

    def _fill(
        self, rows: Ints, numbers: Floats, rng: np.random.Generator, orders: Ints, weights: Floats
    ) -> None:
        """Draw a set, with its importance weights, into each of these rows of two arrays.

        Behind its members come -1 and 0. Designs that can do so draw a row by its number.
        """
        drawn = self._sample(len(rows), rng)
        orders[rows, : self.k], orders[rows, self.k :] = drawn, -1
        weights[rows, : self.k], weights[rows, self.k :] = self._weights(drawn), 0.0


class Fitted(Protocol):
    """A kind of design that is made from marginals."""

    @classmethod
    def fit(cls, marginals: ArrayLike) -> Design:
        """Make the design with these marginals (m,), in [0, 1], that sum to an integer k >= 1."""


def merge(sets: Ints, times: Ints, m: int) -> tuple[Ints, Ints]:
    """Add up the times of equal rows of arms below m; rows come in lexicographic order."""
    k = sets.shape[1]
    if m**k < 2**63:  # a row is the number with these digits: far faster to sort
        digits = m ** np.arange(k - 1, -1, -1)
        _, first, which = np.unique(sets @ digits, return_index=True, return_inverse=True)
        distinct = sets[first]
    else:
        distinct, which = np.unique(sets, axis=0, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, which.reshape(-1), times)
    return distinct, totals


def draw_listed(table: Words, sets: NDArray[np.integer[Any]], numbers: Floats) -> Ints:
    """Draw one listed set per number, in random order, by the alias table of their law."""
    k = sets.shape[1]
    orders = all_orders(k) if k <= MAX_ORDERED else np.arange(k, dtype=np.uint32)[None, :]
    orders.flags.writeable = False  # always, else the kernel is compiled twice
    return _draw_listed(table, sets, orders, numbers)


@compiled
def weigh(marginals: Floats, rows: Ints, rarity: Floats) -> Floats:
    """Marginals (n, k) of the members of each row, times the row's rarity."""
    weights = np.empty(rows.shape)
    for i in range(len(rows)):
        for r in range(rows.shape[1]):
            weights[i, r] = marginals[rows[i, r]] * rarity[i]
    return weights


@compiled
def _draw_listed(
    table: Words, sets: NDArray[np.integer[Any]], orders: NDArray[np.uint32], numbers: Floats
) -> Ints:
    n, k = len(numbers), sets.shape[1]
    rows, bits = np.empty((n, k), np.int64), alias_bits(table)
    for i in range(n):
        word, state = draw_row_word(start_row(numbers[i]))
        drawn = draw_alias(table, bits, word)
        word, _ = draw_row_word(state)
        order = np.uint64(uniform(word) * len(orders))
        for r in range(k):
            rows[i, r] = sets[drawn, orders[order, r]]
        if k > MAX_ORDERED:
            shuffle_row(rows[i], state)
    return rows

"""Every K-set equally likely."""

import numpy as np

from evenhand.checks import check_budget, check_memory
from evenhand.designs.design import ExplicitDesign
from evenhand.randomness.splitmix import draw_row_word, start_row, uniform
from evenhand.subsets.combinations import all_sets, count_sets, log_comb
from evenhand.typing import Floats, Ints, compiled

MAX_LISTED = 10**6  # up to so many sets a tally is one multinomial draw


class Uniform(ExplicitDesign):
    """The uniform law over all K-subsets of m arms.

    Examples
    --------
    >>> Uniform(5, 2).log_prob([[0, 3]]).round(4)
    array([-2.3026])
    """

    def __init__(self, m: int, k: int) -> None:
        self.m, self.k = check_budget(m, k)
        check_memory(f"one number per arm of m={self.m}", 8 * self.m)
        self.marginals = np.full(self.m, self.k / self.m)

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        return draw_uniform(self.m, self.k, rng.random(n))

    def _log_prob(self, rows: Ints) -> Floats:
        return np.full(len(rows), -log_comb(self.m, self.k))

    def entropy(self) -> float:
        """Entropy of the law, in nats: the logarithm of the number of sets."""
        return log_comb(self.m, self.k)

    def _pair_marginals(self, first: Ints, second: Ints) -> Floats:
        chance = self.k * (self.k - 1) / max(1, self.m * (self.m - 1))
        return np.full(np.broadcast(first, second).shape, chance)

    @property
    def listed(self) -> tuple[Ints, Floats] | None:
        """All sets with their equal probabilities, up to a million of them."""
        n_sets = count_sets(self.m, self.k, MAX_LISTED)
        if n_sets > MAX_LISTED:
            return None
        return all_sets(self.m, self.k), np.full(n_sets, 1.0 / n_sets)


@compiled
def draw_uniform(m: int, k: int, numbers: Floats) -> Ints:
    """Draw one ordered k-subset of range(m) per number: the first k steps of a shuffle."""
    rows = np.empty((len(numbers), k), np.int64)
    arms = np.empty(m, np.int64)
    for a in range(m):
        arms[a] = a
    for i in range(len(numbers)):
        state = start_row(numbers[i])
        for r in range(k):
            word, state = draw_row_word(state)
            j = r + int(uniform(word) * (m - r))
            rows[i, r] = arms[j]
            arms[j] = arms[r]
        for r in range(k):  # undone, so that a row's number alone decides it: places beyond k
            arms[r] = r  # were changed only where their own arm was drawn
            arms[rows[i, r]] = rows[i, r]
    return rows

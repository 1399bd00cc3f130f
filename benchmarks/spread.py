"""What sets of a cascade's nodes are worth, where no formula says it: a large sample, kept as bits.

V(S) is the share of reverse-reachable sets that S hits (:func:`evenhand.merit.reverse_reachable`
says what these are). For each node the sample has one bit per set, so that V(S) is counted from the
bits of its members joined by "or". What the r-sets with a node are worth on average is counted
exactly for the same sample: by chance, an r-set misses R if all its members lie outside of it.
"""

from typing import NamedTuple

import numpy as np

from evenhand.games import IndependentCascade
from evenhand.games.cascade.graph import Arcs
from evenhand.games.cascade.independent import spread
from evenhand.randomness.xoshiro import start_words
from evenhand.typing import Floats, Ints, Words, compiled

WIDTH = 128  # words of each node that are looked at together: those of all nodes stay in the cache
SETS = 2**20  # reverse-reachable sets kept, at least: V of one set is then right within 0.0005


class Spread(NamedTuple):
    """A cascade's values of all sets of at most k nodes, for a fixed sample.

    Attributes
    ----------
    bits
        (blocks, m, words) one bit per reverse-reachable set: whether a node is in it.
    n
        Reverse-reachable sets; every node is the root of equally many.
    expected
        (k, m) mean over the sets of each size with a node.
    """

    bits: Words
    n: int
    expected: Floats

    @classmethod
    def of(cls, cascade: IndependentCascade, k: int, sets: int = SETS, seed: int = 0) -> "Spread":
        """Draw the sample, and count."""
        m, rounds = cascade.m, -(-sets // cascade.m)
        coins = start_words(np.random.default_rng(seed))
        bits, counts = draw(cascade.reversed_arcs, m, rounds, coins)
        # by chance, s others of a node that is not in R, |R| = size, are all outside of R
        sizes, every = np.arange(m + 1), counts.sum(axis=0) / np.maximum(np.arange(m + 1), 1)
        missed, expected = np.ones(m + 1), np.empty((k, m))
        for s in range(k):
            without = every - counts
            expected[s] = 1.0 - without @ missed / (rounds * m)
            missed = missed * np.maximum(m - 1 - sizes - s, 0) / max(m - 1 - s, 1)
        return cls(bits, rounds * m, expected)

    def look(self, orders: Ints, sizes: Ints) -> Floats:
        """V of the first nodes of each row."""
        return hits(self.bits, orders, sizes) / self.n


@compiled
def draw(arcs: Arcs, m: int, rounds: int, coins: Words) -> tuple[Words, Floats]:
    """Draw reverse-reachable sets from every root in turn.

    Returns their bits, and how many of each size (m, m + 1) hold a node.
    """
    bits = np.zeros((-(-rounds * m // (64 * WIDTH)), m, WIDTH), np.uint64)
    counts = np.zeros((m, m + 1))
    seen, queue = np.full(m, -1, np.int64), np.empty(m + 1, np.int64)
    for i in range(rounds * m):
        size = spread(arcs, i % m, 0, i, seen, queue, coins)
        block, word = i // (64 * WIDTH), i // 64 % WIDTH
        for node in queue[:size]:
            bits[block, node, word] |= np.uint64(1) << np.uint64(i % 64)
            counts[node, size] += 1.0
    return bits, counts


@compiled
def hits(bits: Words, orders: Ints, sizes: Ints) -> Ints:
    """Count the reverse-reachable sets that the first nodes of each row hit."""
    found, joined = np.zeros(len(orders), np.int64), np.empty(WIDTH, np.uint64)
    ones, pairs = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
    fours, bytewise = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
    one, two, four, top = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
    for block in range(len(bits)):
        for i in range(len(orders)):
            for w in range(WIDTH):
                joined[w] = bits[block, orders[i, 0], w]
            for j in range(1, sizes[i]):
                node = orders[i, j]
                for w in range(WIDTH):
                    joined[w] |= bits[block, node, w]
            count = np.uint64(0)
            for w in range(WIDTH):
                x = joined[w]
                x = x - ((x >> one) & ones)
                x = (x & pairs) + ((x >> two) & pairs)
                x = (x + (x >> four)) & fours
                count += (x * bytewise) >> top
            found[i] += np.int64(count)
    return found

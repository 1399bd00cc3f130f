"""K-Shapley values of a cascade from reverse-reachable sets."""

from collections.abc import Iterable

import numpy as np

from evenhand.checks import check_budget, check_integer, check_rng
from evenhand.estimate import Estimate
from evenhand.games.cascade.cuda import CudaCascade
from evenhand.games.cascade.graph import Arcs
from evenhand.games.cascade.independent import IndependentCascade, spread
from evenhand.merit.backward import Stratum, in_threads, strata_of
from evenhand.randomness.xoshiro import start_words
from evenhand.typing import Floats, Words, compiled

MANY_NODES = 2**16  # with more, a round takes long enough to be cut, and to share among threads


def reverse_reachable(
    cascade: IndependentCascade,
    k: int,
    n_sets: int,
    rng: np.random.Generator,
    workers: int = 1,
) -> Estimate:
    r"""Estimate the merits of a cascade's nodes from reverse-reachable sets.

    In one live-edge graph let R be the nodes that reach a node v, r = |R|. "v is active" is the
    coverage game :math:`\mathbf{1}\{S \cap R \ne \emptyset\}`, in which a member of R has the
    K-Shapley value :math:`\frac1K \sum_{s<K} \binom{M-r}{s} / \binom{M-1}{s}`: it gains 1 where
    none of its predecessors is in R. The spread is the average over v, so the average of these
    values over v and live-edge graphs is exactly :math:`\phi`.

    Parameters
    ----------
    cascade, k
        The game and K, the most arms in a set.
    n_sets
        The most sets R to draw. With at least 2 m every node v serves equally often, so that a
        multiple of m is drawn, and a node without arcs has no error at all. With fewer, of
        at least 2, each v is drawn at random.
    rng
        Source of randomness.
    workers
        Threads, used where the graph has more than 65 536 nodes or ``n_sets`` is below 2 m. The
        numbers do not depend on it. A :class:`~evenhand.games.CudaCascade` uses none.

    Returns
    -------
    Estimate
        Merits, standard errors and, as ``queries``, the number of sets drawn.

    References
    ----------
    W. Chen and S.-H. Teng, "Interplay between social influence and network centrality: a
    comparative study on Shapley centrality and single-node-influence centrality", WWW 2017, for
    K = M.

    Examples
    --------
    >>> import evenhand
    >>> chain = IndependentCascade([[0, 1], [1, 2]], m=3, p=0.5)
    >>> found = reverse_reachable(chain, 2, n_sets=30_000, rng=np.random.default_rng(1))
    >>> bool(np.all(np.abs(found.merit - evenhand.kshapley(chain, 2)) < 4 * found.stderr))
    True
    """
    if not isinstance(cascade, IndependentCascade):
        raise TypeError(
            f"cascade must be an IndependentCascade, got {type(cascade).__name__}; "
            "use evenhand.merit.stratified for other games"
        )
    m, k = check_budget(cascade.m, k)
    n_sets, workers = check_integer("n_sets", n_sets, 2), check_integer("workers", workers, 1)
    shares, rng = _shares(m, k), check_rng(rng)
    if m > MANY_NODES or n_sets < 2 * m:
        strata = strata_of(m, n_sets, rng)
        found: Iterable[tuple[Floats, Floats]]
        if isinstance(cascade, CudaCascade):
            found = [cascade.reverse_rounds(shares, n, rng, roots) for roots, n in strata]
        else:
            found = in_threads(cascade.reversed_arcs, shares, strata, rng, workers)
        return Estimate(*_total(found, strata), sum(roots.shape[1] * n for roots, n in strata))
    n_rounds = n_sets // m
    if isinstance(cascade, CudaCascade):
        mean, stderr = cascade.reverse_rounds(shares, n_rounds, rng)
    else:
        mean, stderr = _rounds(cascade.reversed_arcs, shares, n_rounds, start_words(rng))
    return Estimate(mean, stderr, n_rounds * m)


def _total(found: Iterable[tuple[Floats, Floats]], strata: list[Stratum]) -> tuple[Floats, Floats]:
    """Average over strata, by their sizes, of means and standard errors, as they come in."""
    n_roots = sum(roots.shape[1] for roots, _ in strata)
    merit = variance = np.zeros(1)
    for (mean, stderr), (roots, _) in zip(found, strata, strict=True):
        share = roots.shape[1] / n_roots
        merit, variance = merit + share * mean, variance + (share * stderr) ** 2
    return merit, np.sqrt(variance)


@compiled
def _shares(m: int, k: int) -> Floats:
    """K-Shapley value of a member of R in the coverage game of r = |R| nodes, for r = 0..m."""
    shares = np.empty(m + 1)
    for r in range(m + 1):
        missed, total = 1.0, 0.0  # probability that s random others are all outside R
        for s in range(k):
            total += missed
            missed *= max(0.0, (m - r - s) / max(1, m - 1 - s))
        shares[r] = total / k
    return shares


@compiled
def _rounds(arcs: Arcs, shares: Floats, n_rounds: int, coins: Words) -> tuple[Floats, Floats]:
    """Mean and standard error over rounds in which every node is the root once."""
    m = len(shares) - 1
    seen, queue = np.full(m, -1, np.int64), np.empty(m + 1, np.int64)
    mean, squares, sample = np.zeros(m), np.zeros(m), np.empty(m)
    for i in range(n_rounds):
        sample[:] = 0.0
        for root in range(m):
            r = spread(arcs, root, 0, i * m + root, seen, queue, coins)
            for node in queue[:r]:
                sample[node] += shares[r]
        for a in range(m):  # Welford
            value = sample[a] / m
            step = value - mean[a]
            mean[a] += step / (i + 1)
            squares[a] += step * (value - mean[a])
    return mean, np.sqrt(squares / (n_rounds - 1) / n_rounds)

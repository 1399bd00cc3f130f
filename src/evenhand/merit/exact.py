"""K-Shapley values exactly: closed form where the game has one, else by listing all sets."""

from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.checks import check_integer
from evenhand.games.game import Game, HasClosedForm, check_game, prefix_sets
from evenhand.merit.asking import Asked, How, asking
from evenhand.merit.bar import Progress
from evenhand.merit.cache import Cache
from evenhand.subsets.combinations import combinations, count_up_to
from evenhand.typing import Floats, Ints

BLOCK_CELLS = 2**22  # cells of the boolean matrix of sets valued at once


def kshapley(
    game: Game,
    k: int,
    *,
    executor: Any = None,
    progress: Progress = None,
    cache: Cache | str | Path | None = None,
    batch: int | None = None,
) -> Floats:
    r"""K-Shapley values of a game: in closed form where it has one, else by :func:`exact`.

    .. math:: \phi_a = \frac1K \sum_{s=0}^{K-1} \frac{1}{\binom{M-1}{s}}
              \sum_{|B| = s,\, a \notin B} [V(B \cup a) - V(B)]

    The average gain of arm a over the sets B of each size below K, then the average over sizes:
    the paper's definition, simplified.

    Parameters
    ----------
    game
        Any game; one with a method ``kshapley(k)`` is asked for its closed form.
    k
        The most arms in a set, 1 <= k <= m. ``k = m`` gives the Shapley value.
    executor
        Who asks the function, for a slow one: anything with ``submit`` as the executors of
        ``concurrent.futures`` (:class:`~evenhand.merit.Processes`, threads, loky, mpi4py, Dask's
        ``client.get_executor()``), or a function that makes one, which is called again if a worker
        dies and takes the others with it. The numbers are the same for any number of workers.
    progress
        None shows a bar with the time left on a terminal and nothing elsewhere; True, False, or a
        function of the queries done and of all.
    cache
        A file, or a :class:`~evenhand.merit.Cache`, that keeps every answer as it comes.
    batch
        Sets handed to the function in one call: 1 with an executor or a cache, else up to 16384. A
        number of your own suits functions that are faster on many sets at once.

    Returns
    -------
    (m,) merits.

    Examples
    --------
    >>> from evenhand.games import SetFunction
    >>> kshapley(SetFunction(lambda sets: sets.any(axis=1), m=4), k=2).round(4)
    array([0.5, 0.5, 0.5, 0.5])
    """
    check_game(game, k, "value")
    if isinstance(game, HasClosedForm):
        return game.kshapley(k)
    return exact(game, k, executor=executor, progress=progress, cache=cache, batch=batch)


def exact(
    game: Game,
    k: int,
    *,
    max_sets: int = 10**9,
    executor: Any = None,
    progress: Progress = None,
    cache: Cache | str | Path | None = None,
    batch: int | None = None,
) -> Floats:
    r"""K-Shapley values of any game by one pass over all sets of at most k arms.

    Each set is valued once. With :math:`v_s` the sum of V over the sets of size s and
    :math:`v_s(a)` over those that contain a,

    .. math:: \phi_a = \frac1K \sum_{s=1}^{K} \left[ \frac{v_s(a)}{\binom{M-1}{s-1}}
              - \mathbf{1}\{s<K\} \frac{v_s - v_s(a)}{\binom{M-1}{s}} \right].

    Parameters
    ----------
    game
        Any game with an exact mean ``value``.
    k
        The most arms in a set, 1 <= k <= m.
    max_sets
        Refuse to list more sets than this.
    executor, progress, cache, batch
        For slow functions, as for :func:`~evenhand.kshapley`.

    Notes
    -----
    Memory does not grow with the number of sets: they are made and valued in blocks.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> game = NoisyOr([0.5, 0.5, 0.2])
    >>> exact(game, k=2).round(4), game.kshapley(2).round(4)  # listed, and in closed form
    (array([0.4125, 0.4125, 0.15  ]), array([0.4125, 0.4125, 0.15  ]))
    """
    m, k = check_game(game, k, "value")
    game.value(np.zeros((0, m), np.bool_))  # a game without an exact mean says so here
    n_sets = count_up_to(m, k)
    if n_sets > check_integer("max_sets", max_sets, 1):
        raise ValueError(
            f"exact merits need max_sets >= {n_sets:.3g} values at m={m}, k={k}, "
            f"got max_sets={max_sets}; estimate them with evenhand.merit.stratified"
        )

    phi = np.zeros(m)
    with asking(game, n_sets, 1, How(executor, progress, cache, batch)) as asked:
        for s in range(1, k + 1):
            mean_with, mean_without = mean_values(m, s, listed_by(asked))
            phi += (mean_with if s == k else mean_with - mean_without)[0]
        asked.finish(None)
    return phi / k


def listed_by(asked: Asked) -> Callable[[Ints], Floats]:
    """Return a function that asks for the values of sets given as rows of arms."""

    def value(rows: Ints) -> Floats:
        if asked.stopped:
            return np.zeros(len(rows))
        return asked.value(prefix_sets(rows, np.full((len(rows), 1), rows.shape[1]), asked.m))

    return value


def mean_values(
    m: int, size: int, value: Callable[[Ints], Floats], times: int = 1
) -> tuple[Floats, Floats]:
    """Mean value of the sets of one size with and without each arm (0 without, if size = m).

    ``value`` is given blocks of sets as rows of arms, each block so many times over; the means of
    each time are returned (times, m).
    """
    total, with_arm = np.zeros((times, 1)), np.zeros((times, m))
    first = m * np.arange(times)[:, None, None]
    for rows in combinations(m, size, block=max(1, BLOCK_CELLS // (m * times))):
        asked, cells = rows, rows
        if times > 1:
            asked, cells = np.tile(rows, (times, 1)), first + rows
        values = np.asarray(value(asked), dtype=np.float64).reshape(times, -1)
        total += values.sum(axis=1, keepdims=True)
        sums = np.bincount(cells.reshape(-1), np.repeat(values, size), minlength=times * m)
        with_arm += sums.reshape(times, m)
    without = (total - with_arm) / comb(m - 1, size) if size < m else np.zeros((times, m))
    return with_arm / comb(m - 1, size - 1), without

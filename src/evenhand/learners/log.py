"""Sets that were shown before, by whatever policy: read as rows of evidence."""

import math
import operator
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_reals, first_bad_query
from evenhand.exchange import Roster, Rows
from evenhand.typing import Ints


def logged_rows(sets: Iterable[Iterable[Any]], chances: ArrayLike, roster: Roster, k: int) -> Rows:
    r"""Return rows of sets that had these chances among the sets of their size.

    A set of r arms has the weight :math:`1 / (P \binom Mr)`, 1 if all were drawn alike: then sums
    of weights times rewards, over the sets with an arm, estimate those of uniform sets.
    """
    orders, sizes = _orders(sets, roster, k)
    given = as_reals("chances", chances, "be numbers, one per set")
    if given.shape != (len(orders),):
        raise ValueError(
            f"chances must hold one number per set, {len(orders)} of them, got shape {given.shape}"
        )
    bad = ~((given > 0.0) & (given <= 1.0))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            "chances must lie in (0, 1], each the chance of the set among the sets of its size, "
            f"got chances[{i}]={given[i]:g}"
        )
    count = np.array([math.log(math.comb(roster.m, r)) for r in range(k + 1)])
    weight = np.exp(-np.log(given) - count[sizes[:, 0]])
    return Rows(orders, sizes, np.where(orders >= 0, weight[:, None], 0.0))


def _orders(sets: Iterable[Iterable[Any]], roster: Roster, k: int) -> tuple[Ints, Ints]:
    """Return sets of ids or names as rows (n, k) of columns, -1 behind them, and their sizes."""
    ids = dict(zip(roster.names or (), roster.ids.tolist(), strict=False))
    rows = list[list[int]]()
    try:
        for shown in sets:
            if isinstance(shown, str):
                raise TypeError
            arms = [ids[arm] if isinstance(arm, str) else operator.index(arm) for arm in shown]
            while arms and arms[-1] == -1:  # as in the orders of a batch
                arms.pop()
            rows.append(arms)
    except KeyError as error:
        raise ValueError(
            f"sets must hold names of arms, got {error} in sets[{len(rows)}]"
        ) from None
    except TypeError:
        raise TypeError(
            "sets must be a list of sets, each a list of arms, by number or by name, "
            f"got {reprlib.repr(sets)}"
        ) from None
    sizes = np.array([[len(arms)] for arms in rows], np.int64).reshape(-1, 1)
    for i in np.flatnonzero((sizes < 1) | (sizes > k)).tolist():
        raise ValueError(
            f"sets must hold 1 to k={k} arms each, got {len(rows[i])} in sets[{i}]; "
            "leave such sets out"
        )
    orders = np.full((len(rows), k), -1)
    for i, arms in enumerate(rows):
        orders[i, : len(arms)] = arms
    inside = np.arange(k) < sizes
    columns = np.where(inside, roster.places(orders), -1)
    row, _ = first_bad_query(columns, sizes, roster.m)
    if row >= 0:
        there = f"in 0..{roster.m - 1}" if roster.original else "on the roster"
        raise ValueError(f"sets must hold different arms {there}, got sets[{row}]={rows[row]}")
    return columns, sizes

"""Balanced sampling by the cube method."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_reals, check_entries, check_marginals
from evenhand.designs.design import Design
from evenhand.subsets.combinations import shuffle
from evenhand.typing import Floats, Ints, compiled

SNAP = 1e-9  # an entry this close to 0 or 1 counts as 0 or 1
MISSING = ("log_prob", "weights", "pair_marginals", "entropy")


class Cube(Design):
    r"""K-sets with given marginals that are balanced: estimated totals are nearly the true ones.

    For each balancing variable x, known of all units,
    :math:`\sum_{a \in S} x_a / \pi_a \approx \sum_a x_a`, as exactly as whole units allow, so
    that whatever goes along with x is estimated with little variance. Marginals and size are
    exact. Neither the probability of a set nor that of a pair has a closed form; see
    :func:`~evenhand.designs.estimate_pair_marginals`. Make one with :meth:`fit`.

    Marginals walk at random inside the cube, each step keeping them in the mean and all balancing
    equations in full, until they are 0 or 1; each draw takes the units in a new random order.
    Where no step is left that keeps all equations, the last of the variables is given up, then the
    last but one; the size never.

    References
    ----------
    J.-C. Deville and Y. Tillé, "Efficient balanced sampling: the cube method", Biometrika 91
    (2004); G. Chauvet and Y. Tillé, "A fast algorithm for balanced sampling", Computational
    Statistics 21 (2006).

    Examples
    --------
    >>> from evenhand.designs import Uniform
    >>> x, rng = np.arange(1.0, 101.0), np.random.default_rng(1)
    >>> balanced, plain = Cube.fit(np.full(100, 0.2), balance=x), Uniform(100, 20)
    >>> one, other = (x[design.sample(500, rng)].sum(axis=1) for design in (balanced, plain))
    >>> bool(one.std() < other.std() / 4)  # the sum of 20 units, times 5, estimates that of all
    True
    """

    def __init__(self, marginals: Floats, k: int, balance: Floats) -> None:
        """Trust marginals that sum to k and variables (q, m); use :meth:`fit` instead."""
        self.m, self.k, self.marginals, self.balance = len(marginals), k, marginals, balance
        self._free = np.flatnonzero((marginals > SNAP) & (marginals < 1.0 - SNAP))
        self._always = np.flatnonzero(marginals >= 1.0 - SNAP)
        rows = balance[:, self._free] / marginals[self._free]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        rows = rows[largest > 0.0] / largest[largest > 0.0, None]
        self._equations = np.concatenate([np.ones((1, len(self._free))), rows])

    @classmethod
    def fit(cls, marginals: ArrayLike, balance: ArrayLike | None = None) -> Self:
        """Make the design with these marginals and balancing variables.

        Parameters
        ----------
        marginals
            (m,) numbers in [0, 1] that sum to an integer k >= 1.
        balance
            (m,) or (m, q) variables to balance, the most important first; None for none but the
            size.
        """
        target, k = check_marginals(marginals)
        columns = np.empty((len(target), 0))
        if balance is not None:
            columns = as_reals("balance", balance, "be an array of real numbers")
            columns = columns[:, None] if columns.ndim == 1 else columns
            if columns.ndim != 2 or len(columns) != len(target):
                raise ValueError(
                    f"balance must have shape ({len(target)},) or ({len(target)}, q), "
                    f"got {np.shape(balance)}"
                )
            check_entries("balance", columns, -np.inf, np.inf)
        return cls(target, k, np.ascontiguousarray(columns.T))

    def _sample(self, n: int, rng: np.random.Generator) -> Ints:
        rows = np.full((n, self.k), -1)
        rows[:, : len(self._always)] = self._always
        start = self.marginals[self._free]
        _walk(start, self._equations, self._free, rows, len(self._always), rng)
        if rows.size and rows.min() < 0:
            raise RuntimeError(
                "rounding left a set without its k arms; scale the balancing variables alike"
            )
        return rows

    if not TYPE_CHECKING:  # type checkers know that these are not there

        def __getattr__(self, name: str) -> Any:
            remedy = (
                "; use estimate_pair_marginals, or ConditionalPoisson" if name in MISSING else ""
            )
            raise AttributeError(f"Cube has no attribute {name!r}{remedy}")


@compiled
def _walk(
    start: Floats, equations: Floats, arms: Ints, rows: Ints, filled: int, rng: np.random.Generator
) -> None:
    """Fill each row with the arms whose walk ends at 1, in random order."""
    m, p = len(start), len(equations)
    pi, order, active = np.empty(m), np.arange(m), np.empty(p + 1, np.int64)
    table, u = np.empty((p, p + 1)), np.empty(p + 1)
    for i in range(len(rows)):
        for a in range(m):
            pi[a] = start[a]
        shuffle(order, rng)
        n_active = taken = 0
        place = filled
        while True:
            while n_active <= p and taken < m:
                active[n_active] = order[taken]
                n_active += 1
                taken += 1
            if n_active == 0:
                break
            if n_active == 1:  # what is left of a whole unit, or of none
                pi[active[0]] = 1.0 if pi[active[0]] > 0.5 else 0.0
            else:
                used = min(p, n_active - 1)
                for r in range(used):
                    for c in range(n_active):
                        table[r, c] = equations[r, active[c]]
                _null_vector(table, used, n_active, u)
                _step(pi, active, n_active, u, rng)
            kept = 0
            for c in range(n_active):
                a = active[c]
                if pi[a] == 1.0 and place < rows.shape[1]:
                    rows[i, place] = arms[a]
                    place += 1
                if 0.0 < pi[a] < 1.0:
                    active[kept] = a
                    kept += 1
            n_active = kept
        shuffle(rows[i], rng)


@compiled
def _step(pi: Floats, active: Ints, n: int, u: Floats, rng: np.random.Generator) -> None:
    """Go along u or back until an entry is 0 or 1, with chances that keep the mean."""
    ahead = back = np.inf
    for c in range(n):
        if u[c] != 0.0:
            up, down = (1.0 - pi[active[c]]) / abs(u[c]), pi[active[c]] / abs(u[c])
            ahead = min(ahead, up if u[c] > 0.0 else down)
            back = min(back, down if u[c] > 0.0 else up)
    step = ahead if rng.random() * (ahead + back) < back else -back
    nearest, which = np.inf, 0
    for c in range(n):
        value = pi[active[c]] + step * u[c]
        distance = min(abs(value), abs(1.0 - value))
        if u[c] != 0.0 and distance < nearest:
            nearest, which = distance, c
        pi[active[c]] = 0.0 if value < SNAP else 1.0 if value > 1.0 - SNAP else value
    pi[active[which]] = 1.0 if pi[active[which]] > 0.5 else 0.0


@compiled
def _null_vector(table: Floats, rows: int, columns: int, u: Floats) -> None:
    """Fill u with a vector that the table, of fewer rows than columns, maps to 0; largest entry 1.

    Gauss and Jordan with pivots chosen by row; the first column without one is free.
    """
    pivot_row = np.empty(columns, np.int64)
    free, r = -1, 0
    for c in range(columns):
        pivot_row[c] = -1
        best = r
        for i in range(r, rows):
            if abs(table[i, c]) > abs(table[best, c]):
                best = i
        if r == rows or abs(table[best, c]) < 1e-11:
            free = c if free < 0 else free
            continue
        for j in range(columns):
            table[r, j], table[best, j] = table[best, j], table[r, j]
        scale = table[r, c]
        for j in range(columns):
            table[r, j] /= scale
        for i in range(rows):
            if i != r and table[i, c] != 0.0:
                factor = table[i, c]
                for j in range(columns):
                    table[i, j] -= factor * table[r, j]
        pivot_row[c] = r
        r += 1
    largest = 1.0
    for c in range(columns):
        u[c] = 1.0 if c == free else 0.0
        if pivot_row[c] >= 0:
            u[c] = -table[pivot_row[c], free]
        largest = max(largest, abs(u[c]))
    for c in range(columns):
        u[c] /= largest

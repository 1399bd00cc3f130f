"""How fair a run was: fairness regret, merit-selection alignment, growth, shares."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_vector
from evenhand.exchange.batch import Batch, Determined, Marginals
from evenhand.typing import Floats, Ints, compiled


class FairnessLoss:
    r"""Query-normalised fairness loss of the queries of a batch.

    A query of r arms whose set, given the history, has marginals p (sum r) loses
    :math:`\| \frac Kr p - \pi^* \|_1`, whatever its size. The empty set is charged what the same
    query would be charged at any other size.

    Parameters
    ----------
    target
        :math:`\pi^*` (m,), sums to k.
    k
        Budget.

    Examples
    --------
    >>> from evenhand.learners import URS
    >>> loss = FairnessLoss(np.array([0.9, 0.6, 0.5]), k=2)
    >>> round(loss(URS(m=3, k=2, seed=1).ask(10)), 4)
    0.4667
    """

    def __init__(self, target: Floats, k: int) -> None:
        self.target, self.k = target, k

    @cached_property
    def of_targets(self) -> Floats:
        """Table (m, k + 1) of :func:`target_losses`."""
        return target_losses(self.target, self.k)

    def __call__(self, batch: Batch) -> Floats | float:
        """Return the loss (n, s) of every query; one number where it is the same for all."""
        exposure = batch.exposure
        if isinstance(exposure, Marginals):
            return float(np.abs(exposure.q - self.target).sum())
        if isinstance(exposure, Determined):
            return _losses_of_sets(batch.orders, batch.sizes, self.target)
        ends = batch.sizes.max(axis=1)  # the longest prefix ends in the target arm
        inside = np.where(batch.sizes == ends[:, None], batch.sizes, 0)
        return self.of_targets[exposure.arms[:, None], inside]

    def total(self, batch: Batch) -> float:
        """Return the loss of all queries of a batch together."""
        loss = self(batch)
        if isinstance(loss, float):
            return loss * batch.queries
        return float((loss * batch.times[:, None]).sum())


@compiled
def _losses_of_sets(orders: Ints, sizes: Ints, target: Floats) -> Floats:
    """Loss of known sets: K/r on each member, 0 on the others."""
    n, s = sizes.shape
    k = orders.shape[1]
    total = target.sum()
    result = np.empty((n, s))
    for i in range(n):
        for j in range(s):
            loss = total
            for r in range(sizes[i, j]):
                due = target[orders[i, r]]
                loss += abs(k / sizes[i, j] - due) - due
            result[i, j] = loss
    return result


def target_losses(target: Floats, k: int) -> Floats:
    r"""Losses (m, k + 1) of a query with a known target arm a and uniformly random others.

    Column r >= 1 is the set B + a of r arms, in which another arm is with chance (r-1)/(M-1);
    column 0 the set B alone, whose normalised marginals K/(M-1) do not depend on its size.

    Examples
    --------
    >>> target_losses(np.array([0.9, 0.6, 0.5]), k=2).shape
    (3, 3)
    """
    m = len(target)
    r = np.arange(1, k + 1)
    chances = np.append(k / max(1, m - 1), k * (r - 1) / (r * max(1, m - 1)))
    own = np.append(0.0, k / r)
    table = np.empty((m, k + 1))
    for column, (chance, mine) in enumerate(zip(chances, own, strict=True)):
        others = np.abs(chance - target)
        table[:, column] = others.sum() - others + np.abs(mine - target)
    return table


def alignment(merit: ArrayLike, selections: ArrayLike) -> float:
    r"""Merit-selection alignment B: the mean of min(m/s, s/m) over arms, 1 if proportional.

    m and s are the arms' shares of merit and of selections; an arm never selected scores 0.

    Examples
    --------
    >>> alignment([0.2, 0.1], [200, 100])
    1.0
    >>> alignment([0.2, 0.2], [100, 0])
    0.25
    """
    return float(shares(merit, selections).alignment.mean())


class Shares(NamedTuple):
    """Arms in decreasing merit, with their shares of merit and selection, ratio and alignment.

    Made by :func:`shares`; ``polars.DataFrame(table._asdict())`` is a data frame of it.

    Examples
    --------
    >>> shares([0.1, 0.3], [150, 250]).selection
    array([0.625, 0.375])
    """

    arms: Ints
    merit: Floats
    selection: Floats
    ratio: Floats
    alignment: Floats


def shares(merit: ArrayLike, selections: ArrayLike) -> Shares:
    """Compare shares of merit and of selections arm by arm.

    The ratio is merit over selection: infinite for an arm with merit that was never selected.

    Examples
    --------
    >>> table = shares([0.1, 0.3], [100, 300])
    >>> table.arms, table.merit, table.ratio
    (array([1, 0]), array([0.75, 0.25]), array([1., 1.]))
    """
    due = check_vector("merit", merit, 0.0, np.inf)
    got = check_vector("selections", selections, 0.0, np.inf)
    if due.shape != got.shape:
        raise ValueError(
            f"merit and selections must have the same length, got {len(due)} and {len(got)}"
        )
    for name, vector in (("merit", due), ("selections", got)):
        if vector.sum() == 0.0:
            raise ValueError(f"{name} must not be all zero")
    arms = np.argsort(-due, kind="stable")
    m, s = due[arms] / due.sum(), got[arms] / got.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = m / s
        score = np.where(s > 0, np.fmin(ratio, s / m), 0.0)
    return Shares(arms, m, s, ratio, np.where(m > 0, score, 0.0))


class Slope(NamedTuple):
    """Exponent of growth with its standard error.

    Examples
    --------
    >>> slope([1e2, 1e3, 1e4], [10.0, 46.4, 215.4]).value.__round__(2)
    0.67
    """

    value: float
    stderr: float


def slope(horizons: ArrayLike, regret: ArrayLike) -> Slope:
    """Slope of log regret against log horizon.

    Parameters
    ----------
    horizons
        (n,) horizons, at least 3 of them for one run, 2 for several.
    regret
        (n,) regret of one run at each, or (replications, n). With several replications a line is
        fitted to each, and the standard error is that of their mean slope.

    Examples
    --------
    >>> round(slope([1e4, 1e5, 1e6], [100.0, 1000.0, 10000.0]).value, 12)
    1.0
    """
    from scipy.stats import linregress  # a third of a second to import, which no simulation needs

    x = np.log(check_vector("horizons", horizons, np.finfo(float).tiny, np.inf))
    y = np.asarray(regret, dtype=np.float64)
    if y.shape[-1:] != x.shape or y.ndim not in (1, 2):
        raise ValueError(f"regret must have shape (n,) or (r, n) with n={len(x)}, got {y.shape}")
    if not np.all(y > 0):
        raise ValueError("regret must be above 0 to have a logarithm")
    if y.ndim == 2 and len(y) > 1:
        slopes = np.array([linregress(x, np.log(row)).slope for row in y])
        return Slope(float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(len(slopes))))
    fit = linregress(x, np.log(y.reshape(-1)))
    return Slope(float(fit.slope), float(fit.stderr))

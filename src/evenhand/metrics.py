"""How fair a run was: fairness regret, merit-selection alignment, growth, shares."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_integer, check_vector
from evenhand.display import html_table
from evenhand.exchange.batch import Batch, Determined, Marginals
from evenhand.typing import Floats, Ints, compiled


class FairnessLoss:
    r"""How far the queries of a batch are from fair, each set scaled to K arms.

    A query of r arms that holds each arm with the chances p (sum r), given all that happened
    before it was drawn, loses :math:`\| \frac Kr p - \pi^* \|_1`. A drawn set that happens to be
    empty loses what it would lose at any other size, as :math:`\frac Kr p` is the same for all.

    Parameters
    ----------
    target
        Fair marginals :math:`\pi^*` (m,), which sum to k.
    k
        Budget.

    Examples
    --------
    >>> from evenhand.learners import URS
    >>> loss = FairnessLoss([0.9, 0.6, 0.5], k=2)
    >>> batch = URS(m=3, k=2, seed=1).ask(10)
    >>> round(loss(batch), 4), round(loss.total(batch), 4)
    (0.4667, 4.6667)
    """

    def __init__(self, target: ArrayLike, k: int) -> None:
        self.target = check_vector("target", target, 0.0, np.inf)
        self.k = check_integer("k", k, 1)

    def __repr__(self) -> str:
        return f"FairnessLoss(m={len(self.target)}, k={self.k})"

    @cached_property
    def _known_arm(self) -> Floats:
        """Table (m, k + 1) of :func:`known_arm_losses`."""
        return known_arm_losses(self.target, self.k)

    def __call__(self, batch: Batch) -> Floats | float:
        """Return the loss (n, s) of every query; a float where it is the same for all."""
        exposure = batch.exposure
        if isinstance(exposure, Marginals):
            return float(np.abs(exposure.q - self.target).sum())
        if isinstance(exposure, Determined):
            return _losses_of_sets(batch.orders, batch.sizes, self.target)
        if exposure is None:
            raise ValueError("batch must be as ask returned it: one read from JSON has no exposure")
        ends = batch.sizes.max(axis=1)  # the longest prefix ends in the known arm
        inside = np.where(batch.sizes == ends[:, None], batch.sizes, 0)
        return self._known_arm[exposure.arms[:, None], inside]

    def total(self, batch: Batch) -> float:
        """Sum of the losses of all queries of a batch, each as often as it is asked."""
        loss = self(batch)
        if isinstance(loss, float):
            return loss * batch.queries
        return float((loss * batch.times[:, None]).sum())


@compiled
def _losses_of_sets(orders: Ints, sizes: Ints, target: Floats) -> Floats:
    """Losses (n, s) of known sets, in which a member has K/r and the others have 0."""
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


def known_arm_losses(target: Floats, k: int) -> Floats:
    r"""Losses (m, k + 1) of queries about one known arm a, the others being uniformly random.

    Column r >= 1 is for a set of r arms that holds a, and each other arm with chance
    (r-1)/(M-1); column 0 for a set without a, whose normalised marginals K/(M-1) do not depend on
    its size.

    Examples
    --------
    >>> known_arm_losses(np.array([0.9, 0.6, 0.5]), k=2).shape
    (3, 3)
    """
    r, n_others = np.arange(1, k + 1), max(1, len(target) - 1)
    own = np.append(0.0, k / r)  # normalised marginals of a, and of every other arm
    other = np.append(k / n_others, k * (r - 1) / (r * n_others))
    losses = np.abs(other - target[:, None])
    return losses.sum(axis=0) - losses + np.abs(own - target[:, None])


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
    >>> table = shares([0.1, 0.3], [150, 250])
    >>> table
    Shares(2 arms, mean alignment 0.750)
    >>> table.selection
    array([0.625, 0.375])
    """

    arms: Ints
    merit: Floats
    selection: Floats
    ratio: Floats
    alignment: Floats

    def __repr__(self) -> str:
        return f"Shares({len(self.arms)} arms, mean alignment {self.alignment.mean():.3f})"

    def _repr_html_(self) -> str:
        return html_table(self._asdict(), len(self.arms), repr(self))


def shares(merit: ArrayLike, selections: ArrayLike) -> Shares:
    """Compare each arm's share of merit with its share of selections.

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
            raise ValueError(f"{name} must not be all zero, got {len(vector)} zeros")
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
        (n,) horizons, at least 3 different ones for one run, 2 for several.
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
        raise ValueError(f"regret must be above 0 to have a logarithm, got {y.min():g}")
    rows = np.atleast_2d(y)
    if len(np.unique(x)) < (2 if len(rows) > 1 else 3):
        raise ValueError(
            "horizons must hold at least 3 different ones for one run, 2 for several, "
            f"got {horizons!r}"
        )
    fits = [linregress(x, np.log(row)) for row in rows]
    slopes = np.array([fit.slope for fit in fits])
    error = slopes.std(ddof=1) / np.sqrt(len(fits)) if len(fits) > 1 else fits[0].stderr
    return Slope(float(slopes.mean()), float(error))

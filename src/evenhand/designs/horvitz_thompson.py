"""Totals and means of a population, estimated from one sample, with their variances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers, check_vector
from evenhand.designs.design import Design
from evenhand.designs.pairs import PairMarginals
from evenhand.typing import Floats, Ints


@dataclass(frozen=True, slots=True)
class HorvitzThompson:
    """What one sample says about a population.

    Attributes
    ----------
    total, mean
        Of y over all m units, unbiased: the sum of y over marginal, and that over m.
    hajek_variance
        Estimated variance of the total from marginals alone. It suits designs of high entropy
        (conditional Poisson, Sampford), and no others.
    syg_variance
        That of Sen, Yates and Grundy, unbiased for any design of fixed size with all pairs
        possible; may be negative where a pair is commoner than two independent arms. Refused, with
        the reason, where there is none.
    """

    total: float
    mean: float
    hajek_variance: float
    _syg: float
    _reason: str

    @property
    def syg_variance(self) -> float:
        """Estimated variance of the total by Sen, Yates and Grundy."""
        if self._reason:
            raise ValueError(self._reason)
        return self._syg

    def __repr__(self) -> str:
        syg = "refused" if self._reason else f"{self._syg:.6g}"
        return (
            f"HorvitzThompson(total={self.total:.6g}, mean={self.mean:.6g}, "
            f"syg_variance={syg}, hajek_variance={self.hajek_variance:.6g})"
        )


def horvitz_thompson(
    y: ArrayLike, sample: Any, design: Design, *, pairs: ArrayLike | None = None
) -> HorvitzThompson:
    r"""Estimate the total and the mean of a population from one sample.

    .. math:: \hat Y = \sum_{a \in S} \frac{y_a}{\pi_a}, \qquad
              \hat V_{SYG} = \sum_{a < b \in S} \frac{\pi_a \pi_b - \pi_{ab}}{\pi_{ab}}
              \Bigl( \frac{y_a}{\pi_a} - \frac{y_b}{\pi_b} \Bigr)^2

    Hájek's variance is :math:`\frac{K}{K-1} \sum_{a \in S} (1 - \pi_a) (y_a / \pi_a - G)^2` with G
    the mean of :math:`y_a / \pi_a` weighted by :math:`1 - \pi_a`.

    Parameters
    ----------
    y
        (k,) what was measured on the units of the sample, in its order.
    sample
        (k,) the units: a row of ``design.sample``, or their labels if the design has some.
    design
        The design that drew it.
    pairs
        (k, k) pair marginals of the sample's units, for a design that does not know them; see
        :func:`~evenhand.designs.estimate_pair_marginals`. Nothing then says whether some pair of
        the population is impossible: that is up to you.

    Examples
    --------
    >>> from evenhand.designs import ConditionalPoisson
    >>> size = np.array([10, 20, 30, 40, 50, 60.0])  # known of all units
    >>> design = ConditionalPoisson.fit(3 * size / size.sum())
    >>> y = np.array([12, 19, 35, 38, 55, 56.0])  # seen in the sample alone; sums to 215
    >>> horvitz_thompson(y[[1, 3, 4]], [1, 3, 4], design)
    HorvitzThompson(total=210, mean=35, syg_variance=49.5748, hajek_variance=37.8)
    """
    if not isinstance(design, Design):
        raise TypeError(f"design must be one of evenhand.designs, got {type(design).__name__}")
    rows = check_sample(sample, design)
    values = check_vector("y", y, -np.inf, np.inf)
    if len(values) != design.k:
        raise ValueError(
            f"y must hold one number per unit of the sample, {design.k}, got {len(values)}"
        )
    pi = design.marginals[rows]
    never = np.flatnonzero(design.marginals <= 0.0)
    if len(never):
        unit = design.label(never).tolist()[0]
        raise ValueError(
            f"marginals of all units must be above 0, got 0 for unit {unit!r}, of which "
            "no sample can say anything; take it out of the population"
        )
    scaled = values / pi
    rest = 1.0 - pi
    centre = float(rest @ scaled / rest.sum()) if rest.sum() > 0.0 else 0.0
    k = design.k
    hajek = k / (k - 1) * float(rest @ (scaled - centre) ** 2) if k > 1 else np.nan
    reason = _no_variance(design) if pairs is None else ""
    syg = np.nan
    if not reason:
        joint = _sample_pairs(design, rows) if pairs is None else np.asarray(pairs, np.float64)
        if joint.shape != (k, k):
            raise ValueError(f"pairs must have shape ({k}, {k}), got {joint.shape}")
        syg = sen_yates_grundy(scaled, pi, joint)
    total = float(scaled.sum())
    return HorvitzThompson(total, total / design.m, hajek, syg, reason)


def sen_yates_grundy(scaled: Floats, pi: Floats, joint: Floats) -> float:
    """Variance of the sum of scaled values with these marginals and pair marginals."""
    first, second = np.triu_indices(len(pi), 1)
    both = joint[first, second]
    gaps = (scaled[first] - scaled[second]) ** 2
    return float(((pi[first] * pi[second] - both) / both * gaps).sum())


def check_sample(sample: Any, design: Design) -> Ints:
    """Return a sample as arms, given as arms or labels."""
    if design.names is not None and np.asarray(sample).dtype.kind not in "iu":
        rows = design.unlabel(sample)
    else:
        rows = as_integers("sample", sample)
    if rows.shape != (design.k,) or len(set(rows.tolist())) != design.k:
        raise ValueError(f"sample must hold {design.k} different units, got {sample!r}")
    if rows.min() < 0 or rows.max() >= design.m:
        raise ValueError(f"sample must hold arms in 0..{design.m - 1}, got {rows.tolist()}")
    return rows


def _sample_pairs(design: Design, rows: Ints) -> Floats:
    assert isinstance(design, PairMarginals)
    pairs = np.stack(np.meshgrid(rows, rows, indexing="ij"), axis=-1).reshape(-1, 2)
    return design.pair_marginals(pairs).reshape(len(rows), len(rows))


def _no_variance(design: Design) -> str:
    """Say why a design has no unbiased variance; empty if it has one."""
    kind = type(design).__name__
    if not isinstance(design, PairMarginals):
        return (
            f"{kind} does not know its pair marginals; give pairs=, as estimated by "
            "evenhand.designs.estimate_pair_marginals, or use hajek_variance"
        )
    pair = design.impossible_pair()
    if pair is None:
        return ""
    one, other = design.label(np.array(pair)).tolist()
    return (
        f"no unbiased variance exists: units {one!r} and {other!r} are never in a sample together "
        f"under this {kind} design; use hajek_variance, or a design such as ConditionalPoisson"
    )

r"""The full-set value: what sets of exactly K arms say about each arm.

With :math:`v^+_a` the mean value of the K-sets that hold arm a, and :math:`\bar V` that of all,

.. math:: \psi_a = \frac{\bar V}{K} + \frac{M-1}{M-K} (v^+_a - \bar V).

It is the additive game nearest to V on the K-sets, by least squares. There is one K-set only if
K = M; arms cannot be told apart by it, so each is given :math:`V / M`.
"""

from evenhand.typing import Floats, compiled


@compiled
def stretch(m: int, k: int) -> float:
    """By how much differences of means over K-sets are enlarged: K - 1 of K members are shared."""
    return (m - 1) / (m - k) if k < m else 0.0


def full_set_values(inside: Floats, level: Floats | float, k: int) -> Floats:
    """Full-set values (..., m) from the means ``inside`` of the K-sets with each arm, and of all.

    Examples
    --------
    >>> import numpy as np
    >>> full_set_values(np.array([0.35, 0.4, 0.45]), 0.4, k=2).round(6)  # pairs: 0.3, 0.4, 0.5
    array([0.1, 0.2, 0.3])
    """
    return level / k + stretch(inside.shape[-1], k) * (inside - level)


def coefficients(m: int, k: int) -> tuple[float, float]:
    """What the value of a K-set counts for an arm inside it, and for one outside.

    A full-set value is the mean of V times these over all K-sets.
    """
    apart = stretch(m, k)
    return 1.0 / k + apart * (m / k - 1.0), 1.0 / k - apart

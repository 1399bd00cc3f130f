"""What an estimator of merits returns."""

from typing import NamedTuple

import numpy as np

from evenhand.typing import Floats, Ints


class Estimate(NamedTuple):
    """Estimated merits with their standard errors and what they cost.

    Attributes
    ----------
    values, stderr
        (m,) estimates and their standard errors.
    queries
        Queries (or sets) spent on them.

    Examples
    --------
    >>> found = Estimate(np.array([0.30, 0.10]), np.array([0.01, 0.02]), queries=400)
    >>> found.values - 2 * found.stderr
    array([0.28, 0.06])
    """

    values: Floats
    stderr: Floats
    queries: int


def standard_error(total: Floats, square: Floats, n: int | Ints) -> Floats:
    """Standard error of the mean of n samples with this total and sum of squares."""
    return np.sqrt(np.maximum(square - total * total / n, 0.0) / (n - 1) / n)

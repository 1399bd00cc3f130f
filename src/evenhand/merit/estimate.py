"""What an estimator of merits returns."""

from typing import NamedTuple

from evenhand.typing import Floats


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
    >>> import numpy as np
    >>> found = Estimate(np.array([0.30, 0.10]), np.array([0.01, 0.02]), queries=400)
    >>> found.values - 2 * found.stderr
    array([0.28, 0.06])
    """

    values: Floats
    stderr: Floats
    queries: int

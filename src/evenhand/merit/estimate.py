"""What an estimator of merits returns."""

from typing import NamedTuple

import numpy as np

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
    >>> found = Estimate(np.array([0.30, 0.10]), np.array([0.01, 0.02]), queries=400)
    >>> found.values - 2 * found.stderr
    array([0.28, 0.06])
    """

    values: Floats
    stderr: Floats
    queries: int


class Sums:
    """Sums of samples (n, m), of which mean and standard error follow."""

    def __init__(self, m: int) -> None:
        self.n = 0
        self._around = self._total = self._square = np.zeros(m)

    def add(self, samples: Floats) -> None:
        """Add a block of samples."""
        if self.n == 0:
            self._around = samples.mean(axis=0)  # near the mean, so that squares do not cancel
        apart = samples - self._around
        self.n += len(samples)
        self._total = self._total + apart.sum(axis=0)
        self._square = self._square + (apart * apart).sum(axis=0)

    @property
    def mean(self) -> Floats:
        """Mean of the samples (m,)."""
        return self._around + self._total / self.n

    @property
    def stderr(self) -> Floats:
        """Standard error of the mean (m,); 0 for a single sample."""
        spread = self._square - self._total * self._total / self.n
        return np.sqrt(np.maximum(spread, 0.0) / max(1, self.n - 1) / self.n)

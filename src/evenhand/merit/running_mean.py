"""Means and standard errors of samples that come in blocks."""

import numpy as np

from evenhand.typing import Floats


class RunningMean:
    """Mean and standard error of samples (n, m), of which only sums are kept."""

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
        squares = self._square - self._total * self._total / self.n  # of deviations from the mean
        return np.sqrt(np.maximum(squares, 0.0) / max(1, self.n - 1) / self.n)

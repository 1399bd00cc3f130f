"""Means and standard errors of samples that come in blocks."""

import numpy as np

from evenhand.typing import Floats, Ints


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


class GroupedMean:
    """Mean and standard error of samples of m groups, of which only sums are kept."""

    def __init__(self, m: int) -> None:
        self.n, self._around = np.zeros(m), np.zeros(m)
        self._total, self._square = np.zeros(m), np.zeros(m)

    def add(self, groups: Ints, samples: Floats) -> None:
        """Add samples (n,) of the groups (n,) they belong to."""
        count = np.bincount(groups, minlength=len(self.n))
        new = (self.n == 0) & (count > 0)  # sums are around a mean, so that squares do not cancel
        sums = np.bincount(groups, samples, minlength=len(self.n))
        self._around[new] = sums[new] / count[new]
        apart = samples - self._around[groups]
        self.n += count
        self._total += np.bincount(groups, apart, minlength=len(self.n))
        self._square += np.bincount(groups, apart * apart, minlength=len(self.n))

    @property
    def mean(self) -> Floats:
        """Mean of each group's samples (m,); nan without any."""
        return np.where(self.n > 0, self._around + self._total / np.maximum(self.n, 1), np.nan)

    @property
    def stderr(self) -> Floats:
        """Standard error of the means (m,); nan with less than two samples."""
        n = np.maximum(self.n, 2)
        squares = np.maximum(self._square - self._total * self._total / n, 0.0)
        return np.where(self.n > 1, np.sqrt(squares / (n - 1) / n), np.nan)

"""Merits that are believed before there are rewards, and how surely."""

from typing import Any, NamedTuple

import numpy as np

from evenhand.checks import as_reals, check_vector
from evenhand.estimate import Estimate
from evenhand.typing import Bools, Floats


class Prior(NamedTuple):
    """Believed merits (m,) and their standard errors, infinite for arms nothing is known of."""

    merit: Floats
    stderr: Floats

    @classmethod
    def of(cls, given: Any, m: int) -> "Prior":
        """Check merits and standard errors, (m,) or one for all, or an estimate of m arms."""
        if isinstance(given, Estimate):
            given = given.merit, given.stderr
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise TypeError(f"prior must be an Estimate or (merits, stderr), got {given!r}")
        merit = as_reals("prior[0]", given[0], "be a vector of real numbers")
        stderr = as_reals("prior[1]", given[1], "be a vector of real numbers")
        if merit.shape != (m,) or stderr.shape not in ((), (m,)):
            raise ValueError(
                f"prior must hold a merit per arm, m={m}, and a standard error per arm or one for "
                f"all, got shapes {merit.shape} and {stderr.shape}"
            )
        stderr = np.where(np.isnan(merit), np.inf, stderr)  # an arm of which nothing is known
        merit = check_vector("prior[0]", np.where(np.isnan(merit), 0.0, merit), -np.inf, np.inf)
        bad = ~(stderr > 0.0)
        if bad.any():
            a = int(np.argmax(bad))
            raise ValueError(
                f"prior must hold standard errors above 0, got prior[1][{a}]={stderr[a]:g}; "
                "give inf where nothing is known"
            )
        if not np.isfinite(stderr).any():
            raise ValueError(
                "prior must hold a finite standard error for some arm, got none; leave prior out"
            )
        return cls(merit, stderr)

    @property
    def known(self) -> Bools:
        """(m,) of which arms something is believed."""
        return np.isfinite(self.stderr)

    def join(self, merit: Floats, variance: Floats, unit: float) -> tuple[Floats, Floats]:
        """Weigh estimates and beliefs by their precisions; return merits and variances.

        Estimates are in ``unit``. Of an arm without either, the mean of the beliefs is taken.
        Beliefs count as less sure than they claim where estimates are further from them than both
        errors explain.
        """
        believed = np.where(self.known, self.merit, self.merit[self.known].mean()) / unit
        claimed = (self.stderr / unit) ** 2
        claimed = claimed * self._excess((merit - believed) ** 2, variance, claimed)
        with np.errstate(divide="ignore"):
            given = 1.0 / claimed
            total = 1.0 / variance + given
            share = np.divide(given, total, out=np.ones_like(total), where=total > 0.0)
            return merit + share * (believed - merit), 1.0 / total

    def _excess(self, squares: Floats, variance: Floats, claimed: Floats) -> float:
        """By how much beliefs are off, as a variance over the claimed one; at least 1.

        The moments' solution of E squares = variance + excess * claimed, arms weighted by how much
        they can tell.
        """
        both = self.known & np.isfinite(variance)
        if not both.any():
            return 1.0
        ratio, noise = squares[both] / claimed[both], variance[both] / claimed[both]
        excess = 1.0
        for _ in range(20):
            weight = (excess + noise) ** -2.0
            excess = max(1.0, float((weight * (ratio - noise)).sum() / weight.sum()))
        return excess

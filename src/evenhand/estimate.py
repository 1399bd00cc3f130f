"""Estimated merits."""

from typing import NamedTuple

import numpy as np

from evenhand.display import html_table, span
from evenhand.typing import Floats


class Estimate(NamedTuple):
    """Estimated merits, their standard errors and what they cost.

    Attributes
    ----------
    merit, stderr
        (m,) estimates and their standard errors.
    queries
        Queries spent, or reverse-reachable sets drawn.

    Examples
    --------
    >>> found = Estimate(np.array([0.30, 0.10]), np.array([0.01, 0.02]), queries=400)
    >>> found
    Estimate(m=2, merit=0.1..0.3, stderr=0.01..0.02, queries=400)
    >>> found.merit - 2 * found.stderr
    array([0.28, 0.06])
    """

    merit: Floats
    stderr: Floats
    queries: int

    def __repr__(self) -> str:
        return (
            f"Estimate(m={len(self.merit)}, merit={span(self.merit)}, "
            f"stderr={span(self.stderr)}, queries={self.queries})"
        )

    def _repr_html_(self) -> str:
        arms = np.arange(len(self.merit))
        return html_table({"arm": arms, "merit": self.merit, "standard error": self.stderr})

"""Estimated merits, with their errors and all else that is known about them, in one value."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evenhand.display import MAX_ROWS, html_table, span
from evenhand.typing import Floats, Ints


class Change(NamedTuple):
    """A change that a learner noticed.

    Attributes
    ----------
    queries
        After how many queries it was noticed.
    arm
        Whose: the arm's name, or its id.
    alone
        Whether the arm by itself brings something else, or only together with others.
    """

    queries: int
    arm: str | int
    alone: bool


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Estimate:
    """Estimated merits, from a learner or from one of the estimators of :mod:`evenhand.merit`.

    Attributes
    ----------
    merit
        (m,) estimated merits; nan for arms not yet seen. Those of
        :class:`~evenhand.learners.FullSets` and ``full_set_estimate`` are full-set values.
    stderr
        (m,) their standard errors; nan where a learner knows none.
    queries
        Queries spent, or reverse-reachable sets drawn.
    marginals
        (m,) chance of each arm to be in a learner's next set, times k over its size; sums to k.
    asked
        (m,) how often a learner has asked each arm: its memberships in queried sets.
    intervals
        (m, 2) 95 % confidence intervals for the merits, valid however often one looks; or None.
    changes
        Changes that a learner has noticed, the latest hundred, oldest first; or None.
    diagnostics
        What a learner reports about how reliable its merits are, or None.
    names
        Names of the arms, or None.

    Examples
    --------
    >>> found = Estimate(np.array([0.30, 0.10]), np.array([0.01, 0.02]), queries=400)
    >>> found
    Estimate(m=2, queries=400, merit=0.1..0.3, stderr=0.01..0.02)
    >>> found.merit - 2 * found.stderr
    array([0.28, 0.06])
    """

    merit: Floats
    stderr: Floats
    queries: int
    marginals: Floats | None = None
    asked: Ints | None = None
    intervals: Floats | None = None
    diagnostics: Any = None
    changes: tuple[Change, ...] | None = None
    names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        seen = self.merit[~np.isnan(self.merit)]
        errors = self.stderr[~np.isnan(self.stderr)]
        shown = f"m={len(self.merit)}, queries={self.queries}, merit={span(seen)}"
        return f"Estimate({shown}, stderr={span(errors)})"

    def _repr_html_(self) -> str:
        order = np.argsort(-np.nan_to_num(self.merit, nan=-np.inf), kind="stable")[: MAX_ROWS + 1]
        arms = np.arange(len(self.merit)) if self.names is None else np.array(self.names, object)
        columns = {
            "arm": arms,
            "merit": self.merit,
            "standard error": self.stderr,
            "marginal": self.marginals,
            "asked": self.asked,
        }
        return html_table({n: x[order] for n, x in columns.items() if x is not None}, len(arms))

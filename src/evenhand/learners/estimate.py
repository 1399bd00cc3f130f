"""What a learner has to say about the arms, in one value."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from evenhand.typing import Floats, Ints

SHOWN = 20  # arms in a table


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Estimate:
    """All conclusions of a learner at one time.

    Attributes
    ----------
    merit
        (m,) estimated merits, nan where there are none.
    marginals
        (m,) what the next query gives each arm, scaled to sum to k.
    asked
        (m,) how often each arm was in a queried set.
    names
        Names of the arms, or None.
    stderr
        (m,) standard errors of the merits; None where the learner knows none.
    intervals
        (m, 2) 95 % intervals for the merits that hold whenever one looks; None likewise.
    diagnostics
        How well the merits are founded; None where the learner has nothing to say.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=3, k=1, names=["ada", "bob", "cy"], seed=1)
    >>> learner.tell(batch := learner.ask(1), 1)
    >>> learner.estimate()
    Estimate(3 arms, 1 asked; most merit: cy 0.75, ada 0.5, bob 0.5)
    """

    merit: Floats
    marginals: Floats
    asked: Ints
    names: tuple[str, ...] | None = None
    stderr: Floats | None = None
    intervals: Floats | None = None
    diagnostics: Any = None

    def label(self, arm: int) -> str:
        """Return an arm's name, or its number where it has none."""
        return str(arm) if self.names is None else self.names[arm]

    @property
    def _by_merit(self) -> list[int]:
        return np.argsort(-np.nan_to_num(self.merit, nan=-np.inf), kind="stable").tolist()

    def __repr__(self) -> str:
        m, n_seen = len(self.merit), int(np.sum(self.asked > 0))
        best = [f"{self.label(a)} {self.merit[a]:.3g}" for a in self._by_merit[:3]]
        known = "no merits" if np.isnan(self.merit).all() else f"most merit: {', '.join(best)}"
        return f"Estimate({m} arms, {n_seen} asked; {known})"

    def _repr_html_(self) -> str:
        columns = {"merit": self.merit, "marginal": self.marginals, "asked": self.asked}
        if self.stderr is not None:
            columns["stderr"] = self.stderr
        head = "".join(f"<th>{name}</th>" for name in ("arm", *columns))
        rows = [
            f"<tr><td>{escape(self.label(a))}</td>"
            + "".join(f"<td>{values[a]:.4g}</td>" for values in columns.values())
            + "</tr>"
            for a in self._by_merit[:SHOWN]
        ]
        more = max(0, len(self.merit) - SHOWN)
        rest = f"<p>and {more} more arms</p>" if more else ""
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>{rest}"

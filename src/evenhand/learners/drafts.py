"""What passes between a learner and the rules of the exchange."""

from typing import Any, NamedTuple

import numpy as np

from evenhand.exchange import Exposure
from evenhand.typing import Bools, Ints


class Draft(NamedTuple):
    """What a learner asks, before its rows are numbered and become a batch."""

    orders: Ints
    sizes: Ints
    exposure: Exposure
    notes: dict[str, Ints]  # what the ledger keeps of each row
    times: Ints | None = None  # given where nothing is to be learnt

    @classmethod
    def unlearnt(cls, sets: Ints, times: Ints, exposure: Exposure) -> "Draft":
        """Full sets from which nothing is learnt."""
        return cls(sets, np.full((len(sets), 1), sets.shape[1]), exposure, {}, times)


class Asked(NamedTuple):
    """What was asked in some rows: the sizes (n, s) queried, and what the learner kept of them."""

    sizes: Ints
    kept: Any
    left: Bools | None = None  # rows with an arm that is gone; None where there is none

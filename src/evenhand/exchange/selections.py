"""How often each arm was selected."""

import numpy as np

from evenhand.typing import Ints, compiled


@compiled
def count_selections(selections: Ints, orders: Ints, sizes: Ints, times: Ints) -> None:
    """Count each arm's memberships in the queried prefixes."""
    k = orders.shape[1]
    ends = np.zeros(k + 1, np.int64)  # prefixes of a row by their length
    for i in range(len(orders)):
        ends[:] = 0
        for size in sizes[i]:
            ends[size] += times[i]
        inside = 0
        for r in range(k - 1, -1, -1):
            inside += ends[r + 1]
            if inside > 0:  # entries past the longest prefix may be anything
                selections[orders[i, r]] += inside

"""Which share of queries is of which size."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_number, check_vector
from evenhand.typing import Floats

SINGLE = 0.6  # share of queries of one arm


def size_shares(k: int, full: float | None, sizes: ArrayLike | None) -> Floats:
    """Return the shares of queries of 1..k arms, checked."""
    if full is not None and sizes is not None:
        raise ValueError("give full, the share of sets of k, or sizes, the shares of all: not both")
    if full is not None:
        return _mostly_full(k, full)
    if sizes is None:
        rest = np.full(k, (1.0 - SINGLE) / max(1, k - 1))
        rest[0] = SINGLE if k > 1 else 1.0
        return rest
    shares = check_vector("sizes", sizes, 0.0, np.inf)
    if shares.shape != (k,):
        raise ValueError(
            f"sizes must hold k={k} shares, those of queries of 1..{k} arms, got {len(shares)}"
        )
    if not shares.all():
        r = int(np.argmin(shares)) + 1
        raise ValueError(
            f"sizes must give every size a share above 0, got 0 for sets of {r}: a merit is the "
            f"mean of gains at all sizes up to k={k}, so without sets of {r} merits are not "
            "identifiable; give them a small share, such as 0.01"
        )
    # those of a saved learner sum to 1 already: dividing again would change their last digits
    return shares if abs(shares.sum() - 1.0) < 1e-12 else shares / shares.sum()


def _mostly_full(k: int, full: float) -> Floats:
    """Shares of sizes where so many sets are full: half of the others hold one arm."""
    full = check_number("full", full, -np.inf, np.inf)
    if not (0.0 < full < 1.0 or (k == 1 and 0.0 <= full <= 1.0)):
        raise ValueError(
            f"full must lie strictly between 0 and 1, as 0.95 for 95 %, got full={full:g}: merits "
            "need some smaller sets; FullSets is for those who can show none"
        )
    shares = np.full(k, 0.5 * (1.0 - full) / max(1, k - 2))
    shares[0] = (0.5 if k > 2 else 1.0) * (1.0 - full)
    shares[-1] = full if k > 1 else 1.0
    return shares

"""What an estimator of merits returns."""

from typing import NamedTuple

from evenhand.typing import Floats


class Estimate(NamedTuple):
    """Estimated merits with their standard errors and what they cost."""

    values: Floats
    stderr: Floats
    queries: int

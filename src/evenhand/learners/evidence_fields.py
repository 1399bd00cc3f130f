"""What evidence remembers, and what it must look like when it is read back."""

from evenhand.exchange.fields import ANY, COUNT, Field, Fields
from evenhand.learners import columns
from evenhand.typing import Floats, Shorts


def fields(m: int, k: int) -> Fields:
    """What evidence remembers."""
    number, above_0 = Field(-1e300, 1e300), Field(1e-12, 1e300)
    cells = "singles weighted together cells curve saturation scatter expected extra"
    return {
        **dict.fromkeys(cells.split(), number),
        "weight": Field(0.0, 1e300),
        "noise": Field(0.0, 1e300, (ANY,), _noise),
        **dict.fromkeys(("worth", "reference", "own", "centre", "spread", "extra_spread"), above_0),
        "met": number,
        "merit": number,
        "variance": Field(0.0),
        "edge": Field(0.0, 0.5),
        "gamma": Field(1e-4, 1e300),
        # of orders, those beyond the arms are not read
        "orders": Field(-1, 2**31, (ANY, k), _sets, any_width=True),
        "rewards": Field(-1e30, 1e30, (ANY,)),
        "keeping": Field(0, 1),
        "told": COUNT,
        "due": COUNT,
        "faded": COUNT,
        "start": Field(0.0, 2.0**62),
        "carried": Field(-1e300, 1e300, (ANY, m, 4), lambda x: _all_or_none(x, k)),
        "away": Field(shape=(ANY, columns.width(k))),
        "largest": Field(1.0, 1e300),
    }


def _all_or_none(carried: Floats, k: int) -> str | None:
    return None if len(carried) in (0, k - 1) else "must hold all sizes"


def _noise(noise: Floats) -> str | None:
    good = len(noise) in (2, 3) and bool((noise[2:] >= 1.0).all())
    return None if good else "must hold two numbers and a factor of at least 1"


def _sets(orders: Shorts) -> str | None:
    behind = orders < 0
    good = orders.shape[1] == 1 or not behind[:, :2].any()
    return None if good and not (behind[:, :-1] & ~behind[:, 1:]).any() else "must hold larger sets"

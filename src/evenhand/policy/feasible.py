"""Whether terms can be satisfied, and by what numbers they cannot."""

from collections.abc import Iterable, Sequence

import numpy as np

from evenhand.policy.projection import Bounds
from evenhand.typing import Bools, Ints

SLACK = 1e-11  # sums may be off by rounding: twenty floors of 5 % make 100 %
UNITS = {"shares": "share of slots", "marginals": "marginal"}


def check_arms(
    bounds: Bounds, out: Bools, ids: Ints, names: Sequence[str] | None, k: int, unit: str | None
) -> None:
    """Refuse floors that an arm cannot have: above one slot, above its cap, or of an arm out."""
    word, factor = in_words(unit, k)
    unmet = (out & (bounds.low > 0.0)) | (bounds.low > bounds.high + SLACK)
    if not unmet.any():
        return
    a = int(np.argmax(unmet))
    arm = repr(names[a]) if names is not None else str(ids[a])
    floor, cap = bounds.low[a] / factor, 0.0 if out[a] else bounds.high[a] / factor
    if bounds.low[a] > 1.0 + SLACK:
        raise ValueError(
            f"floors must not ask for more than one slot of a set, {word} {1 / factor:g}, got "
            f"{floor:g} for arm {arm} with k={k}; an arm is in a set once or not at all"
        )
    raise ValueError(
        f"floors must not exceed caps, got floor {floor:g} and cap {cap:g} ({word}) for arm "
        f"{arm}; lower the one or raise the other"
    )


def check_sums(bounds: Bounds, groups: Iterable[str], k: int, unit: str | None) -> None:
    """Refuse floors that leave too few slots, and caps that leave too many."""
    word, factor = in_words(unit, k)
    slack = SLACK * k
    lows, highs = np.zeros(len(bounds.group_low)), np.zeros(len(bounds.group_low))
    inside = bounds.group >= 0
    np.add.at(lows, bounds.group[inside], bounds.low[inside])
    np.add.at(highs, bounds.group[inside], bounds.high[inside])
    for name, least, most, floor, cap in zip(
        groups, lows, highs, bounds.group_low, bounds.group_high, strict=True
    ):
        if least > cap + slack:
            raise ValueError(
                f"the cap of group {name!r} must leave its arms their floors, which add up to "
                f"{least / factor:g} ({word}), got {cap / factor:g}; raise it or lower them"
            )
        if most < floor - slack:
            raise ValueError(
                f"the floor of group {name!r} must be within the reach of its arms, whose caps "
                f"add up to {most / factor:g} ({word}), got {floor / factor:g}; lower it or "
                "raise them"
            )
    least = bounds.low[~inside].sum() + np.maximum(lows, bounds.group_low).sum()
    most = bounds.high[~inside].sum() + np.minimum(highs, bounds.group_high).sum()
    total = f"{k / factor:g} ({word}) for k={k}"
    if least > k + slack:
        raise ValueError(
            f"floors must add up to at most {total}, got {least / factor:g} for "
            f"{len(bounds.low)} arms; lower them"
        )
    if most < k - slack:
        shown = int(np.sum(bounds.high > 0.0))
        raise ValueError(
            f"caps must add up to at least {total}, got {most / factor:g} for {shown} arms "
            "that may be shown; raise them, or lower k"
        )


def in_words(unit: str | None, k: int) -> tuple[str, float]:
    """Name of a unit, and how many marginals one of it is."""
    return UNITS[unit or "marginals"], float(k) if unit == "shares" else 1.0

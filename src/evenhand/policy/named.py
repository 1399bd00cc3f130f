"""Numbers said of arms, by id or by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.checks import check_number, check_vector
from evenhand.typing import Bools, Floats, Ints

Arm = int | str  # an id, or a name
OTHERS = "*"  # stands for all arms that are not mentioned


def check_arm(where: str, arm: Any) -> Arm:
    """Return an id of at least 0 or a name."""
    if isinstance(arm, str) and arm:
        return arm
    if isinstance(arm, int | np.integer) and not isinstance(arm, bool) and arm >= 0:
        return int(arm)
    raise TypeError(f"{where} must name arms by id or name, got {arm!r}")


def per_arm(name: str, given: Any) -> dict[Arm, float]:
    """Return floors or caps as numbers by arm."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {
            check_arm(name, arm): check_number(f"{name}[{arm!r}]", number, 0.0, np.inf)
            for arm, number in given.items()
        }
    if np.ndim(given) == 0:
        return {OTHERS: check_number(name, given, 0.0, np.inf)}
    return dict(enumerate(check_vector(name, given, 0.0, np.inf).tolist()))


def places(ids: Ints, names: Sequence[str] | None) -> dict[Arm, int]:
    """Columns of arms, by id and by name."""
    by_id: dict[Arm, int] = {int(arm): column for column, arm in enumerate(ids)}
    return by_id | {name: column for column, name in enumerate(names or ())}


def spread(
    numbers: Mapping[Arm, float], default: float, columns: Mapping[Arm, int], m: int
) -> tuple[Floats, Bools]:
    """Numbers by column (m,), and whether each was said of the arm itself; others are left out."""
    result, said = np.full(m, numbers.get(OTHERS, default)), np.zeros(m, np.bool_)
    for arm, number in numbers.items():
        column = columns.get(arm, -1)
        if column < 0:
            continue
        if said[column]:
            raise ValueError(f"arms must be given once, got {arm!r} by id and by name")
        result[column], said[column] = number, True
    return result, said


def short(numbers: Mapping[Arm, float]) -> str:
    """Return the numbers as they are shown."""
    if list(numbers) == [OTHERS]:
        return f"{numbers[OTHERS]:g}"
    some = ", ".join(f"{arm!r}: {number:g}" for arm, number in list(numbers.items())[:4])
    return f"{{{some}{', ...' if len(numbers) > 4 else ''}}}"

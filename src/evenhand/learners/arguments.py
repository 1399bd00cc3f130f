"""What a learner was made with: its constructor's arguments, as JSON and back, and in short."""

import inspect
from typing import Any

import numpy as np

from evenhand import designs
from evenhand.designs import Design

DESIGNS = [
    thing
    for thing in vars(designs).values()
    if isinstance(thing, type) and issubclass(thing, Design) and not inspect.isabstract(thing)
]  # those that a saved learner may name


# arguments that came later than files that can be read: what learners without them did
LATER: dict[str, Any] = {
    "full": None,
    "prior": None,
    "rewards": [0.0, 1.0],
    "empty": 0.0,
    "terms": None,
    "watch": False,
}
USUAL = LATER | {"watch": True}  # what learners do not mention of themselves


def options(kind: type) -> list[str]:
    """Names of a learner's constructor arguments, apart from the seed."""
    return [name for name in inspect.signature(kind).parameters if name != "seed"]


def as_json(value: Any) -> Any:
    """Return an argument as JSON: designs by name, arrays as lists."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, tuple):
        return [as_json(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def in_short(value: Any) -> str:
    """Return an argument as it is shown: few digits, and no long lists."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_short, value[:6]))}{', ...' if len(value) > 6 else ''}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def arguments(kind: type, config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as arguments of the constructor."""
    made = {name: x for name, x in LATER.items() if name in options(kind)} | config
    if sorted(made) != sorted(options(kind)):
        raise ValueError(f"config must give {options(kind)}, got {sorted(config)}")
    for name in ("design", "rounding"):
        if name in made:
            made[name] = next((d for d in DESIGNS if d.__name__ == made[name]), made[name])
    return made

"""What a learner remembers, declared field by field: written, read and checked from that."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
ANY = -1  # any length of an axis


class Field(NamedTuple):
    """What values an attribute may have.

    Attributes
    ----------
    low, high
        Smallest and largest entry; none may be nan.
    shape
        Shape of an array, :data:`ANY` for any length; None for the shape it has in a new learner.
    rule
        A function that returns what is wrong with a value, or None.
    any_width
        Whether whole numbers of two or four bytes both will do.
    """

    low: float = -math.inf
    high: float = math.inf
    shape: tuple[int, ...] | None = None
    rule: Callable[[Any], str | None] | None = None
    any_width: bool = False


COUNT = Field(0, 2**62)
Fields = dict[str, Field]  # by attribute, dotted where it belongs to a part


def read(owner: object, fields: Fields) -> tuple[dict[str, float], dict[str, Array]]:
    """Return the fields' values: numbers, and copies of arrays, by name; None is left out."""
    found = {_key(path): _get(owner, path) for path in fields}
    arrays = {name: x.copy() for name, x in found.items() if isinstance(x, np.ndarray)}
    return {name: x for name, x in found.items() if isinstance(x, int | float)}, arrays


def write(owner: object, fields: Fields, values: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Set the fields of a new learner to what :func:`read` returned, refusing anything else."""
    for path, field in fields.items():
        name, now = _key(path), _get(owner, path)
        found: Any
        if name in values:
            found = _checked_number(name, values[name], now, field)
        elif name in arrays:
            found = _checked_array(name, arrays[name], now, field)
        elif now is None:
            continue
        else:
            raise ValueError(f"{name} is missing")
        wrong = field.rule(found) if field.rule else None
        if wrong:
            raise ValueError(f"{name} {wrong}")
        *parents, last = path.split(".")
        setattr(reduce(getattr, parents, owner), last, found)


def _key(path: str) -> str:
    return path.replace("_", "", 1) if path.startswith("_") else path


def _get(owner: object, path: str) -> Any:
    return reduce(getattr, path.split("."), owner)


def _checked_number(name: str, value: Any, now: Any, field: Field) -> int | float:
    kind = int if type(now) is int else float
    if type(value) is not kind or not field.low <= value <= field.high:
        raise ValueError(
            f"{name} must be a number of type {kind.__name__} in [{field.low:g}, {field.high:g}], "
            f"got {value!r}"
        )
    return value


def _checked_array(name: str, array: Any, now: Any, field: Field) -> Array:
    shape = field.shape if field.shape is not None else np.shape(now)
    kind = now.dtype if isinstance(now, np.ndarray) else np.dtype(np.float64)
    kinds = (np.dtype(np.int16), np.dtype(np.int32)) if field.any_width else (kind,)
    fits = (
        isinstance(array, np.ndarray)
        and array.dtype in kinds
        and array.ndim == len(shape)
        and all(want in (ANY, have) for want, have in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise ValueError(
            f"{name} must be an array of {kind} and shape {shape}, "
            f"got {getattr(array, 'dtype', type(array).__name__)} and {np.shape(array)}"
        )
    if array.size and not bool(np.all((array >= field.low) & (array <= field.high))):
        raise ValueError(f"{name} must lie in [{field.low:g}, {field.high:g}] and not be nan")
    return np.array(array, order="C")

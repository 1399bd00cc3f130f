"""What evidence holds of single arms: taken out and put back when arms come, go or change."""

from typing import TYPE_CHECKING

import numpy as np

from evenhand.typing import Floats, Ints, Shorts

if TYPE_CHECKING:
    from evenhand.learners.evidence import Evidence

AXES = {  # arrays with an entry per arm, and the axis of the arms
    "singles": 0,
    "weighted": 1,
    "carried": 1,
    "together": 0,
    "cells": 0,
    "worth": 0,
    "extra": 0,
    "own": 0,
    "reference": 0,
    "edge": 0,
    "merit": 0,
    "variance": 0,
    "start": 0,
}


def width(k: int) -> int:
    """Numbers that evidence holds of one arm."""
    return 5 + 8 * (k - 1) + 3 + 13 + 8


def pack(evidence: "Evidence") -> Floats:
    """All that evidence holds of single arms, a row per arm."""
    m = evidence.m
    parts = [np.moveaxis(getattr(evidence, name), axis, 0) for name, axis in AXES.items()]
    return np.concatenate([part.reshape(m, -1) for part in parts], axis=1)


def unpack(evidence: "Evidence", rows: Floats) -> None:
    """Set what evidence holds of single arms, to as many arms as there are rows."""
    at, m = 0, len(rows)
    for name, axis in AXES.items():
        old = getattr(evidence, name)
        shape = list(old.shape)
        shape.pop(axis)
        size = int(np.prod(shape))
        part = rows[:, at : at + size].reshape(m, *shape)
        setattr(evidence, name, np.ascontiguousarray(np.moveaxis(part, 0, axis)))
        at += size


def on_its_own(cells: Floats, reference: Floats) -> Floats:
    """Cells of arms of which only their own blocks are kept, and nothing that they share."""
    xx, xe, ee, x, eta = cells[:, :5].T
    zero = np.zeros_like(xx)
    by_reference = xx * reference, xe * reference
    return np.column_stack([xx, xe, ee, x, eta, xx, xe, *by_reference, xe, ee, zero, zero])


def in_columns(orders: Shorts, places: Ints) -> tuple[Shorts, Ints]:
    """Sets in the new columns of their arms, without those that hold an arm that is gone.

    Returns the sets, and which of the old ones they are.
    """
    mapped = np.append(places, -1)[orders]
    stays = np.flatnonzero(~np.any((mapped < 0) & (orders >= 0), axis=1))
    result: Shorts = mapped[stays].astype(orders.dtype, copy=False)  # type: ignore[assignment]
    return result, stays


def moments(recent: Floats, every: Floats) -> Floats:
    """Sums of 1 and the first four powers of some rewards, of which n, y and y^2 are known.

    The third and fourth are taken to be about the mean what they are for all rewards (5,).
    """
    n, y, yy = recent
    if n <= 0.0:
        return np.zeros(5)
    mean, old = y / n, every[1:] / max(every[0], 1.0)
    square = max(yy / n - mean**2, 0.0)
    third = old[2] - 3.0 * old[0] * old[1] + 2.0 * old[0] ** 3
    fourth = old[3] - 4.0 * old[0] * old[2] + 6.0 * old[0] ** 2 * old[1] - 3.0 * old[0] ** 4
    cube = third + 3.0 * mean * square + mean**3
    last = fourth + 4.0 * mean * third + 6.0 * mean**2 * square + mean**4
    return n * np.array([1.0, mean, square + mean**2, cube, max(last, 0.0)])

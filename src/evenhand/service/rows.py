"""Rows of a plan as bytes: what web workers hand out, and what is true if drawing differs.

Web workers import this: it must not import the compiler, or they would start seconds later.
"""

import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from evenhand.exchange import Plan, Rows
    from evenhand.typing import Ints

HEADER = struct.Struct("<IB")  # rows, bytes per arm


def to_bytes(plan: "Plan", rows: "Rows") -> bytes:
    """Sizes and arms of one-query rows, the arms by their ids."""
    sizes = rows.sizes[:, 0]
    inside = np.arange(rows.orders.shape[1]) < sizes[:, None]
    arms = plan.arms[rows.orders[inside]]
    width = 2 if plan.arms.max() < 2**16 else 4
    kind = "<u2" if width == 2 else "<u4"
    return (
        HEADER.pack(len(sizes), width) + sizes.astype("<u2").tobytes() + arms.astype(kind).tobytes()
    )


class Flat(NamedTuple):
    """Arms of all rows, one row after the other, and where each begins."""

    arms: "Ints"
    begins: "Ints"

    def row(self, i: int) -> list[int]:
        """Ids of the arms of a row."""
        return self.arms[self.begins[i] : self.begins[i + 1]].tolist()

    def rows(self, first: int, stop: int) -> list[list[int]]:
        """Ids of the arms of some rows."""
        begins = self.begins[first : stop + 1].tolist()
        arms = self.arms[begins[0] : begins[-1]].tolist()
        return [arms[a - begins[0] : b - begins[0]] for a, b in pairwise(begins)]


def from_bytes(data: bytes) -> Flat:
    """Read what :func:`to_bytes` gave."""
    n, width = HEADER.unpack_from(data)
    sizes = np.frombuffer(data, "<u2", n, HEADER.size)
    arms = np.frombuffer(data, "<u2" if width == 2 else "<u4", offset=HEADER.size + 2 * n)
    return Flat(arms.astype(np.int64), np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))


def drawn_elsewhere(plan: "Plan", data: bytes) -> "Rows":
    """Return stored rows of a plan as its learner wants them, weights and all."""
    flat = from_bytes(data)
    sizes = np.diff(flat.begins)
    orders = np.full((len(sizes), plan.k), -1)
    inside = np.arange(plan.k) < sizes[:, None]
    orders[inside] = np.searchsorted(plan.arms, flat.arms)
    return plan.weigh(orders, sizes[:, None])


def checksum(plan: bytes, rows: bytes) -> int:
    """Return a number for a plan and its rows."""
    return zlib.crc32(rows, zlib.crc32(plan))

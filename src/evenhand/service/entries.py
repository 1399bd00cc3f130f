"""The log: what happened to an experiment, in order; its state follows from that."""

import json
import zlib
from typing import Any, NamedTuple

import numpy as np

PUBLISH, FOLD, CHANGE, MIGRATE = "publish", "fold", "change", "migrate"
TOLD = np.dtype([("epoch", "<i8"), ("row", "<i4"), ("reward", "<f8")])  # one row of a fold


class Entry(NamedTuple):
    """One entry."""

    kind: str
    payload: bytes

    def chain(self, before: int, seq: int) -> int:
        """Return a number for this entry and all before it, given that of those before."""
        return zlib.crc32(self.payload, zlib.crc32(f"{seq} {self.kind}".encode(), before))


def publish(least: int, epoch: int, crc: int) -> Entry:
    """A new plan of at least so many rows; the number of its epoch and the rows' checksum."""
    return _as_json(PUBLISH, {"least": least, "epoch": epoch, "crc": crc})


def fold(rows: list[tuple[int, int, float | None]]) -> Entry:
    """Rewards taken in: epoch, row and reward of each, None where it will never come."""
    told = np.array([(e, r, np.nan if y is None else y) for e, r, y in rows], TOLD)
    return Entry(FOLD, told[np.lexsort((told["row"], told["epoch"]))].tobytes())


def change(call: str, arguments: dict[str, Any]) -> Entry:
    """A named call on the learner."""
    return _as_json(CHANGE, {"call": call, "arguments": arguments})


def migrate(before: str, after: str, how: str) -> Entry:
    """The learner goes on under another release, from the snapshot with this entry's number."""
    return _as_json(MIGRATE, {"from": before, "to": after, "how": how})


def _as_json(kind: str, content: dict[str, Any]) -> Entry:
    return Entry(kind, json.dumps(content, separators=(",", ":"), sort_keys=True).encode())

"""The frame around a learner's state: format, version, and a checksum over all of it."""

import json
import zlib
from typing import Any

import numpy as np

FORMAT, VERSION = "evenhand-learner", 3


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """Return content, JSON but for its "arrays", with its frame."""
    snapshot = {"format": FORMAT, "version": VERSION, **content}
    return {**snapshot, "checksum": checksum(snapshot)}


def check_frame(snapshot: Any) -> None:
    """Refuse what is no snapshot, one of another version, or one that was changed."""
    if not isinstance(snapshot, dict) or snapshot.get("format") != FORMAT:
        raise ValueError(f"snapshot must be one of a learner (format {FORMAT!r}), got another")
    if snapshot.get("version") != VERSION:
        raise ValueError(
            f"snapshot must have version {VERSION}, got {snapshot.get('version')!r}; "
            "evenhand.load reads version 2, the release that made it any other"
        )
    try:
        right = checksum({n: x for n, x in snapshot.items() if n != "checksum"})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"snapshot must hold JSON and arrays, got {error!r}") from None
    if snapshot.get("checksum") != right:
        raise ValueError(
            "snapshot must be as it was made, but its checksum is wrong: something was changed"
        )


def checksum(snapshot: dict[str, Any]) -> int:
    """Return a number for all of a snapshot."""
    arrays = snapshot["arrays"]
    plain = {name: value for name, value in snapshot.items() if name != "arrays"}
    total = zlib.crc32(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), total)
        total = zlib.crc32(array.data, total)
    return total

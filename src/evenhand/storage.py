"""Learners on disk: one file each, no pickle, never half written."""

import json
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from evenhand.learners.learner import Learner, kind_of

JSON_KEY = "evenhand"
BROKEN = (
    *(ValueError, TypeError, KeyError, OSError, EOFError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
)


def save(learner: Learner, path: str | Path) -> None:
    """Write a learner to one .npz file, replacing an older one in a single step.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.learners import URS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(URS(m=5, k=2, seed=1), f"{folder}/urs.npz")
    ...     load(f"{folder}/urs.npz").m
    5
    """
    snapshot = learner.snapshot()
    arrays = snapshot.pop("arrays")
    arrays[JSON_KEY] = np.array(json.dumps(snapshot))
    target = Path(path)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load(path: str | Path) -> Learner:
    """Read a learner written by :func:`save`; it goes on bit for bit."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        snapshot = json.loads(str(arrays.pop(JSON_KEY)))
    except FileNotFoundError:
        raise
    except BROKEN as error:
        raise ValueError(f"{path} must be a file written by evenhand.save, got {error!r}") from None
    snapshot["arrays"] = arrays
    return kind_of(snapshot).restore(snapshot)

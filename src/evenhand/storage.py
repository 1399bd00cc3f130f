"""Learners on disk: one file each, no pickle, never half written."""

import json
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from evenhand.files import replacing
from evenhand.learners.learner import Learner, learner_of
from evenhand.learners.version2 import upgrade

Array = np.ndarray[Any, Any]

JSON_KEY = "evenhand"
ZIP = b"PK"  # how such a file begins
BROKEN = (
    *(ValueError, TypeError, KeyError, OSError, EOFError, NotImplementedError),
    *(RuntimeError, RecursionError),  # an encrypted zip, or JSON nested without end
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
    data = to_bytes(learner)
    with replacing(path) as file:
        file.write(data)


def load(path: str | Path) -> Learner:
    """Read a learner written by :func:`save`; it goes on bit for bit.

    Files of the version before are read too: what was learnt is kept, rows that were out are not.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.learners import IWKSVFair
    >>> learner = IWKSVFair(m=6, k=2, horizon=1000, gamma=1.0, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(learner, f"{folder}/learner.npz")
    ...     restored = load(f"{folder}/learner.npz")
    >>> bool((restored.ask().orders == learner.ask().orders).all())
    True
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path} must be a file written by evenhand.save, got {error!r}") from None
    return from_bytes(data, str(path))


def to_bytes(learner: Learner) -> bytes:
    """All of a learner, as :func:`save` writes it."""
    if not isinstance(learner, Learner):
        raise TypeError(f"learner must be a Learner, got {type(learner).__name__}")
    snapshot = learner.snapshot()
    file = BytesIO()
    _write(file, snapshot.pop("arrays"), snapshot)
    return file.getvalue()


def from_bytes(data: bytes, name: str = "data") -> Learner:
    """Make the learner that gave these bytes; ``name`` is what an error calls them."""
    try:
        arrays, snapshot = _read(BytesIO(data))
        snapshot["arrays"] = arrays
    except BROKEN as error:
        found = repr(error)
        if not data.startswith(ZIP):
            found = "another kind of file" if data else "an empty file"
        elif isinstance(error, zipfile.BadZipFile | EOFError | zlib.error):
            found = "a damaged one, or only a part of it"
        elif isinstance(error, KeyError):
            found = "arrays without a learner"
        raise ValueError(f"{name} must be a file written by evenhand.save, got {found}") from None
    try:
        snapshot = upgrade(snapshot)
        return learner_of(snapshot).restore(snapshot)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read: {error}") from None


def write_arrays(path: str | Path, arrays: dict[str, Array], values: dict[str, Any]) -> None:
    """Write named arrays, and values as JSON beside them, as one file in a single step."""
    with replacing(path) as file:
        _write(file, arrays, values)


def read_arrays(path: str | Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read what :func:`write_arrays` wrote."""
    with Path(path).open("rb") as file:
        return _read(file)


def _write(file: BinaryIO, arrays: dict[str, Array], values: dict[str, Any]) -> None:
    np.savez(file, allow_pickle=False, **arrays, **{JSON_KEY: np.array(json.dumps(values))})


def _read(file: BinaryIO) -> tuple[dict[str, Array], dict[str, Any]]:
    with np.load(file, allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    return arrays, json.loads(str(arrays.pop(JSON_KEY)))

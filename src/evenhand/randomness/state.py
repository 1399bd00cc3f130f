"""The state of a numpy generator as bytes, and back."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")  # numpy's own, whose states are known
PLACES = {"pos": 624, "buffer_pos": 4, "has_uint32": 1}  # the largest that places may be
INTEGER = 16  # bytes: the widest number in any of their states


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Return a bit generator's state; the length depends on its kind alone."""
    return b"".join(_leaves(state))


def kind_of(rng: np.random.Generator) -> str:
    """Return the name of the bit generator, which must be one of numpy's own."""
    name = type(rng.bit_generator).__name__
    if name not in KINDS:
        raise TypeError(f"the bit generator must be one of {', '.join(KINDS)}, got {name}")
    return name


def with_state(kind: str, data: bytes) -> np.random.Generator:
    """Make a generator of a kind in the state that gave these bytes."""
    if kind not in KINDS:
        raise ValueError(f"the bit generator must be one of {', '.join(KINDS)}, got {kind!r}")
    bits = getattr(np.random, kind)(0)
    if len(data) != (size := len(to_bytes(bits.state))):
        raise ValueError(f"a state of {kind} has {size} bytes, got {len(data)}")
    state = _filled(bits.state, BytesIO(data))
    for part in (state, state["state"]):
        for name in part.keys() & PLACES.keys():
            if part[name] > PLACES[name]:  # numpy would read outside its buffer
                raise ValueError(f"{name} of {kind} must be at most {PLACES[name]}")
    bits.state = state
    return np.random.Generator(bits)


def _leaves(state: Any) -> list[bytes]:
    """Numbers and arrays of a nested state, in its own order; names are left out."""
    if isinstance(state, dict):
        return [leaf for value in state.values() for leaf in _leaves(value)]
    if isinstance(state, np.ndarray):
        return [state.tobytes()]
    return [] if isinstance(state, str) else [int(state).to_bytes(INTEGER, "little")]


def _filled(like: Any, data: BytesIO) -> Any:
    """Return a state of the same form with its numbers read from the data."""
    if isinstance(like, dict):
        return {name: _filled(value, data) for name, value in like.items()}
    if isinstance(like, np.ndarray):
        return np.frombuffer(data.read(like.nbytes), like.dtype)
    return like if isinstance(like, str) else int.from_bytes(data.read(INTEGER), "little")

"""Reading back what a design gave as its state: nothing in it is trusted."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.checks import check_budget
from evenhand.typing import Floats

TOLERANCE = 1e-6  # how far arrays of a state may be from what its log weights imply


def read_array(state: Mapping[str, Floats], name: str) -> Floats:
    """Return a copy of one array of a state."""
    if name not in state:
        raise ValueError(f"state must hold {name}, got {', '.join(state) or 'nothing'}")
    array = np.array(state[name])
    if array.dtype != np.float64:
        raise ValueError(f"state: {name} must be an array of floats, got dtype {array.dtype}")
    return array


def read_log_weights(state: Mapping[str, Floats], k: Any) -> tuple[Floats, int]:
    """Return the log weights of a state, and k."""
    log_weights = read_array(state, "log_weights")
    if log_weights.ndim != 1 or log_weights.size == 0:
        raise ValueError(f"state: log_weights must be a vector, got shape {log_weights.shape}")
    k, always, possible = check_log_weights("state: log_weights", log_weights, k)
    if always < possible and not always < k < possible:
        raise ValueError(
            "state: log_weights must be infinite where there is no choice, got finite ones with "
            f"k={k}, {always} arms always in and {possible} arms ever in"
        )
    return log_weights, k


def read_part(
    state: Mapping[str, Floats], name: str, found: Floats, rule: str = "follow from log_weights"
) -> Floats:
    """Return an array of a state, which must agree with the one found from its log weights."""
    given = read_array(state, name)
    if given.shape != found.shape:
        raise ValueError(f"state: {name} must have shape {found.shape}, got {given.shape}")
    if not np.allclose(given, found, rtol=0.0, atol=TOLERANCE):
        raise ValueError(
            f"state: {name} must {rule}, got {name} off by more than {TOLERANCE:g}; "
            "take a state as a design gave it"
        )
    return given


def check_log_weights(name: str, weights: Floats, k: Any) -> tuple[int, int, int]:
    """Return k, the number of arms that are always in, and that of arms that can be in."""
    if np.isnan(weights).any():
        raise ValueError(f"{name} must not be nan, got {name}[{int(np.isnan(weights).argmax())}]")
    _, k = check_budget(len(weights), k)
    always = int(np.count_nonzero(weights == np.inf))
    possible = int(np.count_nonzero(weights > -np.inf))
    if not always <= k <= possible:
        raise ValueError(
            f"k must lie between the {always} arms always in and the {possible} arms ever in, "
            f"got k={k}"
        )
    return k, always, possible

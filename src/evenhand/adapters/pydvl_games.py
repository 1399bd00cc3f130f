"""Utilities of pyDVL as games."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.games import SetFunction
from evenhand.typing import Ints


def from_pydvl(utility: Any) -> SetFunction:
    r"""Make a game of a utility of pyDVL: its arms are the points, or groups, of the data.

    pyDVL itself is not needed. Values are centred, :math:`V(S) - V(\emptyset)`, as the value of the
    empty set is 0 here; so Shapley values, K = M, are pyDVL's own.

    Parameters
    ----------
    utility
        A utility with its ``training_data``, as ``ModelUtility(...).with_dataset(train)``: called
        with a sample, of which it reads ``subset``, the indices, it returns a number.

    Examples
    --------
    >>> import evenhand
    >>> class Size:
    ...     training_data = ["a", "b", "c"]
    ...     def __call__(self, sample):
    ...         return 0.1 + 0.2 * len(sample.subset)
    >>> evenhand.kshapley(from_pydvl(Size()), k=2).round(6)
    array([0.2, 0.2, 0.2])
    """
    data = getattr(utility, "training_data", None)
    if not callable(utility) or data is None:
        raise TypeError(
            "utility must be one of pyDVL's with training_data, got "
            f"{type(utility).__name__}; call utility.with_dataset(train) first"
        )
    indices = np.asarray(getattr(data, "indices", np.arange(len(data))))
    value = Utility(utility, indices, float(utility(Sample(None, indices[:0]))))
    return SetFunction.per_set(value, len(indices))


@dataclass(frozen=True)
class Sample:
    """What a utility is called with: indices of training data, of which ``idx`` is none."""

    idx: None
    subset: Ints

    def __hash__(self) -> int:
        return int(hashlib.sha256(self.subset.tobytes()).hexdigest(), 16)


@dataclass(frozen=True)
class Utility:
    """A utility less its value of nothing; it can be sent to other processes if the utility can."""

    utility: Any
    indices: Ints
    empty: float

    def __call__(self, arms: frozenset[int]) -> float:
        """Value of one set."""
        sample = Sample(None, self.indices[np.sort(np.fromiter(arms, np.int64))])
        return float(self.utility(sample)) - self.empty

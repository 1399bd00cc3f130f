"""Any function of a set as a game."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_reals, check_integer, check_sets
from evenhand.games.game import NoisyMean
from evenhand.games.noise import Noise
from evenhand.typing import Bools, Floats


class SetFunction(NoisyMean):
    """A user's function of a set as a game.

    The function is never asked for the empty set, whose value is 0. Merits are defined for any
    real function; rewards must lie in a range, and a learner must be made with the same one.

    Parameters
    ----------
    f
        Takes a boolean (n, m) matrix, one row per set, and returns n values. For a function of
        one set at a time see :meth:`per_set`.
    m
        Number of arms.
    noise
        :class:`~evenhand.games.Bernoulli`, :class:`~evenhand.games.TruncatedGaussian`, anything
        with their ``observe``, or None for exact observations. It works on means scaled to [0, 1].
    rewards, empty
        Smallest and largest possible reward, and that of the empty set. What f returns and
        ``pull`` gives holds ``empty``; ``value`` and merits are what sets bring beyond it.

    Examples
    --------
    >>> best = SetFunction(lambda sets: (sets * [0.2, 0.5, 0.9]).max(axis=1), m=3)
    >>> best.value(np.array([[True, True, False], [False, False, False]]))
    array([0.5, 0. ])
    >>> sales = SetFunction(lambda sets: 20 + sets @ [5, 10, 30], m=3, rewards=(0, 65), empty=20)
    >>> sales.value(np.array([[True, True, False], [False, False, False]]))
    array([15.,  0.])
    """

    def __init__(
        self,
        f: Callable[[Bools], ArrayLike],
        m: int,
        *,
        noise: Noise | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of a boolean (n, m) matrix, got {f!r}")
        super().__init__(check_integer("m", m, 1), noise, rewards, empty)
        self.f = f

    @classmethod
    def per_set(
        cls,
        f: Callable[[frozenset[Any]], float],
        m: int,
        *,
        noise: Noise | None = None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> "SetFunction":
        """Make a game of a plain function of one set, given as a frozenset of arms.

        Examples
        --------
        >>> game = SetFunction.per_set(lambda arms: len(arms) / 4, m=4)
        >>> game.value(np.array([[True, False, True, False]]))
        array([0.5])
        """
        if not callable(f):
            raise TypeError(f"f must be a function of a frozenset of arms, got {f!r}")

        return cls(_PerSet(f), m, noise=noise, rewards=rewards, empty=empty)

    @property
    def one_by_one(self) -> bool:
        """Whether the function is one of a single set, made by :meth:`per_set`."""
        return isinstance(self.f, _PerSet)

    def value(self, sets: Bools) -> Floats:
        """Mean V(S) of each row of a boolean (n, m) matrix; V of the empty set is 0."""
        sets = check_sets(sets, self.m)
        values = np.zeros(len(sets))
        asked = sets.any(axis=1)
        if asked.any():
            values[asked] = self._ask(sets[asked]) - self.empty
        return values

    def _ask(self, sets: Bools) -> Floats:
        """Call the user's function and check what it returns."""
        try:
            answer = self.f(sets)
        except Exception as error:
            explain(
                error,
                "f was given a boolean (n, m) matrix, one row per set; "
                "for a function of a single set use SetFunction.per_set",
            )
            raise
        values = as_reals("f", answer, "return real numbers")
        if values.shape != (len(sets),):
            raise ValueError(
                f"f must return one value per set, shape ({len(sets)},), got {values.shape}; "
                "for a function of a single set use SetFunction.per_set"
            )
        if not np.isfinite(values).all():
            worst = int(np.argmin(np.isfinite(values)))
            arms = np.flatnonzero(sets[worst]).tolist()
            raise ValueError(f"f must return finite values, got {values[worst]} for the set {arms}")
        return values


class _PerSet:
    """A function of one set as one of many: a class, so that other processes can be sent it."""

    def __init__(self, f: Callable[[frozenset[Any]], float]) -> None:
        self.f = f

    def __call__(self, sets: Bools) -> Floats:
        answers = []
        for row in sets:
            one = frozenset(np.flatnonzero(row).tolist())
            try:
                answers.append(self.f(one))
            except Exception as error:
                explain(error, f"f was given a frozenset of arms: {sorted(one)}")
                raise
        for answer in answers:
            if np.ndim(answer) != 0:
                raise ValueError(f"f must return one number per set, got {answer!r}")
        return np.array(answers)


def explain(error: Exception, note: str) -> None:
    """Add a note to an error that has none."""
    if not getattr(error, "__notes__", None):
        error.add_note(note)

"""To and from shapiq: games and values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_vector
from evenhand.games import Game, SetFunction
from evenhand.games.noise import Noise
from evenhand.merit import Estimate
from evenhand.typing import Bools, Floats


def from_shapiq(game: Any, *, noise: Noise | None = None) -> SetFunction:
    r"""Make a game of this package of a shapiq game.

    The other way round is :func:`to_shapiq_game`.

    Parameters
    ----------
    game
        A ``shapiq.Game``: called with a boolean (n, m) matrix, it returns n values. They are
        centred, :math:`V(S) - V(\emptyset)`, as the value of the empty set is 0 here.
    noise
        As for :class:`~evenhand.games.SetFunction`. Rewards must lie in [0, 1], merits need not.

    Examples
    --------
    >>> import evenhand
    >>> from shapiq_games.synthetic import DummyGame
    >>> ours = from_shapiq(DummyGame(4, interaction=(1, 2)))
    >>> evenhand.kshapley(ours, k=4).round(4)  # K = M: the Shapley value
    array([0.25, 0.75, 0.75, 0.25])
    >>> evenhand.kshapley(ours, k=2).round(4)  # the pair is harder to bring together
    array([0.25  , 0.4167, 0.4167, 0.25  ])
    """
    if not (callable(game) and hasattr(game, "n_players")):
        raise TypeError(
            f"game must be a shapiq game with n_players, got {type(game).__name__}; "
            "wrap a plain function with evenhand.games.SetFunction"
        )
    m = int(game.n_players)
    empty = float(np.asarray(game(np.zeros((1, m), np.bool_)), dtype=np.float64).reshape(-1)[0])

    return SetFunction(Centred(game, empty), m, noise=noise)


@dataclass(frozen=True, slots=True)
class Centred:
    """A shapiq game less the value of its empty set; it can be sent to other processes."""

    game: Any
    empty: float

    def __call__(self, sets: Bools) -> Floats:
        """Values (n,) of the rows of a boolean matrix."""
        return np.asarray(self.game(sets), dtype=np.float64) - self.empty


def to_shapiq_game(game: Game) -> Any:
    """Make a ``shapiq.Game`` of a game of this package, for all that shapiq can do with one.

    It takes one coalition or many, as shapiq's games do, and as tuples of players or names too.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> theirs = to_shapiq_game(NoisyOr([0.5, 0.5, 0.2]))
    >>> theirs((0, 1)), theirs(np.array([True, False, False]))
    (array([0.75]), array([0.5]))
    """
    shapiq, ours = _shapiq("to_shapiq_game"), game

    class Shown(shapiq.Game):  # type: ignore[misc, name-defined]
        """A game of evenhand's."""

        def value_function(self, coalitions: Bools) -> Floats:
            return ours.value(np.asarray(coalitions, dtype=np.bool_))

    names = getattr(game, "names", None)
    return Shown(game.m, normalize=False, player_names=None if names is None else list(names))


def from_shapiq_values(values: Any) -> Floats:
    """Return the values (m,) of single players in shapiq's ``InteractionValues``.

    Examples
    --------
    >>> from_shapiq_values(to_shapiq([0.3, 0.2]))
    array([0.3, 0.2])
    """
    if not (hasattr(values, "n_players") and hasattr(values, "get_n_order_values")):
        raise TypeError(f"values must be shapiq's InteractionValues, got {type(values).__name__}")
    return np.asarray(values.get_n_order_values(1), dtype=np.float64)


def to_shapiq(merit: ArrayLike | Estimate) -> Any:
    """Make shapiq ``InteractionValues`` of merits, for shapiq's plots and tables.

    shapiq has no name for K-Shapley values. They are labelled ``SV``, the Shapley value, which is
    what they are for K = M.

    Parameters
    ----------
    merit
        (m,) merits, exact or of a learner, or an :class:`~evenhand.merit.Estimate`, whose number
        of queries is handed on as shapiq's budget.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import NoisyOr
    >>> values = to_shapiq(evenhand.kshapley(NoisyOr([0.5, 0.5, 0.2]), k=2))
    >>> values.n_players, round(float(values[(2,)]), 4)
    (3, 0.15)
    """
    shapiq = _shapiq("to_shapiq")
    queries = merit.queries if isinstance(merit, Estimate) else None
    given = merit.merit if isinstance(merit, Estimate) else merit
    values = check_vector("merit", given, -np.inf, np.inf)
    return shapiq.InteractionValues(
        values={(arm,): float(value) for arm, value in enumerate(values)},
        index="SV",
        n_players=len(values),
        min_order=0,
        max_order=1,
        estimated=queries is not None,
        estimation_budget=queries,
        baseline_value=0.0,
    )


def _shapiq(name: str) -> Any:
    try:
        import shapiq
    except ImportError:
        raise ImportError(
            f"evenhand.adapters.{name} needs shapiq; install it with: "
            "pip install 'shapiq>=1.4,<1.5'"
        ) from None
    return shapiq

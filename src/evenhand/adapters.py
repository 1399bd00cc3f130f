"""To and from other packages: shapiq's games and values, columns for Polars and pandas."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_vector
from evenhand.games import SetFunction
from evenhand.games.noise import Noise
from evenhand.merit import Estimate
from evenhand.simulation import Run
from evenhand.typing import Bools, Floats

Columns = dict[str, np.ndarray[Any, Any]]


def from_shapiq(game: Any, *, noise: Noise | None = None) -> SetFunction:
    r"""Make a game of this package of a shapiq game.

    The other way round needs no adapter: ``game.value`` of any game here takes what shapiq passes
    to a game, so ``shapiq.ExactComputer(game.value, n_players=game.m)`` works.

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

    def centred(sets: Bools) -> Floats:
        return np.asarray(game(sets), dtype=np.float64) - empty

    return SetFunction(centred, m, noise=noise)


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
    try:
        from shapiq import InteractionValues
    except ImportError:
        raise ImportError(
            "evenhand.adapters.to_shapiq needs shapiq; install it with: "
            "pip install 'shapiq>=1.4,<1.5'"
        ) from None
    queries = merit.queries if isinstance(merit, Estimate) else None
    given = merit.merit if isinstance(merit, Estimate) else merit
    values = check_vector("merit", given, -np.inf, np.inf)
    return InteractionValues(
        values={(arm,): float(value) for arm, value in enumerate(values)},
        index="SV",
        n_players=len(values),
        min_order=0,
        max_order=1,
        estimated=queries is not None,
        estimation_budget=queries,
        baseline_value=0.0,
    )


def arms(run: Run) -> Columns:
    """One row per arm: what it was due, what it got, and how the learner judges it.

    ``polars.DataFrame`` and ``pandas.DataFrame`` both take the columns as they are.

    Returns
    -------
    dict
        ``arm``; ``name``, where the arms have names; ``due`` and ``exposure``, shares that sum to
        1; ``selections``, the count behind the exposure; ``merit``, the learner's estimate;
        ``marginal``, what its next query gives the arm.

    Examples
    --------
    >>> import evenhand, polars
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> run = evenhand.simulate(URS(m=3, k=1, seed=1), additive([0.2, 0.3, 0.5]), 900, seed=1)
    >>> polars.DataFrame(arms(run)).columns
    ['arm', 'due', 'exposure', 'selections', 'merit', 'marginal']
    """
    named = {} if run.names is None else {"name": np.array(run.names)}
    return {
        "arm": np.arange(len(run.selections)),
        **named,
        "due": run.due,
        "exposure": run.exposure,
        "selections": run.selections,
        "merit": run.merit,
        "marginal": run.marginals,
    }


def curve(run: Run) -> Columns:
    """One row per checkpoint: ``queries`` and cumulative ``regret``; see :func:`arms`.

    Examples
    --------
    >>> import evenhand, polars
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> run = evenhand.simulate(URS(m=3, k=1, seed=1), additive([0.2, 0.3, 0.5]), 900, seed=1)
    >>> polars.DataFrame(curve(run)).columns
    ['queries', 'regret']
    """
    return {"queries": run.checkpoints, "regret": run.regret}

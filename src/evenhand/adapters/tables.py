"""Columns for Polars and pandas."""

from typing import Any

import numpy as np

from evenhand.simulation import Run

Columns = dict[str, np.ndarray[Any, Any]]


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

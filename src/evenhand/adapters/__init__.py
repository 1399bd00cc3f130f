"""To and from other packages: shapiq, pyDVL, scikit-learn, and columns for Polars and pandas."""

from evenhand.adapters.learning import data_sources, ensemble_members, features
from evenhand.adapters.pydvl_games import from_pydvl
from evenhand.adapters.shapiq_games import (
    from_shapiq,
    from_shapiq_values,
    to_shapiq,
    to_shapiq_game,
)
from evenhand.adapters.tables import arms, curve

__all__ = [
    "arms",
    "curve",
    "data_sources",
    "ensemble_members",
    "features",
    "from_pydvl",
    "from_shapiq",
    "from_shapiq_values",
    "to_shapiq",
    "to_shapiq_game",
]

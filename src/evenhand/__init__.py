"""Merit-fair selection: choose K of M arms in proportion to what they contribute."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import (
        account,
        adapters,
        datasets,
        designs,
        exchange,
        games,
        learners,
        merit,
        metrics,
        plot,
        policy,
        portrait,
        testing,
        theory,
    )
    from evenhand.exchange import AlreadyTold, Batch, Expired
    from evenhand.merit import kshapley
    from evenhand.planning import outlook
    from evenhand.policy import fair_policy
    from evenhand.simulation import Interrupted, Run, simulate
    from evenhand.storage import load, save

__version__ = "0.2.0"

__all__ = [
    "AlreadyTold",
    "Batch",
    "Expired",
    "Interrupted",
    "Run",
    "account",
    "adapters",
    "datasets",
    "designs",
    "exchange",
    "fair_policy",
    "games",
    "kshapley",
    "learners",
    "load",
    "merit",
    "metrics",
    "outlook",
    "plot",
    "policy",
    "portrait",
    "save",
    "simulate",
    "testing",
    "theory",
]

# which module a name comes from; all other names of __all__ are modules themselves
_HOMES = {
    "AlreadyTold": "exchange",
    "Batch": "exchange",
    "Expired": "exchange",
    "Interrupted": "simulation",
    "Run": "simulation",
    "fair_policy": "policy",
    "kshapley": "merit",
    "load": "storage",
    "outlook": "planning",
    "save": "storage",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for (PEP 562): the command line starts without numba."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name)
    if home is None:
        return import_module(f"{__name__}.{name}")  # the import itself binds the name
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *(name for name in __all__ if name not in globals())])

"""Saved learners of version 2, the format before plans and ledgers: read as version 3."""

import warnings
from typing import Any

import numpy as np

from evenhand.exchange.snapshot import FORMAT, sealed
from evenhand.learners.arguments import arguments, options
from evenhand.learners.learner import Learner
from evenhand.randomness.state import to_bytes

LATER = {
    "gamma": None,
    "names": None,
    "full": None,
}  # arguments that configurations did not hold then


def upgrade(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot of version 2 as one of version 3; any other is returned as it is.

    What was learnt and the random numbers go on; rows that were out or drawn ahead are dropped,
    and how often each arm was asked is counted from here.
    """
    if snapshot.get("format") != FORMAT or snapshot.get("version") != 2:
        return snapshot
    kinds = Learner.kinds.values()
    own = {
        kind.__name__: kind for kind in kinds if kind.__module__.startswith("evenhand.learners.")
    }
    kind = own.get(str(snapshot.get("learner")))
    if kind is None:
        raise ValueError(f"a learner of version 2 must be one of {sorted(own)}")
    try:
        return _converted(kind, snapshot)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"the learner of version 2 is damaged: {error!r}") from None


def _converted(kind: type[Learner], old: dict[str, Any]) -> dict[str, Any]:
    config = {n: x for n, x in (LATER | old["config"]).items() if n in options(kind)}
    new = kind(**arguments(kind, config), seed=0).snapshot()
    new.pop("checksum")
    known = {**old["arrays"], **old["state"]}
    if "evidence.singles" in new["arrays"]:  # higher powers were not kept: those of 0/1 rewards
        n, total, _, squares = known["weighted"][0].T
        known["singles"] = np.column_stack([n, total, squares, squares, squares])
        known["weighted"] = known["weighted"][1:]
    for keys in (new["values"], new["arrays"]):
        for name in keys:
            tail = name.rsplit(".", 1)[-1]
            if tail in known and not name.startswith("ledger."):
                keys[name] = known[tail]
    new["values"] = {n: x if isinstance(x, float) else int(x) for n, x in new["values"].items()}
    new["values"]["queries"] = old["queries"]
    for name in ("committed", "order"):  # of a learner that has ended its exploration
        if name in known:
            new["arrays"][name] = known[name]
    if "pending_arms" in known:  # gains chosen and not yet asked
        orders, sizes = known["pending_orders"], known["pending_sizes"]
        behind = np.arange(orders.shape[1]) >= sizes.max(axis=1, initial=0)[:, None]
        new["arrays"] |= {"orders": np.where(behind, -1, orders), "drawn": sizes}
    new["rng"] = {"kind": old["rng"]["bit_generator"], "state": to_bytes(old["rng"]).hex()}
    if any(name.startswith("open_") for name in known):
        warnings.warn("rows that were out in the saved learner cannot be told", stacklevel=4)
    return sealed(new)

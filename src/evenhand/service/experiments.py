"""Experiments as they are made and kept: name, arms, learner, range and mode of rewards."""

import json
import re
import secrets
from typing import Any

import msgspec

from evenhand.exchange.roster import check_names
from evenhand.service.database import Connection
from evenhand.service.receipts import new_secret
from evenhand.service.replica import SERVED, make_learner

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
FULL = 0.95  # share of full sets: what is shown here are pages
MODES = ("explicit", "window")
MOST_ARMS = 100_000
MOST_EXPERIMENTS = 1_000


class Prior(msgspec.Struct, forbid_unknown_fields=True):
    """Merits believed beforehand, one per arm, and their standard errors, null where unknown."""

    merit: list[float]
    stderr: list[float | None]


class New(msgspec.Struct, forbid_unknown_fields=True):
    """An experiment to be made."""

    name: str
    arms: list[str]
    k: int
    learner: str = "even-hand"
    full: float | None = None
    sizes: list[float] | None = None
    rewards: tuple[float, float] = (0.0, 1.0)
    empty: float = 0.0
    prior: Prior | None = None
    mode: str = "explicit"
    window: float | None = None
    default: float | None = None
    activation: str = "ask"
    seed: int | None = None


class Exists(ValueError):  # noqa: N818
    """An experiment has this name already."""


def create(c: Connection, new: New) -> int:
    """Write a new experiment, inside a transaction; return its id."""
    config, rewards = configuration(new), reward_rules(new)
    if c.execute("select 1 from experiments where name=?", (new.name,)):
        raise Exists(f"name must be one that no experiment has, got {new.name!r}")
    count = c.execute("select count(*) from experiments")[0][0]
    if count >= MOST_EXPERIMENTS:
        raise ValueError(
            f"there must be at most {MOST_EXPERIMENTS} experiments, got {count} already"
        )
    row = c.execute(
        "insert into experiments(name, config, rewards, secrets, created) "
        f"values(?,?,?,?,{c.now}) returning id",
        (new.name, json.dumps(config), json.dumps(rewards), json.dumps([new_secret()])),
    )
    number: int = row[0][0]
    c.execute("insert into folders(exp) values(?)", (number,))
    c.many(
        f"insert into arms(exp, id, name, joined) values(?,?,?,{c.now})",
        [(number, arm, name) for arm, name in enumerate(new.arms)],
    )
    return number


def configuration(new: New) -> dict[str, Any]:
    """Return all that the learner's state depends on besides the log, checked."""
    if not NAME.fullmatch(new.name):
        raise ValueError(
            "name must be 1 to 63 of a-z, 0-9, - and _, beginning with a letter or digit, "
            f"got {new.name[:80]!r}"
        )
    if new.learner not in SERVED:
        raise ValueError(
            f"learner must be one of {', '.join(SERVED)}, got {new.learner!r}: the others need a "
            "horizon, or rows in order, and run in one process of your own"
        )
    if not 1 <= len(new.arms) <= MOST_ARMS:
        raise ValueError(f"arms must hold 1 to {MOST_ARMS} names, got {len(new.arms)}")
    check_names(new.arms, len(new.arms))
    options: dict[str, Any] = {"rewards": list(new.rewards), "empty": new.empty}
    if new.learner == "even-hand":
        full = FULL if new.full is None and new.sizes is None and new.k > 1 else new.full
        options |= {"full": full, "sizes": new.sizes, "prior": None}
        if new.prior is not None:
            errors = [float("inf") if x is None else x for x in new.prior.stderr]
            options["prior"] = [new.prior.merit, errors]
    else:
        for name in ("full", "sizes", "prior"):
            if getattr(new, name) is not None:
                raise ValueError(f"{name} is for the learner even-hand only, got {new.learner!r}")
    seed = secrets.randbits(63) if new.seed is None else new.seed
    config = {
        "learner": new.learner,
        "m": len(new.arms),
        "k": new.k,
        "seed": seed,
        "options": options,
        "owner": secrets.token_hex(16),
    }
    make_learner(config)
    return config


def reward_rules(new: New) -> dict[str, Any]:
    """Return the range and mode of rewards, checked."""
    low, high = new.rewards
    rules: dict[str, Any] = {"low": low, "high": high, "mode": new.mode}
    if new.mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {new.mode!r}")
    if new.mode == "explicit":
        if new.window is not None or new.default is not None:
            raise ValueError("window and default are for mode window, got mode explicit")
        return rules
    if new.window is None or not 0.0 < new.window <= 366 * 86400.0:
        raise ValueError(f"window must be seconds in (0, one year], got {new.window}")
    default = new.empty if new.default is None else new.default
    if not low <= default <= high:
        raise ValueError(f"default must lie in [{low:g}, {high:g}], got {default:g}")
    if new.activation not in ("ask", "shown"):
        raise ValueError(f"activation must be ask or shown, got {new.activation!r}")
    return rules | {"window": new.window, "default": default, "activation": new.activation}

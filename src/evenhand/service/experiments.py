"""Experiments as they are made and kept: name, arms, learner, range and mode of rewards."""

import json
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from evenhand.service import messages
from evenhand.service.database import Connection
from evenhand.service.messages import New
from evenhand.service.receipts import new_secret

FULL = 0.95  # share of full sets: what is shown here are pages
MOST_EXPERIMENTS = 1_000


class Exists(ValueError):  # noqa: N818
    """An experiment has this name already."""


class Ready(NamedTuple):
    """An experiment that was checked."""

    new: New
    config: dict[str, Any]
    rewards: dict[str, Any]


def prepare(new: New) -> Ready:
    """Check an experiment; its learner is made once for that."""
    return Ready(new, configuration(new), reward_rules(new))


def create(c: Connection, ready: Ready) -> int:
    """Write a new experiment, inside a transaction; return its id."""
    new, config, rewards = ready
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
    from evenhand.exchange.roster import check_names  # when needed: they load the compiler
    from evenhand.policy import Terms
    from evenhand.service.changes import by_id
    from evenhand.service.replica import make_learner

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
    if new.terms is not None:
        if new.learner == "urs":
            raise ValueError("terms are for the learners even-hand and full-sets, got 'urs'")
        ids = {name: arm for arm, name in enumerate(new.arms)}
        agreed = Terms.of(by_id(terms_by_id(new.terms, partial(_found, ids))))
        options["terms"] = agreed and agreed.to_json()
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


def terms_by_id(terms: messages.Terms, find: Callable[[str], int]) -> dict[str, Any]:
    """Return terms with ids instead of names."""
    said: dict[str, Any] = {"unit": terms.unit, "power": terms.power}
    for name in ("floors", "caps"):
        given = getattr(terms, name)
        if isinstance(given, dict):
            given = {n if n == "*" else str(find(n)): x for n, x in given.items()}
        said[name] = given
    groups = terms.groups or {}
    said["groups"] = {
        name: {"arms": [find(n) for n in g.arms], "floor": g.floor, "cap": g.cap}
        for name, g in groups.items()
    }
    return said


def _found(ids: dict[str, int], name: str) -> int:
    if name not in ids:
        raise ValueError(f"terms must be about arms of the experiment, got {name[:80]!r}")
    return ids[name]


def reward_rules(new: New) -> dict[str, Any]:
    """Return the range and mode of rewards, checked."""
    low, high = new.rewards
    rules: dict[str, Any] = {"low": low, "high": high, "mode": new.mode}
    if new.mode == "explicit":
        if new.window is not None or new.default is not None:
            raise ValueError("window and default are for mode window, got mode explicit")
        return rules
    if new.window is None or not 0.0 < new.window <= 366 * 86400.0:
        raise ValueError(f"window must be seconds in (0, one year], got {new.window}")
    default = new.empty if new.default is None else new.default
    if not low <= default <= high:
        raise ValueError(f"default must lie in [{low:g}, {high:g}], got {default:g}")
    return rules | {"window": new.window, "default": default, "activation": new.activation}

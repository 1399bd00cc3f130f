"""Whether what is stored holds together: replay against snapshot, rewards against the log."""

import contextlib
import json
from functools import partial
from typing import NamedTuple

import numpy as np

from evenhand.service import entries, recovery, rows
from evenhand.service.database import Connection
from evenhand.service.replica import Diverged, Replica


class Finding(NamedTuple):
    """What a check found about one experiment."""

    experiment: str
    entries: int  # entries replayed
    rewards: int  # counted, each once
    unfolded: int  # told, not yet counted
    leased: int  # rows leased to workers
    wrong: list[str]  # what does not hold


def check(c: Connection, experiment: int) -> Finding:
    """Replay an experiment from its beginning and compare all bits, while no folder works."""
    name = c.execute("select name from experiments where id=?", (experiment,))[0][0]
    wrong = list[str]()
    replica, start = _beginning(c, experiment)
    replica.supply(partial(recovery.stored_epoch, c, experiment))
    try:
        recovery.replay(c, experiment, replica)
        short = recovery.recover(c, experiment).replica
        if short.digest() != replica.digest():
            wrong.append("replay from the beginning and from the newest snapshot differ")
    except (Diverged, ValueError) as error:
        wrong.append(str(error))
    wrong += _wrong_epochs(c, experiment)
    counted, unfolded, wrong_rewards = _wrong_rewards(c, experiment)
    leased, twice = _leases(c, experiment)
    wrong += wrong_rewards + twice
    return Finding(name, replica.seq - start, counted, unfolded, leased, wrong)


def _beginning(c: Connection, experiment: int) -> tuple[Replica, int]:
    """Return the first state from which this release can replay.

    That is the one after the last migration, or the oldest snapshot if entries before it are gone.
    """
    last = c.execute(
        "select coalesce(max(seq), 0) from log where exp=? and kind=?",
        (experiment, entries.MIGRATE),
    )[0][0]
    kept = c.execute("select coalesce(min(seq), 1) from log where exp=?", (experiment,))[0][0]
    first = max(last, kept - 1)
    found = c.execute(
        "select seq, data, extra from snapshots where exp=? and seq>=? order by seq limit 1",
        (experiment, first),
    )
    if first and found:
        return Replica.restored(bytes(found[0][1]), found[0][2]), found[0][0]
    return Replica.new(recovery.configuration(c, experiment)), 0


def _wrong_epochs(c: Connection, experiment: int) -> list[str]:
    """Compare stored plans and rows with the checksums in the log."""
    said = {}
    for (payload,) in c.execute(
        "select payload from log where exp=? and kind=?", (experiment, entries.PUBLISH)
    ):
        with contextlib.suppress(ValueError, KeyError):  # a damaged one says nothing
            entry = json.loads(bytes(payload))
            said[entry["epoch"]] = entry["crc"]
    wrong = []
    for number, plan, drawn, crc in c.execute(
        "select number, plan, rows, crc from epochs where exp=? and rows is not null",
        (experiment,),
    ):
        if not said.get(number, crc) == crc == rows.checksum(bytes(plan), bytes(drawn)):
            wrong.append(f"epoch {number} is not as the log says")
    return wrong


def _wrong_rewards(c: Connection, experiment: int) -> tuple[int, int, list[str]]:
    """Compare the rewards in the log with those told: each once, with its own value."""
    counted: dict[tuple[int, int], float] = {}
    wrong, log = [], 0
    for seq, payload in c.execute(
        "select seq, payload from log where exp=? and kind=?", (experiment, entries.FOLD)
    ):
        for epoch, row, reward in np.frombuffer(bytes(payload), entries.TOLD).tolist():
            if (epoch, row) in counted:
                wrong.append(f"row {epoch}.{row} was counted twice, in entry {seq} again")
            counted[epoch, row] = reward
            log += 1
    unfolded = 0
    kept = c.execute("select coalesce(min(seq), 1) from log where exp=?", (experiment,))[0][0]
    for epoch, row, reward, fold in c.execute(
        "select epoch, row, reward, fold from tells where exp=?", (experiment,)
    ):
        if fold is None:
            unfolded += 1
            if (epoch, row) in counted:
                wrong.append(f"row {epoch}.{row} is counted, but not marked so")
            continue
        if fold < kept:  # its entry was deleted
            continue
        found = counted.get((epoch, row))
        same = found is not None and (np.isnan(found) if reward is None else found == reward)
        if not same:
            wrong.append(f"row {epoch}.{row} has reward {reward}, but {found} was counted")
    return log, unfolded, wrong


def _leases(c: Connection, experiment: int) -> tuple[int, list[str]]:
    """Count leased rows; no two leases may hold the same one."""
    wrong, total, before = [], 0, (-1, 0)
    for epoch, first, stop in c.execute(
        "select epoch, first, stop from leases where exp=? order by epoch, first", (experiment,)
    ):
        if epoch == before[0] and first < before[1]:
            wrong.append(f"row {epoch}.{first} was leased twice")
        before = (epoch, stop)
        total += stop - first
    return total, wrong

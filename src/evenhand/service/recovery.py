"""The state of an experiment, from its newest snapshot and the log behind it."""

import json
import logging
import zlib
from functools import partial
from typing import Any, NamedTuple

from evenhand.service.database import Connection
from evenhand.service.entries import Entry
from evenhand.service.release import release
from evenhand.service.replica import Diverged, Replica, Stored

EVERY = 200  # entries between snapshots
KEEP = 2  # snapshots
log = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """A state, and how it was found."""

    replica: Replica
    snapshot: int  # entry of the snapshot, 0 if there was none
    replayed: int  # entries behind it
    release: str  # that wrote the snapshot
    same_bits: bool  # else rows come out differently here, and the stored ones were taken


def recover(c: Connection, experiment: int) -> Recovered:
    """Follow the log behind the newest snapshot that can be read."""
    found = _newest_snapshot(c, experiment)
    stored = partial(stored_epoch, c, experiment)

    def begin() -> Replica:
        if found is None:
            replica = Replica.new(configuration(c, experiment))
        else:
            replica = Replica.restored(found.data, found.extra)
        replica.supply(stored)
        return replica

    replica, same = begin(), True
    try:
        replayed = replay(c, experiment, replica)
    except Diverged as error:
        log.error("diverged", extra={"experiment": experiment, "error": str(error)})
        replica, same = begin(), False
        replayed = replay(c, experiment, replica, stored=stored)
    if found is None:
        return Recovered(replica, 0, replayed, release(), same)
    return Recovered(replica, found.seq, replayed, found.release, same)


class Snapshot(NamedTuple):
    """A snapshot as it is stored."""

    seq: int
    data: bytes
    extra: str
    release: str


def _newest_snapshot(c: Connection, experiment: int) -> Snapshot | None:
    """Return the newest snapshot that is not damaged."""
    for seq, data, extra, crc, made_by in c.execute(
        "select seq, data, extra, crc, release from snapshots where exp=? order by seq desc",
        (experiment,),
    ):
        if checksum(bytes(data), extra) == crc:
            return Snapshot(seq, bytes(data), extra, made_by)
    return None


def stored_epoch(c: Connection, experiment: int, number: int) -> tuple[bytes, bytes]:
    """Return the plan and rows of an epoch as they were published."""
    found = c.execute(
        "select plan, rows from epochs where exp=? and number=?", (experiment, number)
    )
    if not found:
        raise ValueError(f"epoch {number} must be stored, but it is not")
    return bytes(found[0][0]), bytes(found[0][1])


def configuration(c: Connection, experiment: int) -> dict[str, Any]:
    """Return what the state depends on besides the log."""
    return json.loads(c.execute("select config from experiments where id=?", (experiment,))[0][0])


def replay(
    c: Connection,
    experiment: int,
    replica: Replica,
    upto: int | None = None,
    stored: Stored | None = None,
) -> int:
    """Follow all entries behind a state; return how many."""
    n, last = 0, -1
    while replica.seq != last:  # in parts: entries may be large
        last = replica.seq
        for seq, kind, payload, crc in c.execute(
            "select seq, kind, payload, crc from log where exp=? and seq>? order by seq limit 1000",
            (experiment, replica.seq),
        ):
            if upto is not None and seq > upto:
                return n
            replica.follow(seq, Entry(kind, bytes(payload)), crc, stored)
            n += 1
    return n


def write_snapshot(c: Connection, experiment: int, replica: Replica) -> None:
    """Write a snapshot, inside a transaction; drop all but the newest and those of migrations."""
    data, extra = replica.snapshot()
    c.execute(
        "insert into snapshots(exp, seq, data, extra, crc, release, at) "
        f"values(?,?,?,?,?,?,{c.now}) on conflict do nothing",
        (experiment, replica.seq, data, extra, checksum(data, extra), release()),
    )
    c.execute(
        "delete from snapshots where exp=? and seq not in "
        "(select seq from snapshots where exp=? order by seq desc limit ?) and seq not in "
        "(select seq from log where exp=? and kind='migrate')",
        (experiment, experiment, KEEP, experiment),
    )


def checksum(data: bytes, extra: str) -> int:
    """Return a number for a snapshot."""
    return zlib.crc32(extra.encode(), zlib.crc32(data))

"""The state of an experiment, from its newest snapshot and the log behind it."""

import json
import zlib
from typing import Any, NamedTuple

from evenhand.service.database import Connection
from evenhand.service.entries import Entry
from evenhand.service.release import release
from evenhand.service.replica import Replica

EVERY = 200  # entries between snapshots
KEEP = 2  # snapshots


class Recovered(NamedTuple):
    """A state, and how it was found."""

    replica: Replica
    snapshot: int  # entry of the snapshot, 0 if there was none
    replayed: int  # entries behind it
    release: str  # that wrote the snapshot


def recover(c: Connection, experiment: int) -> Recovered:
    """Follow the log behind the newest snapshot that can be read."""
    for seq, data, extra, crc, made_by in c.execute(
        "select seq, data, extra, crc, release from snapshots where exp=? order by seq desc",
        (experiment,),
    ):
        if checksum(bytes(data), extra) == crc:
            replica = Replica.restored(bytes(data), extra)
            return Recovered(replica, seq, replay(c, experiment, replica), made_by)
    replica = Replica.new(configuration(c, experiment))
    return Recovered(replica, 0, replay(c, experiment, replica), release())


def configuration(c: Connection, experiment: int) -> dict[str, Any]:
    """Return what the state depends on besides the log."""
    return json.loads(c.execute("select config from experiments where id=?", (experiment,))[0][0])


def replay(c: Connection, experiment: int, replica: Replica, upto: int | None = None) -> int:
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
            replica.follow(seq, Entry(kind, bytes(payload)), crc)
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

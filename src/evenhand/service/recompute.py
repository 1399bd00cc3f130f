"""Whether a published plan follows from the log: replay up to it, and compare all bits.

That needs what made the plan: the same release on the same kind of machine, and the log from a
state that is kept. It runs in a process of its own, so that nobody who asks waits for it.
"""

import argparse
import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from evenhand.service.database import DATABASE, Connection, database

if TYPE_CHECKING:
    from evenhand.service.replica import Replica

PATIENCE = 60.0  # seconds on behalf of a page
BUSY = asyncio.Semaphore(1)  # one at a time per web worker


class Verdict(NamedTuple):
    """What came of it: ``same``, ``other`` or ``cannot``; and in words."""

    word: str
    words: str


def recompute(c: Connection, experiment: int, number: int) -> Verdict:
    """Replay the log up to the plan of an epoch, and compare plan and rows with those stored."""
    from evenhand.service import recovery, rows  # when needed: they load the compiler
    from evenhand.service.replica import Diverged

    stored = c.execute(
        "select plan, rows, crc from epochs where exp=? and number=? and plan is not null",
        (experiment, number),
    )
    if not stored:
        return Verdict("cannot", f"plan {number} is not kept")
    plan, drawn, crc = stored[0]
    target = _entry_of(c, experiment, number)
    if drawn is None or target is None:
        return Verdict("cannot", "the log up to it was compacted; the plan itself was kept")
    if rows.checksum(bytes(plan), bytes(drawn)) != crc or target[1] != crc:
        return Verdict("other", "the stored plan is not the one that the log speaks of")
    start = _start(c, experiment, target[0])
    if isinstance(start, Verdict):
        return start
    first = start.seq
    start.supply(lambda n: recovery.stored_epoch(c, experiment, n))
    try:
        recovery.replay(c, experiment, start, upto=target[0])
    except Diverged:
        return Verdict("other", "the log, followed here, gives other rows: a last digit differs")
    return Verdict(
        "same",
        f"{start.seq - first:,} entries of the log were followed again, and gave the same plan and "
        "the same rows, bit for bit",
    )


def _entry_of(c: Connection, experiment: int, number: int) -> tuple[int, int] | None:
    """Return which entry of the log published an epoch, and the checksum it gives."""
    last = 0
    while part := c.execute(
        "select seq, payload from log where exp=? and kind='publish' and seq>? order by seq "
        "limit 1000",
        (experiment, last),
    ):
        for seq, payload in part:
            said = json.loads(bytes(payload))
            if said["epoch"] == number:
                return int(seq), int(said["crc"])
        last = part[-1][0]
    return None


def _start(c: Connection, experiment: int, target: int) -> "Replica | Verdict":
    """Return a state before an entry from which this release can replay, or why there is none."""
    from evenhand.service import recovery
    from evenhand.service.release import release
    from evenhand.service.replica import Replica

    migrations = [
        (seq, json.loads(bytes(payload))["from"])
        for seq, payload in c.execute(
            "select seq, payload from log where exp=? and kind='migrate' order by seq",
            (experiment,),
        )
    ]
    since = max([seq for seq, _ in migrations if seq <= target], default=0)
    later = [made_by for seq, made_by in migrations if seq > target]
    snapshots = c.execute(
        "select seq, data, extra, release from snapshots where exp=? order by seq", (experiment,)
    )
    made_by = later[0] if later else snapshots[-1][3] if snapshots else release()
    if made_by != release():
        return Verdict(
            "cannot", f"another release or kind of machine made it ({made_by}); this is {release()}"
        )
    usable = [row for row in snapshots if since <= row[0] < target and row[3] == release()]
    if usable:
        return Replica.restored(bytes(usable[-1][1]), usable[-1][2])
    kept = c.execute("select coalesce(min(seq), 1) from log where exp=?", (experiment,))[0][0]
    if since or kept > 1:
        return Verdict("cannot", "no state before it is kept from which the log could be followed")
    return Replica.new(recovery.configuration(c, experiment))


async def elsewhere(url: str, experiment: str, number: int) -> Verdict:
    """Recompute in a process of its own."""
    if BUSY.locked():
        return Verdict("cannot", "another plan is being recomputed; try again in a minute")
    async with BUSY:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evenhand.service.recompute", experiment, str(number),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env=os.environ | {DATABASE: url},
        )  # fmt: skip
        try:
            out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            return Verdict(
                "cannot", f"it takes more than {PATIENCE:.0f} seconds; run: evenhand service "
                f"recompute {experiment} {number}"
            )  # fmt: skip
    try:
        return Verdict(*json.loads(out))
    except ValueError:
        return Verdict("cannot", "it failed; the log of the service says more")


def main() -> None:
    """Print the verdict about one plan, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment")
    parser.add_argument("number", type=int)
    given = parser.parse_args()
    c = database(os.environ[DATABASE]).connect()
    found = c.execute("select id from experiments where name=?", (given.experiment,))
    said = (
        recompute(c, found[0][0], given.number)
        if found
        else Verdict("cannot", "no such experiment")
    )
    print(json.dumps(said))


if __name__ == "__main__":
    main()

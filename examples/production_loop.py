"""A production loop whose process is killed twice and goes on as if nothing had happened.

A process asks for pages, keeps the learner and the receipts of pages still out on disk, and tells
the clicks when they come. It is killed twice, once asking and once telling. The process started
after it finds everything on disk, and the learner ends bit for bit as if it had run in one piece.

Run it with: python examples/production_loop.py
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import evenhand
from evenhand.games import NoisyOr
from evenhand.learners import EvenHand, Learner

WORLD = NoisyOr(np.linspace(0.1, 0.9, 12))  # stands for the visitors; the learner never sees it
QUERIES, OUT = 300, 3  # up to three batches are out at a time
NEVER = 2 * QUERIES


def clicks_on(batch: evenhand.Batch) -> np.ndarray:
    """What the world answers to a batch, however late it is asked."""
    return WORLD.pull(batch.orders, batch.sizes, np.random.default_rng(batch.index[0]))


def serve(folder: Path, die_asking: int = NEVER, die_telling: int = NEVER) -> Learner:
    """Ask and tell until all queries are made, or until killed after so many."""
    saved = folder / "learner.npz"
    if saved.exists():
        learner = evenhand.load(saved)
    else:
        learner = EvenHand(m=12, k=3, seed=1)
    while True:
        receipts = sorted(folder.glob("*.json"))
        if learner.queries < QUERIES and len(receipts) < OUT:
            batch = learner.ask(limit=300)
            # the receipt first: killed before save, the next process asks the same batch again
            (folder / f"{batch.index[0]:09d}.json").write_text(json.dumps(batch.to_dict()))
            evenhand.save(learner, saved)
            if learner.queries >= die_asking:
                os._exit(9)  # no goodbye: as kill -9 would do
        elif receipts:
            batch = evenhand.Batch.from_dict(json.loads(receipts[0].read_text()))
            with contextlib.suppress(evenhand.AlreadyTold):  # killed between save and unlink
                learner.tell(batch, clicks_on(batch))
            evenhand.save(learner, saved)
            if learner.queries >= die_telling:
                os._exit(9)
            receipts[0].unlink()
        else:
            return learner


def main() -> None:
    """Run in three processes, then in one, and compare."""
    with tempfile.TemporaryDirectory() as pieces, tempfile.TemporaryDirectory() as whole:
        for ends in ((QUERIES // 3, NEVER), (NEVER, 2 * QUERIES // 3), (NEVER, NEVER)):
            subprocess.run([sys.executable, __file__, pieces, *map(str, ends)], check=False)
            left = len(list(Path(pieces).glob("*.json")))
            print(f"a process is gone; on disk: a learner and {left} receipts still open")
        one = evenhand.load(Path(pieces) / "learner.npz")
        other = serve(Path(whole))
    print(f"in three processes: {one.queries} queries, next page {one.marginals.round(3)}")
    print(f"in one process:     {other.queries} queries, next page {other.marginals.round(3)}")
    print(f"the same bits: {np.array_equal(one.merit, other.merit)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    else:
        main()

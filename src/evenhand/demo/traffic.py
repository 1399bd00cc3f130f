"""A process that sends traffic: asks what to show, and tells whether anybody bought something.

It reads from standard input how many queries there were so far, which is the world's clock, and
ends with it; on standard output it says once in a while what it has seen.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections import defaultdict
from typing import Any

import numpy as np

from evenhand.demo.client import Client, Row, Unreachable
from evenhand.demo.shop import PLACES, Shop

BATCH = 50  # rows of an ask: a demonstration has to hurry
EVERY = 0.25  # seconds between two words to the parent


class Clock:
    """The number of queries, as the parent says; at its end this process ends too."""

    def __init__(self) -> None:
        self.queries = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        line = b""
        while part := os.read(0, 4096):
            *lines, line = (line + part).split(b"\n")
            if lines:
                self.queries = int(lines[-1])
        os._exit(0)  # the parent is gone, or wants no more


class Seen:
    """What was shown and bought since it was last said."""

    def __init__(self) -> None:
        self.queries = self.bought = self.unlearnt = 0
        self.given: dict[str, float] = defaultdict(float)

    def add(self, rows: list[Row], bought: Any) -> None:
        """Count rows, each place of a set of r arms as 1/r."""
        self.queries += len(rows)
        self.bought += int(bought.sum())
        self.unlearnt += sum(not row.learns for row in rows)
        for row in rows:
            for arm in row.arms:
                self.given[arm] += 1.0 / len(row.arms)


def main() -> None:
    """Send traffic at a rate until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    given = parser.parse_args()
    clock, shop, rng = Clock(), Shop(), np.random.default_rng(given.seed)
    number = {name: i for i, name in enumerate(shop.names)}
    seen, said, due = Seen(), time.monotonic(), time.monotonic()
    with Client(given.url, os.environ["EVENHAND_DEMO_KEY"], patience=5.0) as client:
        experiment = client.experiment("shop")
        while True:
            due = max(due + BATCH / given.rate, time.monotonic() - 1.0)
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                rows = experiment.ask_many(BATCH)
                bought = purchases(rows, number, shop, clock.queries, rng)
                told = [(row.id, y) for row, y in zip(rows, bought.tolist(), strict=True)]
                learnt = [one for one, row in zip(told, rows, strict=True) if row.learns]
                if learnt:
                    experiment.tell_many(learnt)
            except Unreachable:
                continue
            seen.add(rows, bought)
            if time.monotonic() - said >= EVERY:
                print(json.dumps(vars(seen)), flush=True)
                seen, said = Seen(), time.monotonic()


def purchases(
    rows: list[Row], number: dict[str, int], shop: Shop, queries: int, rng: np.random.Generator
) -> Any:
    """Whether anybody bought something, 0 or 1 per row."""
    orders, sizes = np.full((len(rows), PLACES), -1), np.empty((len(rows), 1), np.int64)
    for i, row in enumerate(rows):
        sizes[i] = len(row.arms)
        orders[i, : len(row.arms)] = [number[arm] for arm in row.arms]
    return shop.world.at(queries).pull(orders, sizes, rng)[:, 0]


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)

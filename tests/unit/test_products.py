"""Long products in parts: the same values, and never so much at once that BLAS starts threads."""

import os
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from evenhand import products
from evenhand.products import product


class Counted(np.ndarray):
    """Notes of every product how many multiplications it takes, and how long the vectors are."""

    taken: ClassVar[list[tuple[int, int]]] = []

    def __matmul__(self, other):
        lengths = [*self.shape, *other.shape[1:]]
        self.taken.append((int(np.prod(lengths)), max(lengths)))
        return np.asarray(self) @ np.asarray(other)


LENGTHS = [(), (3,), (40,), (1000,)]


@pytest.mark.parametrize("rows", LENGTHS)
@pytest.mark.parametrize("columns", LENGTHS)
@pytest.mark.parametrize("shared", [0, 1, 8, 300])
def test_parts_are_put_together(rows, columns, shared, monkeypatch):
    monkeypatch.setattr(products, "MOST", 700)
    monkeypatch.setattr(products, "LONGEST", 100)
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(*rows, shared)), rng.normal(size=(shared, *columns))
    found = product(left, right)
    assert np.shape(found) == (*rows, *columns)
    assert np.allclose(found, left @ right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((8, 50_000), (50_000, 8)),
        ((20, 200_000), (200_000,)),
        ((20,), (20, 200_000)),
        ((200_000, 20), (20,)),
        ((8, 8), (8, 200_000)),
        ((50_000,), (50_000,)),
    ],
)
def test_no_part_is_worth_a_thread(left, right):
    rng = np.random.default_rng(2)
    Counted.taken.clear()
    product(rng.normal(size=left).view(Counted), rng.normal(size=right))
    assert len(Counted.taken) > 1
    assert max(taken for taken, _ in Counted.taken) <= products.MOST
    assert max(longest for _, longest in Counted.taken) <= products.LONGEST


def test_short_ones_are_those_of_numpy():
    """To the last bit: what learners of few arms find has not changed."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(10, 534)), rng.normal(size=534)
    assert np.array_equal(product(left, right), left @ right)


BESIDE = """
import os, sys, time
from pathlib import Path
import numpy as np
from evenhand import simulate
from evenhand.games import NoisyOr
from evenhand.learners import EvenHand, band, free, noise, posterior, watch

def beside():
    time.sleep(0.3)  # until threads that have nothing to do are asleep
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        if task.name != str(os.getpid()):
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")

if sys.argv[1] == "numpy":
    for module in (band, free, noise, posterior, watch):
        module.product = np.matmul
m = 40_000
learner, game, before = EvenHand(m, 20, seed=1), NoisyOr(np.linspace(0.0, 0.1, m)), beside()
simulate(learner, game, 2000, target=np.full(m, 20 / m), seed=1)
print(beside() - before)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: BLAS has no threads")
def test_a_learner_of_many_arms_keeps_one_core_busy():
    """And with numpy's own products more than one: else this test would see nothing."""

    def seconds_beside(whose: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", BESIDE, whose],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    assert seconds_beside("ours") <= 0.01
    assert seconds_beside("numpy") >= 0.03

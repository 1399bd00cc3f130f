"""K-Shapley values: exact against shapiq, sampled against shapiq and pyDVL at equal budgets."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import (
    ROOT,
    Row,
    Section,
    alternate,
    faster,
    number,
    plain_table,
    repeat,
    spread_row,
)
from evenhand import merit
from evenhand.games import SetFunction
from evenhand.games.game import prefix_sets
from evenhand.typing import Bools, Floats

PYDVL = Path(os.environ.get("EVENHAND_PYDVL", ROOT / ".venv-pydvl" / "bin" / "python"))
FEW = 8  # seeds for pyDVL, which takes a tenth of a millisecond a query
Estimator = Callable[[int], Floats]  # from a seed to the estimated values


def run(small: bool = False) -> Section:
    """Return the section of the results page."""
    rows, text = sampled_merits(small)
    return Section([*exact_merits(small), *rows], text, ("shapiq",))


class Table:
    """A set function as a table of all its values by bit mask; counts what it is asked."""

    def __init__(self, values: Floats) -> None:
        self.values, self.m = values, len(values).bit_length() - 1
        self.bits = 1 << np.arange(self.m)
        self.asked = 0

    def __call__(self, sets: Bools) -> Floats:
        """Values of the rows of a boolean matrix."""
        sets = np.atleast_2d(sets)
        self.asked += int(sets.any(axis=1).sum())  # the empty set is worth 0 without asking
        return self.values[sets @ self.bits]


def games(m: int) -> dict[str, Floats]:
    """Values of all sets by bit mask: little overlap, much of it, and interactions of all signs."""
    rng = np.random.default_rng(1)
    members = ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.bool_)
    miss = 1.0 - rng.uniform(0.2, 0.9, m)
    worth = rng.uniform(0.0, 1.0, m)
    carriers = [rng.permutation(m)[: rng.integers(1, m)] for _ in range(30)]
    signs = rng.uniform(-1.0, 1.0, 30)
    return {
        "noisy-OR": 1.0 - np.where(members, miss, 1.0).prod(axis=1),
        "largest of its members": (members * worth).max(axis=1),
        "sum of 30 carrier games": sum(
            (sign * members[:, c].all(axis=1) for sign, c in zip(signs, carriers, strict=True)),
            np.zeros(2**m),
        ),
    }


def exact_merits(small: bool) -> list[Row]:
    """All sets of at most K arms; shapiq only knows K = M."""
    m = 8 if small else 20
    few = min(5, m)
    miss = 1.0 - np.random.default_rng(1).uniform(0.2, 0.9, m)

    def value(sets: Bools) -> Floats:
        return 1.0 - np.where(sets, miss, 1.0).prod(axis=1)

    game = SetFunction(value, m)
    work = f"exact K-Shapley values, any game, M = {m}"
    part = repeat(lambda: merit.exact(game, few), 3)
    rows = [Row(f"{work}, K = {few}", "no peer: shapiq only knows K = M", str(part))]
    try:
        import shapiq
    except ImportError:
        whole = repeat(lambda: merit.exact(game, m), 3)
        return [*rows, faster(f"{work}, K = M", "shapiq", whole, "not installed", 20)]

    answers = []

    def theirs() -> None:
        found = shapiq.ExactComputer(value, n_players=m)("SV", order=1)
        answers.append(found.get_n_order_values(1))

    merit.exact(game, 1)  # compiles; the peer has nothing to warm up and takes its time
    pairs = ((lambda: merit.exact(game, m), 1), (theirs, 1))
    ours, slow = alternate(*pairs, times=3, warm_up=False)
    np.testing.assert_allclose(answers[0], merit.exact(game, m), atol=1e-12)
    return [*rows, faster(f"{work}, K = M", "shapiq `ExactComputer`", ours, slow, 20)]


def sampled_merits(small: bool) -> tuple[list[Row], str]:
    """Mean squared errors at equal budgets of queries, for K = M, which the peers know."""
    m, n_seeds = (10, 3) if small else (20, 20)
    budgets = [300] if small else [1000, 10_000]
    rows, cells = [], []
    for name, values in games(m).items():
        truth = merit.exact(SetFunction(Table(values), m), m)
        for budget in budgets:
            seeds = range(n_seeds)
            ours = _errors(_stratified(values, budget), truth, seeds)
            found = {
                label: "not installed" if peer is None else _errors(peer, truth, seeds)
                for label, peer in _from_shapiq(values, budget).items()
            }
            found |= _from_pydvl(values, budget, truth, range(min(n_seeds, FEW)))
            work = f"sampled merits, {name}, M = K = {m}, {budget} queries: mean squared error"
            rows += [_smaller(work, label, ours, theirs) for label, theirs in found.items()]
            cells.append([name, str(budget), _root(ours), *(_root(x) for x in found.values())])
            head = ["game", "queries", "evenhand `stratified`", *found]
    text = "Root mean squared error over arms and seeds; values of all sets without noise.\n\n"
    return rows, text + plain_table(head, cells)


def _smaller(work: str, peer: str, ours: Floats, theirs: Floats | str) -> Row:
    """Row of how many times smaller our mean squared error is, with a bootstrap spread."""
    if isinstance(theirs, str):
        return Row(work, peer, f"{ours.mean():.3g}", theirs, goal=1.0)
    rng = np.random.default_rng(0)
    ratios = [
        rng.choice(theirs, len(theirs)).mean() / rng.choice(ours, len(ours)).mean()
        for _ in range(1000)
    ]
    return spread_row(work, peer, f"{ours.mean():.3g}", f"{theirs.mean():.3g}", ratios, 1.0)


def _errors(estimator: Estimator, truth: Floats, seeds: Sequence[int]) -> Floats:
    """Mean squared error over the arms, one a seed."""
    return np.array([np.mean((estimator(seed) - truth) ** 2) for seed in seeds])


def _root(errors: Floats | str) -> str:
    return errors if isinstance(errors, str) else number(float(np.sqrt(errors.mean())))


def _stratified(values: Floats, budget: int) -> Estimator:
    def estimate(seed: int) -> Floats:
        table = Table(values)
        game = _Unbounded(table)
        found = merit.stratified(game, table.m, budget, np.random.default_rng(seed))
        assert table.asked <= budget
        return found.merit

    return estimate


class _Unbounded:
    """A table as a game, without the rule that rewards lie in [0, 1]."""

    noise = None

    def __init__(self, table: Table) -> None:
        self.table, self.m = table, table.m

    def value(self, sets: Bools) -> Floats:
        """Exact values."""
        return self.table(sets)

    def pull(self, orders, sizes, rng):
        """Values of the prefixes asked."""
        return self.table(prefix_sets(orders, sizes, self.m)).reshape(sizes.shape)


def _from_shapiq(values: Floats, budget: int) -> dict[str, Estimator | None]:
    names = {"shapiq permutation sampling": "PermutationSamplingSV", "shapiq SVARM": "SVARM"}
    try:
        import shapiq
    except ImportError:
        return dict.fromkeys(names)

    def estimator(kind: str) -> Estimator:
        def estimate(seed: int) -> Floats:
            table = Table(values)
            method = getattr(shapiq, kind)(n=table.m, random_state=seed)
            found = method.approximate(budget, table)
            assert table.asked <= budget
            return np.asarray(found.get_n_order_values(1))

        return estimate

    return {label: estimator(kind) for label, kind in names.items()}


def _from_pydvl(
    values: Floats, budget: int, truth: Floats, seeds: Sequence[int]
) -> dict[str, Floats | str]:
    """Delta-Shapley with sample sizes falling as its bounds do, and with equal ones."""
    names = {"-2.0": "pyDVL delta-Shapley", "0.0": "pyDVL delta-Shapley, equal sizes"}
    if not PYDVL.is_file():
        return dict.fromkeys(names.values(), "not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "values.npy")
        np.save(path, values)
        job: dict[str, Any] = {"values": str(path), "m": len(truth), "budget": budget}
        job |= {"exponents": [float(x) for x in names], "seeds": list(seeds)}
        done = subprocess.run(
            [PYDVL, ROOT / "benchmarks" / "peer_pydvl.py"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        why = "not installed" if "ModuleNotFoundError" in done.stderr else "breaks down"
        return dict.fromkeys(names.values(), why)
    answer = json.loads(done.stdout)["found"]
    errors: dict[str, Floats | str] = {}
    for exponent, label in names.items():
        assert all(one["queries"] <= budget for one in answer[exponent])
        errors[label] = np.array(
            [np.mean((np.array(one["values"]) - truth) ** 2) for one in answer[exponent]]
        )
    return errors

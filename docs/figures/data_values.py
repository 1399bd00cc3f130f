"""Accuracy of data values against calls spent: ``python docs/figures/data_values.py`` measures.

On the hospitals of examples/data_values.py, for K = M, which the peers know. It takes a minute or
two; ``make figures`` draws what it wrote. pyDVL is used where ``make bench`` has installed it.
"""

import json
import runpy
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
RESULTS = Path(__file__).with_suffix(".json")
BUDGETS = [100, 150, 200, 300, 400, 600, 800]
SEEDS = 20


def main() -> None:
    """Measure all estimators and write what was found."""
    import shapiq
    from benchmarks import bench_merits as bench

    from evenhand import merit
    from evenhand.games import SetFunction
    from evenhand.typing import Floats

    game = runpy.run_path(str(ROOT / "examples" / "data_values.py"))["hospitals"]()
    m = game.m
    sets = ((np.arange(1, 2**m)[:, None] >> np.arange(m)) & 1) == 1
    values = np.append(0.0, game.value(sets))
    truth = merit.exact(SetFunction(bench.Table(values), m), m)

    def kernel(budget: int) -> bench.Estimator:
        def estimate(seed: int) -> Floats:
            method = shapiq.KernelSHAP(n=m, random_state=seed)
            found = method.approximate(budget, bench.Table(values))
            return np.asarray(found.get_n_order_values(1))

        return estimate

    curves: dict[str, dict[int, float]] = {}
    for budget in BUDGETS:
        estimators = {
            "evenhand stratified": bench._stratified(values, budget),
            "shapiq KernelSHAP": kernel(budget),
            **bench._from_shapiq(values, budget),
        }
        for name, estimator in estimators.items():
            if estimator is not None:
                errors = bench._errors(estimator, truth, range(SEEDS))
                curves.setdefault(name, {})[budget] = float(np.sqrt(errors.mean()))
        for name, found in bench._from_pydvl(values, budget, truth, range(SEEDS)).items():
            if not isinstance(found, str):
                curves.setdefault(name, {})[budget] = float(np.sqrt(found.mean()))
    RESULTS.write_text(json.dumps({"sets": 2**m - 1, "errors": curves}, indent=1) + "\n")
    for name, curve in curves.items():
        print(name, {budget: float(f"{error:.2g}") for budget, error in curve.items()})


if __name__ == "__main__":
    main()

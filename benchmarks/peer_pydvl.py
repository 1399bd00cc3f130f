"""pyDVL's delta-Shapley, run by an interpreter of its own: it needs older versions than ours.

Reads JSON from standard input: the file with a game's values by bit mask, arms, budget of
queries, exponents of its sample sizes and seeds. Prints JSON: version, and for each exponent
estimates (one row a seed) and queries spent.
"""

import json
import logging
import sys
import warnings
from typing import Any

import numpy as np


def main() -> None:
    """Estimate as asked on standard input."""
    job = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import pydvl

    found = {
        str(exponent): [estimate(job, exponent, seed) for seed in job["seeds"]]
        for exponent in job["exponents"]
    }
    print(json.dumps({"version": pydvl.__version__, "found": found}))


def estimate(job: dict[str, Any], exponent: float, seed: int) -> dict[str, Any]:
    """Values of all arms and queries spent."""
    from pydvl.valuation.dataset import Dataset
    from pydvl.valuation.methods.delta_shapley import DeltaShapleyValuation
    from pydvl.valuation.samplers import stratified
    from pydvl.valuation.stopping import NoStopping
    from pydvl.valuation.utility.base import UtilityBase

    m, values, spent = job["m"], np.load(job["values"]), [0]

    class Lookup(UtilityBase):  # type: ignore[misc]
        def __call__(self, sample: Any) -> float:
            if sample is None or len(sample.subset) == 0:
                return 0.0
            spent[0] += 1
            return float(values[(1 << sample.subset).sum()])

    sizes = np.arange(1.0, m + 1) ** exponent
    cost = 2.0 - sizes[0] / sizes.sum()  # the set with and without the arm; the empty one is free
    per_arm = int(job["budget"] / (cost * m))
    sampler = stratified.StratifiedSampler(
        stratified.PowerLawSampleSize(exponent, n_samples=per_arm), seed=seed
    )
    method = DeltaShapleyValuation(Lookup(), sampler, NoStopping(sampler), progress=False)
    method.fit(Dataset(np.zeros((m, 1)), np.zeros(m)))
    return {"values": method.result.values.tolist(), "queries": spent[0]}


if __name__ == "__main__":
    main()

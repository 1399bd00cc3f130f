"""pyDVL's utilities as games, against pyDVL's own exact Shapley values, by its own interpreter.

Run: PYTHONPATH=src .venv-pydvl/bin/python benchmarks/check_pydvl.py
"""

import logging
import warnings

import numpy as np
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from evenhand import kshapley
from evenhand.adapters import from_pydvl


def main() -> None:
    """Compare all values of a small data set, point by point and group by group."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from pydvl.valuation.dataset import Dataset, GroupedDataset
    from pydvl.valuation.methods.shapley import ShapleyValuation
    from pydvl.valuation.samplers import DeterministicUniformSampler
    from pydvl.valuation.scorers import SupervisedScorer
    from pydvl.valuation.stopping import NoStopping
    from pydvl.valuation.utility import ModelUtility

    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    x, y = x[order], y[order]
    test = Dataset(x[60:], y[60:])
    few = Dataset(x[:7], y[:7])
    grouped = GroupedDataset.from_dataset(Dataset(x[:30], y[:30]), np.arange(30) // 5)
    for name, train in (("points", few), ("groups", grouped)):
        utility = ModelUtility(GaussianNB(), SupervisedScorer("accuracy", test, default=0.0))
        sampler = DeterministicUniformSampler()
        method = ShapleyValuation(utility, sampler, NoStopping(sampler), progress=False)
        method.fit(train)
        theirs = method.result.values
        ours = kshapley(from_pydvl(utility.with_dataset(train)), k=len(train))
        print(f"{name}: largest difference {np.abs(ours - theirs).max():.1e}")
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


if __name__ == "__main__":
    main()

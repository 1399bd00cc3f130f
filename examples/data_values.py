"""What each hospital's data is worth: values of data sources, and what they cost to find.

Run it with: python examples/data_values.py (needs scikit-learn and shapiq)
"""

import numpy as np
import shapiq
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import evenhand
from evenhand import adapters
from evenhand.games import Game, SetFunction
from evenhand.typing import Bools, Floats

M, PATIENTS, CARELESS = 10, 20, 3  # hospitals, patients of each, and those who mix up labels


def hospitals() -> Game:
    """Make the game: how well a model does that is trained on the data of some hospitals."""
    x, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(y))
    sources = []
    for i in range(M):
        mine = order[i * PATIENTS : (i + 1) * PATIENTS]
        wrong = rng.random(PATIENTS) < (0.45 if i >= M - CARELESS else 0.0)
        sources.append((x[mine], np.where(wrong, 1 - y[mine], y[mine])))
    rest = order[M * PATIENTS :]
    guessing = max(np.mean(y[rest]), 1 - np.mean(y[rest]))
    return adapters.data_sources(GaussianNB(), sources, (x[rest], y[rest]), empty=guessing)


def tabled(game: Game) -> tuple[SetFunction, list[int]]:
    """All values at once, so that estimators can be compared; and how often it was asked."""
    bits = 1 << np.arange(M)
    sets = (np.arange(1, 2**M)[:, None] & bits) > 0
    values, calls = np.append(0.0, game.value(sets)), [0]

    def look_up(sets: Bools) -> Floats:
        calls[0] += int(np.atleast_2d(sets).any(axis=1).sum())
        return values[np.atleast_2d(sets) @ bits]

    return SetFunction(look_up, M), calls


def main() -> None:
    """Print the values for teams of at most four hospitals, then errors for equal calls."""
    game = hospitals()
    table, calls = tabled(game)
    # a slow model: kshapley(game, k=4, executor=lambda: ProcessPoolExecutor(8), cache="values.db")
    merit = evenhand.kshapley(table, k=4)
    for i in np.argsort(-merit):
        note = ", mixes up labels" if i >= M - CARELESS else ""
        print(f"hospital {i}: adds {merit[i]:+.4f} to the accuracy{note}")
    exact, budget = evenhand.kshapley(table, k=M), 400
    theirs = shapiq.ExactComputer(adapters.to_shapiq_game(table), n_players=M)("SV", order=1)
    assert np.allclose(adapters.from_shapiq_values(theirs), exact)  # K = M: the Shapley value
    errors: dict[str, list[float]] = {"evenhand, stratified": [], "shapiq, KernelSHAP": []}
    for seed in range(10):
        calls[0] = 0
        ours = evenhand.merit.stratified(table, M, budget, np.random.default_rng(seed))
        assert calls[0] <= budget
        kernel = shapiq.KernelSHAP(n=M, random_state=seed).approximate(budget, table.value)
        errors["evenhand, stratified"].append(np.abs(ours.merit - exact).mean())
        errors["shapiq, KernelSHAP"].append(
            np.abs(adapters.from_shapiq_values(kernel) - exact).mean()
        )
    for name, found in errors.items():
        print(f"{name}: mean error {np.mean(found):.5f} with {budget} of {2**M - 1} calls")


if __name__ == "__main__":
    main()

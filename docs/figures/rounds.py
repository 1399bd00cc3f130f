"""How many rounds of federated learning it takes: ``python docs/figures/rounds.py`` measures.

Clients hold unequal parts of scikit-learn's digits, a quarter of them with wrong labels, as in
examples/federated_clients.py; worlds are drawn anew. It takes some minutes; ``make figures``
draws what it wrote.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import evenhand
from evenhand.games import SetFunction, TruncatedGaussian
from evenhand.learners import EvenHand
from evenhand.merit import stratified
from evenhand.typing import Bools, Floats

RESULTS = Path(__file__).with_suffix(".json")
ROUNDS = [50, 100, 200, 500, 1000, 2000, 5000]
CASES = [(20, 5), (50, 5), (100, 10)]
FULL = {"most rounds train one client": None, "95 % of rounds train K": 0.95}
WORLDS, CALLS, AT_ONCE = 8, 40_000, 500


class Clients:
    """The digits, dealt out unevenly; every fourth client has a share of its labels wrong."""

    def __init__(self, m: int, rng: np.random.Generator) -> None:
        images, labels = load_digits(return_X_y=True)
        images = np.column_stack([images / 16, np.ones(len(images))])
        order = rng.permutation(len(labels))
        test, train = order[:600], order[600:]
        self.images, self.labels = images[test], labels[test]
        sizes = 5 + (rng.dirichlet(np.full(m, 1.5)) * (len(train) - 5 * m)).astype(int)
        xx, xy = [], []
        for client, rows in enumerate(np.split(train, np.cumsum(sizes))[:m]):
            x, y = images[rows], labels[rows].copy()
            wrong = rng.random(len(y)) < (rng.uniform(0.3, 0.9) if client % 4 == 0 else 0.0)
            y[wrong] = (y[wrong] + rng.integers(1, 10, wrong.sum())) % 10
            xx.append(x.T @ x)
            xy.append(x.T @ np.eye(10)[y])
        self.xx, self.xy = np.array(xx), np.array(xy)

    def accuracy(self, sets: Bools) -> Floats:
        """Accuracy on held-out images of a model trained on the union of each set's data."""
        parts = np.array_split(sets.astype(float), -(-len(sets) // AT_ONCE))
        return np.concatenate([self._accuracy(part) for part in parts])

    def _accuracy(self, sets: Floats) -> Floats:
        xx = np.tensordot(sets, self.xx, 1) + np.eye(self.xx.shape[1])
        model = np.linalg.solve(xx, np.tensordot(sets, self.xy, 1))
        return ((self.images @ model).argmax(axis=2) == self.labels).mean(axis=1)


def main() -> None:
    """Play all worlds and write how far shares were from what is due."""
    found: dict[str, dict[str, list[float]]] = {label: {} for label in FULL}
    equal, error = {}, {}
    for m, k in CASES:
        far = {label: np.zeros((WORLDS, len(ROUNDS))) for label in FULL}
        even, unsure = np.zeros(WORLDS), np.zeros(WORLDS)
        for world in range(WORLDS):
            clients = Clients(m, np.random.default_rng([world, m]))
            game = SetFunction(clients.accuracy, m, noise=TruncatedGaussian(sd=0.05))
            exact = SetFunction(clients.accuracy, m)
            merit = stratified(exact, k, CALLS, np.random.default_rng([world, 1]))
            due = evenhand.fair_policy(merit, k)
            even[world] = np.abs(k / m - due).sum() / (2 * k)
            unsure[world] = 0.4 * merit.stderr.sum() / merit.merit.sum()  # mean absolute error / 2
            for label, full in FULL.items():
                rng = np.random.default_rng([world, 2])
                far[label][world] = _play(EvenHand(m, k, full=full, seed=world), game, due, rng)
        case = f"M = {m}, K = {k}"
        equal[case], error[case] = float(even.mean()), float(unsure.mean())
        for label in FULL:
            found[label][case] = far[label].mean(axis=0).round(4).tolist()
            print(case, label, dict(zip(ROUNDS, found[label][case], strict=True)), flush=True)
        print(case, f"equal {equal[case]:.3f}, error of what is due {error[case]:.4f}", flush=True)
    kept = {"rounds": ROUNDS, "worlds": WORLDS, "equal": equal, "error": error, "far": found}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def _play(learner: EvenHand, game: SetFunction, due: Floats, rng: np.random.Generator) -> Floats:
    """Share of exposure that goes to the wrong client, after so many rounds."""
    found = []
    for mark in ROUNDS:
        while learner.queries < mark:
            batch = learner.ask(mark - learner.queries)
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
        found.append(np.abs(learner.marginals - due).sum() / (2 * learner.k))
    return np.array(found)


if __name__ == "__main__":
    main()

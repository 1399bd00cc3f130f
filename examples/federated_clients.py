"""Choosing federated-learning clients so that exposure follows contribution.

Twenty clients hold unequal parts of scikit-learn's digits; five have mislabelled theirs. A round
trains a model on the union of the four chosen clients' data, and all that is seen of it is how
well that model does on a small batch of held-out images. No client's own quality is measured.

Run it with: python examples/federated_clients.py
"""

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

import evenhand
from evenhand.games import SetFunction, TruncatedGaussian
from evenhand.learners import EvenHand

CLIENTS, CHOSEN, QUERIES = 20, 4, 60_000
WRONG = {2: 0.9, 7: 0.9, 11: 0.6, 15: 0.6, 18: 0.3}  # client: share of its labels that are wrong


class Clients:
    """The digits, dealt out unevenly and spoilt in part.

    The model is ridge regression on the ten digits: clients need only send the sums it is made
    of, which add up over clients, so training on the union is one small linear system.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        images, labels = load_digits(return_X_y=True)
        images = np.column_stack([images / 16, np.ones(len(images))])
        order = rng.permutation(len(labels))
        test, train = order[:600], order[600:]
        self.test = images[test], labels[test]
        shares = rng.dirichlet(np.full(CLIENTS, 1.5)) * (len(train) - 5 * CLIENTS)
        self.sizes = 5 + shares.astype(int)
        self.sums = []
        for client, rows in enumerate(np.split(train, np.cumsum(self.sizes))[:CLIENTS]):
            x, y = images[rows], labels[rows].copy()
            wrong = rng.random(len(y)) < WRONG.get(client, 0.0)
            y[wrong] = (y[wrong] + rng.integers(1, 10, wrong.sum())) % 10
            self.sums.append((x.T @ x, x.T @ np.eye(10)[y]))

    def accuracy(self, chosen: frozenset[int]) -> float:
        """Accuracy on all held-out images of a model trained on the chosen clients' data."""
        xx, xy = (sum(self.sums[client][i] for client in chosen) for i in (0, 1))
        model = np.linalg.solve(xx + np.eye(len(xx)), xy)
        images, labels = self.test
        return float(np.mean((images @ model).argmax(axis=1) == labels))


def play() -> tuple[Clients, evenhand.Run]:
    """Let a learner choose clients for a while."""
    clients = Clients(seed=1)
    accuracy = cache(clients.accuracy)  # the same clients train the same model
    game = SetFunction.per_set(accuracy, CLIENTS, noise=TruncatedGaussian(sd=0.05))
    merit = np.maximum(evenhand.kshapley(game, CHOSEN), 0)  # who does harm is due nothing
    target = evenhand.fair_policy(merit, CHOSEN)  # to judge by, the learner cannot see it
    learner = EvenHand(m=CLIENTS, k=CHOSEN, seed=1)
    return clients, evenhand.simulate(learner, game, QUERIES, target=target, seed=2)


def main() -> None:
    """Print the clients from the most to the least deserving."""
    clients, run = play()
    due, got = run.target / run.target.sum(), run.selections / run.selections.sum()
    print("client  images  wrong labels     due  exposure")
    for client in np.argsort(-due):
        size, wrong = clients.sizes[client], WRONG.get(int(client), 0.0)
        print(f"{client:6d}  {size:6d}  {wrong:12.0%}  {due[client]:6.1%}  {got[client]:8.1%}")
    spoilt = list(WRONG)
    print(f"the mislabelled five: due {due[spoilt].sum():.1%}, given {got[spoilt].sum():.1%}")


if __name__ == "__main__":
    main()

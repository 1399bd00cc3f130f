"""EvenHand works through rows and arms in blocks, to save memory: their size changes nothing."""

import numpy as np
import pytest

from evenhand.games import NoisyOr
from evenhand.learners import EvenHand, band, evidence, watch


def play():
    """A learner that has noticed a change."""
    rng, mu = np.random.default_rng(3), np.linspace(0.05, 0.5, 12)
    learner = EvenHand(12, 3, seed=1)
    for game in (NoisyOr(mu), NoisyOr(mu[::-1])):
        stop = learner.queries + 6000
        while learner.queries < stop:
            batch = learner.ask(stop - learner.queries)
            learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    return learner


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    whole = play().estimate()
    assert whole.changes
    for module, size in ((band, 5), (evidence, 7), (watch, 5)):
        monkeypatch.setattr(module, "BLOCK", size)
    cut = play().estimate()
    assert cut.changes == whole.changes
    for name in ("merit", "stderr", "marginals", "intervals", "asked"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))


@pytest.mark.parametrize(("k", "n"), [(1, 10), (4, 0), (4, 57)])
def test_effective_samples_are_the_definition(k, n):
    rng = np.random.default_rng(n)
    found = evidence.Evidence(6, k)
    weights = rng.random((k - 1, 6, n)) * (rng.random((k - 1, 6, n)) < 0.3)
    found.weighted[:, :, 0], found.weighted[:, :, 2] = weights.sum(axis=2), (weights**2).sum(axis=2)
    found.singles[:, 0] = n
    due = np.full((k, 6), float(n))
    total, square = weights.sum(axis=2), (weights**2).sum(axis=2)
    due[1:] = np.divide(total**2, square, out=np.zeros_like(total), where=square > 0.0)
    np.testing.assert_allclose(found.effective, due, rtol=1e-12)
    assert found.known.all() == (n > 0)

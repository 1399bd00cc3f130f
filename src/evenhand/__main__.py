"""The synthetic instance from merit to drawn sets, in one look: ``python -m evenhand``."""

import numpy as np

from evenhand.designs import ConditionalPoisson
from evenhand.games import synthetic
from evenhand.merit import kshapley
from evenhand.policy import fair_policy
from evenhand.streams import stream

M, K, SEED, N_DRAWS = 20, 5, 1, 100_000


def main() -> None:
    """Print merits, the fair policy, and how often arms come up in sets drawn from it."""
    game = synthetic(M, stream(SEED, 1, "instance"))
    merit = kshapley(game, K)
    policy = fair_policy(merit, K)
    design = ConditionalPoisson.fit(policy)
    sets = design.sample(N_DRAWS, stream(SEED, 1, "learner"))
    drawn = np.bincount(sets.ravel(), minlength=M) / N_DRAWS
    print(f"noisy-OR, M={M} arms, K={K} at a time: who is due how often?\n")
    print(" arm  quality    merit   policy    drawn")
    for arm in np.argsort(-merit):
        numbers = f"{merit[arm]:8.4f} {policy[arm]:8.4f} {drawn[arm]:8.4f}"
        print(f"{arm:4d} {game.mu[arm]:8.3f} {numbers}  {'#' * round(40 * policy[arm])}")
    print(f"\nfive of the {N_DRAWS} sets drawn, with their probabilities")
    for row, log_prob in zip(sets[:5], design.log_prob(sets[:5]), strict=True):
        print(f"  {' '.join(f'{arm:2d}' for arm in sorted(row))}   {np.exp(log_prob):.3e}")


if __name__ == "__main__":
    main()

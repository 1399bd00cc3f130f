"""Sharing a homepage slate among creators, seeing only how many visitors clicked at all.

Twenty-four creators write for four kinds of readers; a page shows five of them to fifty visitors.
A visitor clicks something with a chance that grows with how much of the page is for them,
wherever on the page it stands. A creator alone in a niche adds clicks that nobody else brings;
one of many who write for the same readers adds few. Click rates of creators shown alone cannot
tell the two apart, K-Shapley values do.

Run it with: python examples/homepage_slate.py
"""

import numpy as np

import evenhand
from evenhand.games import SetFunction
from evenhand.learners import EvenHand

READERS = {"news": 0.35, "sport": 0.25, "science": 0.25, "poetry": 0.15}  # shares of visitors
CREATORS = {"news": 15, "sport": 5, "science": 3, "poetry": 1}
SLOTS, PAGES = 5, 200_000
GENRES = [genre for genre, n in CREATORS.items() for _ in range(n)]


class FiftyVisitors:
    """The share of fifty visitors who click: one page view's aggregate."""

    def observe(self, means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one share for every page's click chance."""
        return rng.binomial(50, means) / 50


def homepage(seed: int) -> SetFunction:
    """Chance that a visitor clicks something on a page, as a game."""
    quality = np.random.default_rng(seed).uniform(2.0, 4.0, len(GENRES))
    reads = np.array([[genre == kind for genre in GENRES] for kind in READERS])
    pull = quality * np.where(reads, 1.0, 0.02)  # (4, m): how much of a creator is for whom
    share = np.array(list(READERS.values()))

    def click_chance(pages: np.ndarray) -> np.ndarray:
        drawn = pages @ pull.T  # (pages, kinds of readers)
        return drawn / (1 + drawn) @ share

    return SetFunction(click_chance, len(GENRES), noise=FiftyVisitors())


def play() -> tuple[SetFunction, evenhand.Run]:
    """Let a learner fill the page for a while."""
    game = homepage(seed=1)
    target = evenhand.fair_policy(evenhand.kshapley(game, SLOTS), SLOTS)  # to judge by, not seen
    learner = EvenHand(m=game.m, k=SLOTS, seed=1)
    return game, evenhand.simulate(learner, game, PAGES, target=target, seed=2)


def main() -> None:
    """Print what genres are due and get, beside what click rates alone would give them."""
    game, run = play()
    due, got = run.target / run.target.sum(), run.selections / run.selections.sum()
    alone = game.value(np.eye(game.m, dtype=bool))  # click rates of pages with one creator
    alone /= alone.sum()
    print("genre    creators   due each  given each  by click rates alone")
    for genre, n in CREATORS.items():
        of = [i for i, other in enumerate(GENRES) if other == genre]
        shares = due[of].mean(), got[of].mean(), alone[of].mean()
        print(f"{genre:8s} {n:8d} {shares[0]:10.2%} {shares[1]:11.2%} {shares[2]:21.2%}")
    print(f"alignment of exposure and merit: {run.alignment:.3f} (1 is perfect)")


if __name__ == "__main__":
    main()

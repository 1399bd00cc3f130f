"""Rehearsing a year in a shop window, with a newcomer and a floor for everybody.

Nine sellers share three places; all that is seen is whether a visitor bought anything. Ice cream
sells in summer, soup in winter. The nuts join in autumn, the jam is out of stock for a while, the
tea leaves, and whoever is in the shop is promised a twentieth of all places.

Run it with: python examples/season.py, and a file name such as season.png to draw it.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import evenhand
from evenhand import plot
from evenhand.exchange import Marginals
from evenhand.games import ComeAndGo, Season
from evenhand.games.noisy_or import BinaryNoisyOr
from evenhand.learners import EvenHand
from evenhand.policy import Terms

SOME = ["ice", "bread", "soup", "jam", "tea", "nuts"]  # that are drawn
SUMMER = {"ice": 0.50, "cones": 0.40, "cake": 0.20, "bread": 0.25, "jam": 0.15}
SUMMER |= {"tea": 0.10, "soup": 0.02, "pie": 0.05, "nuts": 0.20}  # chances to sell, alone
WINTER = SUMMER | {"ice": 0.05, "cones": 0.05, "tea": 0.30, "soup": 0.50, "pie": 0.40}
NAMES, PLACES, YEAR, FLOOR = list(SUMMER), 3, 60_000, 0.05  # so many visitors come in a year
NUTS_JOIN, TEA_LEAVES, NO_JAM = 20_000, 45_000, (30_000, 34_000)


def shop() -> ComeAndGo:
    """Make the year, in which the sellers come and go while the season turns."""
    seasons = Season(BinaryNoisyOr, list(SUMMER.values()), list(WINTER.values()), period=YEAR)
    nuts, tea, jam = (NAMES.index(name) for name in ("nuts", "tea", "jam"))
    times = {nuts: NUTS_JOIN}, {tea: TEA_LEAVES}, [(jam, *NO_JAM)]  # joins, leaves, breaks
    return ComeAndGo(seasons, *times, names=NAMES)


def play(watch: bool = True) -> tuple[list[float], evenhand.Run, list[np.ndarray]]:
    """Let a learner fill the window, told of purchases 200 visitors late.

    Returns half-lives of what it knew, now and then, and shares drawn by besides.
    """
    terms, shares, lives = Terms(floors=FLOOR, unit="shares"), list[np.ndarray](), list[float]()
    learner = EvenHand(m=8, k=PLACES, names=NAMES[:8], terms=terms, watch=watch, seed=3)

    def note(batch: evenhand.Batch) -> None:
        assert isinstance(batch.exposure, Marginals)
        shares.append(batch.exposure.q / PLACES)
        if len(shares) % 20 == 0:
            lives.append(learner.estimate().diagnostics.half_life)

    run = evenhand.simulate(learner, shop(), YEAR, seed=3, late=200, watch=note)
    return lives, run, shares


def main() -> None:
    """Print who got what and when, and what the learner forgets; draw it where asked to."""
    lives, run, shares = play()
    due, given = run.due_curve, run.given_curve
    assert due is not None
    assert given is not None
    print("share of places, due and given   ", *(f"{name:>7s}" for name in NAMES))
    for quarter, rows in enumerate(np.array_split(np.arange(len(due)), 4), start=1):
        for what, curve in (("due", due), ("given", given)):
            line = " ".join(f"{share:7.1%}" for share in curve[rows].mean(axis=0))
            print(f"quarter {quarter}, {what:24s} {line}")
    first = next(share[-1] for share in shares if len(share) == 9)
    print(f"the nuts at first: {first:.1%}, an even share is {1 / 9:.1%}")
    print(f"least share in any query: {min(share.min() for share in shares):.1%}")
    print(f"off what is due: {run.regret[-1] / (2 * PLACES * YEAR):.1%} of all places")
    print(f"what is known counted half after {min(lives):.0f} visitors, when it faded fastest")
    for path in sys.argv[1:]:
        figure = Figure(figsize=(8.4, 4.0), layout="constrained")
        plot.course(run, arms=SOME, ax=figure.subplots())
        figure.savefig(path)


if __name__ == "__main__":
    main()

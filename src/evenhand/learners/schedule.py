"""How many queries a policy serves before the next one is made."""

from evenhand.designs import Design
from evenhand.learners.learner import MAX_BATCH


def rounds_to_serve(rounds: int, growth: float, m: int, k: int) -> int:
    """Rounds the next policy is kept for, after ``rounds`` rounds.

    Early policies change every round, later ones when they have something new to say; with many
    arms a single round says little. ``growth=0`` refreshes every round for m <= 50 k.
    """
    return max(1, int(growth * rounds), m // (50 * k))


def batch_limit(design: Design, limit: int) -> int:
    """How many of ``limit`` draws to count in one batch: all where the sets can be listed."""
    return limit if design.listed is not None else min(limit, MAX_BATCH)

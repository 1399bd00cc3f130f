"""The loop between a learner and a game, and what it records."""

from evenhand.simulation.loop import Interrupted, Run, simulate

__all__ = ["Interrupted", "Run", "simulate"]

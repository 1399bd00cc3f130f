"""The loop between a learner and a game, and what it records."""

from evenhand.simulation.interrupts import Interrupted
from evenhand.simulation.loop import simulate
from evenhand.simulation.record import Run

__all__ = ["Interrupted", "Run", "simulate"]

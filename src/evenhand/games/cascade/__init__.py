"""Cascades in networks, on a processor and on an NVIDIA GPU."""

from evenhand.games.cascade.cuda import CudaCascade
from evenhand.games.cascade.graph import Graph
from evenhand.games.cascade.independent import IndependentCascade

__all__ = ["CudaCascade", "Graph", "IndependentCascade"]

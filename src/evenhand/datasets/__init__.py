"""Data from elsewhere: the Facebook graph of the paper, and a stand-in for it."""

from evenhand.datasets.facebook import facebook_graph, facebook_stand_in

__all__ = ["facebook_graph", "facebook_stand_in"]

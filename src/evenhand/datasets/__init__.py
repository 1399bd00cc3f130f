"""Files from elsewhere."""

from evenhand.datasets.facebook import facebook_graph, facebook_stand_in

__all__ = ["facebook_graph", "facebook_stand_in"]

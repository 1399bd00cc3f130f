"""A client of the Evenhand service: which arms now, and here is what came of it."""

from evenhand_client.client import Client, Experiment, Refused, Row, Unreachable

__all__ = ["Client", "Experiment", "Refused", "Row", "Unreachable"]

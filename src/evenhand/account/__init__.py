"""All that is known about arms at one moment, and what it says about each of them, in words."""

from evenhand.account.account import Account, Noticed
from evenhand.account.why import Why, explain

__all__ = ["Account", "Noticed", "Why", "explain"]

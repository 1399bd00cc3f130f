"""A learner as one page that stands alone: no server, no request, opens anywhere."""

from evenhand.portrait.page import Table, page

__all__ = ["Table", "page"]

"""From merits to marginals: how often each arm is due, and on what terms."""

from evenhand.policy.projection import Bounds, project
from evenhand.policy.proportional import (
    clip_to_sum,
    fair_policy,
    fill,
    find_scale,
    project_l1,
    waterfill,
)
from evenhand.policy.terms import Group, Terms

__all__ = [
    "Bounds",
    "Group",
    "Terms",
    "clip_to_sum",
    "fair_policy",
    "fill",
    "find_scale",
    "project",
    "project_l1",
    "waterfill",
]

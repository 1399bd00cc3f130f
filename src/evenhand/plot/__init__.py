"""Pictures of runs and learners, drawn on matplotlib axes, which are returned and not shown."""

from evenhand.plot.arms import merits, portrait
from evenhand.plot.plans import outlook
from evenhand.plot.runs import convergence, course, exposure, regret

__all__ = ["convergence", "course", "exposure", "merits", "outlook", "portrait", "regret"]

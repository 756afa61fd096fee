"""From a network to an answer: groups compared, networks read, studies planned."""

from edgegraft.study.comparison import Comparison, compare
from edgegraft.study.planning import PowerPlan, plan

__all__ = ["Comparison", "PowerPlan", "compare", "plan"]

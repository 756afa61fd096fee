"""From a network to an answer: groups compared, networks read, studies planned, rows over time."""

from edgegraft.study.comparison import Comparison, compare
from edgegraft.study.over_time import LaggedRows, kernel_weights, lagged
from edgegraft.study.planning import PowerPlan, plan
from edgegraft.study.reading import NetworkReading, read_network

__all__ = [
    "Comparison",
    "LaggedRows",
    "NetworkReading",
    "PowerPlan",
    "compare",
    "kernel_weights",
    "lagged",
    "plan",
    "read_network",
]

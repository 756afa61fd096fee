"""From a network to an answer: groups compared, networks read, studies planned."""

from edgegraft.study.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]

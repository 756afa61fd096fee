"""What to test next, what to keep, what to activate."""

from edgegraft.search.hubs import find_hubs
from edgegraft.search.reservoir import Reservoir, Scored
from edgegraft.search.rules import ActivationRule, BestChoice, FirstHit, Single
from edgegraft.search.stream import CandidateStream

__all__ = [
    "ActivationRule",
    "BestChoice",
    "CandidateStream",
    "FirstHit",
    "Reservoir",
    "Scored",
    "Single",
    "find_hubs",
]

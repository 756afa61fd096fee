"""Best-choice edge grafting: which pairs are tested next, kept in the reservoir, and activated."""

from edgegraft.grafting.reservoir import BestChoice, Reservoir, ScoredEdges
from edgegraft.grafting.stream import CandidateStream

__all__ = ["BestChoice", "CandidateStream", "Reservoir", "ScoredEdges"]

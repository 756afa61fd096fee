"""Best-choice edge grafting: which pairs are tested next, kept in the reservoir, and activated."""

from edgegraft.grafting.reservoir import ActivationRule, BestChoice, Reservoir, ScoredEdges
from edgegraft.grafting.stream import CandidateStream

__all__ = ["ActivationRule", "BestChoice", "CandidateStream", "Reservoir", "ScoredEdges"]

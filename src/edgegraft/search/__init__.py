"""What to test next, what to keep, what to activate."""

from edgegraft.search.mean_fields import local_field, mean_field, rank_pairs
from edgegraft.search.ranking import Partners, Ranking, screen
from edgegraft.search.reservoir import ActivationRule, BestChoice, Reservoir, ScoredEdges
from edgegraft.search.stream import CandidateStream
from edgegraft.search.structure import closing_pairs, find_hubs

__all__ = [
    "ActivationRule",
    "BestChoice",
    "CandidateStream",
    "Partners",
    "Ranking",
    "Reservoir",
    "ScoredEdges",
    "closing_pairs",
    "find_hubs",
    "local_field",
    "mean_field",
    "rank_pairs",
    "screen",
]

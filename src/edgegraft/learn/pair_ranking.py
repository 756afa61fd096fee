"""All pairs of columns in the order of the evidence for an edge, those outside the network too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.learn.certificate import ScoredPairs
from edgegraft.learn.confirm import Confirmation
from edgegraft.objective.penalty import Penalty


class PairRanking(NamedTuple):
    """Pairs, the most likely edges first."""

    pairs: Edges  # all pairs up to 200,000; of more, only those that the search found
    kept: Mask  # which of them are edges of the network
    #: NaN for edges; of others at the fitted model, in units of the threshold of the search
    score: Floats


def rank_all_pairs(found: Confirmation, scored: ScoredPairs, rule: Penalty) -> PairRanking:
    """Rank the edges of a network by their p-values, then the other pairs by their scores.

    If the network was built in the order of a fit of all pairs, by their strengths in that.

    Scores by the noise of a rule are taken in units of the noise that the network leaves.
    """
    kept = np.flatnonzero(found.kept)
    tests = found.tests
    best = kept[np.lexsort((-tests.statistic[kept], tests.p_value[kept]))]
    if found.joint is not None:
        best = kept[np.argsort(-found.joint.strengths_of(tests.edges[kept]), kind="stable")]
    edges, others, scores = tests.edges[best], scored.pairs, scored.scores
    if not scored.exhaustive:
        others = tests.edges[~found.kept]
        scores = np.full(len(others), np.nan)
        order = np.argsort(tests.p_value[~found.kept], kind="stable")
    else:
        cells = np.ones(len(others), np.int64)
        noise = rule.edge_weights(others, cells) / found.rule.edge_weights(others, cells)
        scores = scores * noise
        strengths = scores
        if found.joint is not None:
            strengths = found.joint.strengths_of(others)
        order = np.argsort(-strengths, kind="stable")
    pairs = np.concatenate((edges, others[order]))
    is_kept = np.arange(len(pairs)) < len(edges)
    score = np.concatenate((np.full(len(edges), np.nan), scores[order] / (rule.penalty or 1.0)))
    return PairRanking(pairs, is_kept, score)

"""Scores of ordered states: a few numbers per state that depend on the order and the margin."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from edgegraft.core.types import Floats
from edgegraft.table.schema import Kind

_EDGE = 1e-4  # rank of states beyond all that occur


def scores_of(margin: Floats, n_scores: int, kind: Kind = "ordinal") -> Floats:
    """Return a linear, a quadratic and further scores of states, one column each.

    The linear one is the middle rank, of counts and numbers its normal quantile; each further one
    is the next power of it without what the others are in it. All have mean 0 and variance 1, or
    are zero if the states that occur are too few. Middle ranks predicted held-out rows of surveys
    better than normal quantiles (docs/kinds.md); columns that are nearly Gaussian ask for
    quantiles.

    >>> scores_of(np.array([0.25, 0.5, 0.25]), 2).round(3)
    array([[-1.414,  1.   ],
           [ 0.   , -1.   ],
           [ 1.414,  1.   ]])
    """
    p = margin / margin.sum()
    linear = np.cumsum(p) - p / 2
    if kind in ("count", "numeric"):
        linear = ndtri(np.clip(linear, _EDGE, 1.0 - _EDGE))
    out = np.zeros((len(p), n_scores))
    for k in range(n_scores):
        raw = (linear - p @ linear) ** (k + 1)
        score = raw - p @ raw
        for earlier in out.T[:k]:
            score = score - (p @ (score * earlier)) * earlier
        spread = np.sqrt(p @ score**2)
        if spread > 1e-9:
            out[:, k] = score / spread
    return out

"""The certificate: what was checked at the end of a search, and the result.

The learned graph is optimal when no inactive pair has ``s_e > penalty`` and every active group is
stationary. All pairs are scored if they are not too many. Otherwise a random sample is scored, and
the share of violating pairs is bounded with 95 % confidence (Clopper and Pearson).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats
from edgegraft.grafting.state import SearchState

MAX_PAIRS = 200_000  # up to this many inactive pairs, all are scored: a budget of seconds
_BLOCK = 8192  # pairs scored together, at least: residuals serve all pairs of a column
_CONFIDENCE = 0.95


class Certificate(NamedTuple):
    """How optimal a learned model is.

    Attributes
    ----------
    n_pairs : int
        Number of inactive pairs.
    n_checked : int
        Number of inactive pairs that were scored.
    n_violating : int
        Number of scored pairs that should be active: ``(s_e - penalty) d_e > slack``.
    largest : float
        Largest ``s_e - penalty``, in units of the penalty; negative if no pair violates.
    share_bound : float
        Upper bound of the share of violating pairs: exact if all pairs were checked, otherwise with
        95 % confidence.
    residual : float
        Largest violation of an active group's stationarity.
    exhaustive : bool
        Whether every pair was checked.
    slack : float
        Allowance for parameters that are fitted only to a tolerance.
    n_cut : int
        How many of the violating pairs a test has cut.
    """

    n_pairs: int
    n_checked: int
    n_violating: int
    largest: float
    share_bound: float
    residual: float
    exhaustive: bool
    slack: float
    n_cut: int = 0

    def __str__(self) -> str:
        cut = f", {self.n_cut:,} of which their tests have cut" if self.n_cut else ""
        checked = "all" if self.exhaustive else f"{self.n_checked:,} random ones of"
        return (
            f"{self.n_violating:,} of {checked} {self.n_pairs:,} inactive pairs violate optimality"
            f"{cut} (largest excess {self.largest:.2g} of the penalty; share at most "
            f"{self.share_bound:.2g}); residual of the active groups {self.residual:.2g}"
        )


class ScoredPairs(NamedTuple):
    """Inactive pairs of a search with their scores."""

    pairs: Edges
    scores: Floats
    exhaustive: bool  # whether that is every pair, or a random sample


def score_inactive(growth: SearchState, max_pairs: int = MAX_PAIRS) -> ScoredPairs:
    """Score the inactive pairs of a finished search: all, or `max_pairs` random ones of more."""
    n = len(growth.objective.schema)
    exhaustive = growth.problem.rules.n_allowed - len(growth.graph) <= max_pairs
    rng = np.random.default_rng(growth.settings.random_state)
    pairs = _inactive(growth, all_pairs(n)) if exhaustive else _sample(growth, n, max_pairs, rng)
    block = max(_BLOCK, 2 * n)
    parts = [pairs[first : first + block] for first in range(0, len(pairs), block)]
    scores = [growth.penalty.score(growth.gradients(part)) for part in parts]
    return ScoredPairs(pairs, np.concatenate([np.empty(0), *scores]), exhaustive)


def certify(
    growth: SearchState,
    scored: ScoredPairs | None = None,
    *,
    cut: Edges | None = None,
    max_pairs: int = MAX_PAIRS,
) -> Certificate:
    """Return the certificate of a finished search, from the scores of its inactive pairs.

    `cut` are pairs that tests have cut.
    """
    pairs, scores, exhaustive = scored or score_inactive(growth, max_pairs)
    n, threshold = len(growth.objective.schema), growth.penalty.penalty
    violating = pairs[growth.exceeds(scores, pairs)]
    n_checked, n_violating = len(pairs), len(violating)
    n_cut = 0 if cut is None else int(np.isin(pair_ids(violating, n), pair_ids(cut, n)).sum())
    largest = float(scores.max(initial=-np.inf)) - threshold
    bound = n_violating / max(n_checked, 1)
    if not exhaustive and n_violating < n_checked:
        bound = float(betaincinv(n_violating + 1, n_checked - n_violating, _CONFIDENCE))
    return Certificate(
        growth.problem.rules.n_allowed - len(growth.graph),
        n_checked,
        n_violating,
        largest / threshold if threshold else largest,
        bound,
        growth.solution.info.residual,
        exhaustive,
        growth.policy.slack,
        n_cut,
    )


def _inactive(growth: SearchState, pairs: Edges) -> Edges:
    """Return the pairs that are allowed and not active."""
    return pairs[~growth.graph.contains(pairs) & growth.problem.rules.allows(pairs)]


def _sample(growth: SearchState, n: int, size: int, rng: np.random.Generator) -> Edges:
    """Draw distinct inactive pairs uniformly; repeats are rare and drawn again."""
    drawn = np.empty((0, 2), np.int64)
    while len(drawn) < size:
        pairs = rng.integers(0, n, (2 * size, 2))
        pairs = _inactive(growth, np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1))
        joined = np.concatenate((drawn, pairs))
        _, first = np.unique(pair_ids(joined, n), return_index=True)
        drawn = joined[np.sort(first)]
    return drawn[:size]

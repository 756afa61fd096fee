"""A grid of penalties and ridges scored on rows that were held out.

Within a fold the penalties are walked by :func:`edgegraft.learn.penalty_path`, each run starting
from the one before. Folds share the schema of all rows: a category that a fold lacks is a state
that does not occur, not an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Plan
from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.learn import Event, Growth, penalty_path
from edgegraft.table import PackedTable

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


class Scores(NamedTuple):
    """What held-out rows say of a grid, by ridge, penalty and fold."""

    values: Floats  # mean log pseudolikelihood of a held-out row
    n_edges: NDArray[np.int64]


def check_splits(splits: Sequence[Split], weights: Floats | None) -> None:
    """Refuse folds in which nothing counts, before any of them is fitted."""
    for k, parts in enumerate(splits):
        for what, rows in zip(("training", "held-out"), parts, strict=True):
            if not len(rows):
                raise DataError(f"fold {k} has no {what} rows")
            if weights is not None and not weights[rows].any():
                raise DataError(f"all weights of the {what} rows of fold {k} are zero")


def score_grid(
    table: PackedTable,
    plan: Plan,
    penalties: Floats,
    ridges: Sequence[Any],
    splits: Sequence[Split],
    weights: Floats | None,
) -> Scores:
    """Return how well each ridge and penalty predicts the held-out rows of each fold.

    Raises
    ------
    KeyboardInterrupt
        If a search was interrupted: scores of unfinished runs would mislead.
    """
    shape = (len(ridges), len(penalties), len(splits))
    out = Scores(np.empty(shape), np.empty(shape, np.int64))
    codes = table.codes().astype(np.int64)
    for k, (train, test) in enumerate(splits):
        part = PackedTable.from_codes(codes[train], table.schema)
        inside, outside = (None, None) if weights is None else (weights[train], weights[test])
        for r, ridge in enumerate(ridges):
            chosen = replace(plan, ridge=ridge)
            path = penalty_path(
                part, chosen, penalties, weights=inside, observers=[_Interruption()]
            )
            for p, point in enumerate(path):
                rows = point.model.pseudo_log_likelihood(codes=codes[test])
                out.values[r, p, k] = np.average(rows, weights=outside)
                out.n_edges[r, p, k] = point.n_edges
    return out


class _Interruption:
    """Raise where the search ends quietly: a path cut short is no path."""

    def on_event(self, event: Event, growth: Growth) -> None:
        if growth.interrupted:
            raise KeyboardInterrupt

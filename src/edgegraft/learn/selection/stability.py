"""How stable the edges of each penalty are from one subsample of the rows to another (StARS).

    D = mean over pairs of 2 f (1 - f),   f the share of subsamples in which a pair is an edge

Liu, Roeder and Wasserman (2010) take the smallest penalty at which ``D``, made monotone, is still
at most .05: edges that come and go with the rows are not to be relied on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.config import Plan
from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.learn.selection.levels import falling
from edgegraft.learn.selection.path import penalty_path
from edgegraft.table import PackedTable

LIMIT = 0.05


def instability(
    table: PackedTable,
    plan: Plan | None,
    penalties: ArrayLike,
    *,
    n_subsamples: int = 20,
    random_state: int = 0,
) -> Floats:
    """Return ``D`` of each penalty, over random subsamples of ``10 sqrt(N)`` rows (at most 80 %).

    Penalties are those of the whole table: with fewer rows scores are noisier by
    ``sqrt(N / rows)``, and each path is scaled by that.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> instability(table, None, [0.6, 0.1], n_subsamples=4)
    array([0., 0.])
    """
    n, n_rows = len(table.schema), table.n_rows
    size = int(min(0.8 * n_rows, 10 * np.sqrt(n_rows)))
    if size < 2 or n_subsamples < 2:
        raise DataError(f"{n_subsamples} subsamples of {n_rows} rows cannot be compared")
    levels = falling("penalties", penalties)
    codes, rng = table.codes(), np.random.default_rng(random_state)
    counts: list[dict[tuple[int, int], int]] = [{} for _ in levels]
    for _ in range(n_subsamples):
        rows = np.sort(rng.choice(n_rows, size, replace=False))
        part = PackedTable.from_codes(codes[rows], table.schema)
        path = penalty_path(part, plan, levels * np.sqrt(n_rows / size))
        for seen, point in zip(counts, path, strict=True):
            for i, j in point.model.edges.tolist():
                seen[i, j] = seen.get((i, j), 0) + 1
    shares = [np.array(list(seen.values())) / n_subsamples for seen in counts]
    n_pairs = max(1, n * (n - 1) // 2)
    return np.array([float((2 * f * (1 - f)).sum()) / n_pairs for f in shares])


def most_stable(penalties: ArrayLike, values: ArrayLike, limit: float = LIMIT) -> float:
    """Return the smallest penalty down to which instability stays within `limit`.

    Examples
    --------
    >>> most_stable([0.4, 0.2, 0.1, 0.05], [0.0, 0.01, 0.2, 0.04])
    0.2
    """
    levels = np.asarray(penalties, np.float64)
    order = np.argsort(-levels)
    rising = np.maximum.accumulate(np.asarray(values, np.float64)[order])
    return float(levels[order][np.flatnonzero(rising <= limit).max(initial=0)])

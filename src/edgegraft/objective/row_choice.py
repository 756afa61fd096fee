"""Which rows of a table count, and how much."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Integers
from edgegraft.errors import DataError

_BLOCK = 256  # rows drawn together, if that leaves enough draws
_DRAWS = 64


def draw_rows(n: int, share: float, rng: np.random.Generator) -> Integers:
    """Return about ``share * n`` of the rows ``0..n - 1``, in order, in blocks of neighbours."""
    wanted = max(1, round(share * n))
    # Rows near each other may be alike: never so few blocks that one of them matters much.
    block = max(1, min(_BLOCK, wanted // _DRAWS))
    first = rng.permutation(-(-n // block))[: -(-wanted // block)]
    rows = (np.sort(first)[:, None] * block + np.arange(block)).ravel()
    return rows[rows < n].astype(np.int64)


def check_rows(rows: ArrayLike | None, n_rows: int) -> Integers:
    """Return the row numbers as an array, all by default, refusing those that are none."""
    if rows is None:
        return np.arange(n_rows)
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or len(chosen) == 0:
        raise DataError(
            "rows must be a non-empty vector of row numbers, found "
            f"{chosen.dtype} of shape {chosen.shape}"
        )
    bad = (chosen < 0) | (chosen >= n_rows)
    if bad.any():
        raise DataError(f"row {chosen[np.argmax(bad)]} is outside 0..{n_rows - 1}")
    return chosen.astype(np.int64)

"""Whole numbers to codes by look-up: what most cells of most tables need.

A batch of a column is otherwise reduced to its distinct values, which takes several times as long
as reading it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from edgegraft.kernels.counting.encode import UNKNOWN, look_up

__all__ = ["DirectCodes"]

_SPAN = 4096  # from the smallest to the largest number; the table stays in the first-level cache


class DirectCodes:
    """Codes of whole numbers that lie near each other.

    Parameters
    ----------
    codes : mapping
        Label to code; labels that are no whole numbers are passed over.

    Examples
    --------
    >>> direct = DirectCodes({7: 0, 5: 1})
    >>> direct.find(pa.array([5, 7, 7]))
    array([1, 0, 0], dtype=uint16)
    >>> direct.find(pa.array([5, 6])) is None
    True
    """

    def __init__(self, codes: Mapping[Any, int]) -> None:
        whole = {
            int(label): code
            for label, code in codes.items()
            if isinstance(label, int) and not isinstance(label, bool)
        }
        self._table: NDArray[np.uint16] | None = None
        self._base = min(whole, default=0)
        span = max(whole, default=0) - self._base + 1
        if whole and span <= _SPAN:
            self._table = np.full(span + 1, UNKNOWN, np.uint16)
            for label, code in whole.items():
                self._table[label - self._base] = code

    def find(self, array: pa.Array) -> NDArray[np.uint16] | None:
        """Return the codes of all cells; None where one has none, or is no whole number."""
        if self._table is None or not pt.is_integer(array.type) or array.null_count:
            return None
        out = np.empty(len(array), np.uint16)
        values = array.to_numpy(zero_copy_only=True)
        return out if look_up(values, self._base, self._table, out) else None

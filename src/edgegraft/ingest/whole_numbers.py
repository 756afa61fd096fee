"""Whole numbers and booleans to codes by look-up: what most cells of most tables need.

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

from edgegraft.ingest.code_buffer import BYTE, BytesOrCodes
from edgegraft.kernels.counting.encode import look_up
from edgegraft.table.store import MISSING

__all__ = ["DirectCodes", "near_counts"]

_SPAN = 4096  # from the smallest to the largest number; the table stays in the first-level cache
_INT64 = range(-(2**63), 2**63)


class DirectCodes:
    """Codes of whole numbers that lie near each other, and of booleans.

    Parameters
    ----------
    codes : mapping
        Label to code; other labels are passed over.

    Examples
    --------
    >>> direct = DirectCodes({7: 0, 5: 1})
    >>> direct.find(pa.array([5, 7, 7]))
    array([1, 0, 0], dtype=uint8)
    >>> direct.find(pa.array([5, 6])) is None
    True
    """

    def __init__(self, codes: Mapping[Any, int]) -> None:
        whole = {
            label: code
            for label, code in codes.items()
            if isinstance(label, int) and not isinstance(label, bool)
        }
        self._flags: BytesOrCodes | None = None
        if False in codes and True in codes:
            self._flags = _table([codes[False], codes[True]])
        self._table: BytesOrCodes | None = None
        self._base, last = min(whole, default=0), max(whole, default=0)
        if whole and last - self._base < _SPAN and self._base in _INT64 and last in _INT64:
            # The code that stands for none is one that a column of so few labels cannot have.
            entries = [MISSING - 1] * (last - self._base + 2)
            for label, code in whole.items():
                entries[label - self._base] = code
            self._table = _table(entries)

    def find(self, array: pa.Array) -> BytesOrCodes | None:
        """Return the codes of all cells; None if one has none, or is not a whole number."""
        if array.null_count:
            return None
        if pt.is_boolean(array.type):
            if self._flags is None:
                return None
            flags: NDArray[np.uint8] = array.to_numpy(zero_copy_only=False).view(np.uint8)
            return self._flags[flags]
        if self._table is None or not pt.is_integer(array.type):
            return None
        out = np.empty(len(array), self._table.dtype)
        values = _numbers(array)
        return out if look_up(values, self._base, self._table, out) else None


def _table(codes: list[int]) -> BytesOrCodes:
    """Return codes of a byte each if they fit, the last two for unknown and missing."""
    known = max((code for code in codes if code < MISSING - 1), default=0)
    return np.array(codes, np.uint16).astype(np.uint8 if known < BYTE - 1 else np.uint16)


def near_counts(array: pa.Array) -> dict[int, int] | None:
    """Return the numbers of an array that lie near each other, and how often each occurs.

    None if they do not, or if a cell is missing.

    Examples
    --------
    >>> near_counts(pa.array([5, 7, 7], pa.int8())), near_counts(pa.array([0, 10**9]))
    ({5: 1, 7: 2}, None)
    """
    if not pt.is_integer(array.type) or array.null_count or not len(array):
        return None
    values = _numbers(array)
    low, high = int(values.min()), int(values.max())
    if high - low >= _SPAN or low not in _INT64 or high not in _INT64:
        return None
    counts = np.bincount(values.astype(np.int64) - low)
    seen = np.flatnonzero(counts)
    return dict(zip((seen + low).tolist(), counts[seen].tolist(), strict=True))


def _numbers(array: pa.Array) -> NDArray[Any]:
    """Return the integers of an array without a copy.

    Not by ``to_numpy``, which imports pandas if it is installed.
    """
    whole = np.frombuffer(array.buffers()[1], np.dtype(str(array.type)))
    return whole[array.offset : array.offset + len(array)]

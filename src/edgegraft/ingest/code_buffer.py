"""The codes of one column until its table is put together, and the quick way to get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from edgegraft.core.types import Integers
from edgegraft.kernels.compiler import for_size
from edgegraft.kernels.counting.bitplanes import look_up, look_up_plainly
from edgegraft.table.store import MISSING

Codes = NDArray[np.uint16]
BytesOrCodes = NDArray[Any]  # uint8 or uint16

BYTE = 255  # a missing cell among codes of a byte each
_IDENTITY = np.arange(BYTE + 1, dtype=np.uint8)
_SPAN = 4096  # from the smallest to the largest number; the table stays in the first-level cache
_INT64 = range(-(2**63), 2**63)


class CodeBuffer:
    """Provisional codes of a column; `MISSING` marks a missing cell.

    Codes take a byte each as long as they are below 255.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._chunks: list[BytesOrCodes] = []
        self._counts = np.zeros(0, np.int64)
        self._n_counted = 0  # chunks whose codes have been counted

    def append(self, codes: BytesOrCodes, counts: Integers | None = None) -> None:
        """Receive the next cells, and how often each code occurs among them if that is known.

        Codes of a byte each have `BYTE` for a missing cell.
        """
        if not len(codes):
            return
        if codes.dtype == np.uint16 and int((codes + np.uint16(1)).max()) <= BYTE:
            codes = codes.astype(np.uint8)  # the next code of MISSING wraps to 0
        if counts is not None:
            self.counts(0)
            self._add(counts)
            self._n_counted += 1
        self._chunks.append(codes)
        self.n_rows += len(codes)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def counts(self, n_codes: int) -> Integers:
        """Return how many cells, taken out or not, have each of the codes."""
        for chunk in self._chunks[self._n_counted :]:
            last = BYTE if chunk.dtype == np.uint8 else MISSING
            self._add(np.bincount(chunk)[:last])
        self._n_counted = len(self._chunks)
        out = np.zeros(n_codes, np.int64)
        out[: len(self._counts)] = self._counts[:n_codes]
        return out

    def _add(self, counts: Integers) -> None:
        if len(counts) > len(self._counts):
            counts, self._counts = self._counts, counts.copy()
        self._counts[: len(counts)] += counts

    def take(self, n_rows: int) -> Codes:
        """Take out the first rows, under their provisional codes."""
        self.counts(0)
        taken: list[Codes] = []
        while n_rows:
            chunk = self._chunks[0]
            taken.append(_widen(chunk[:n_rows]))
            n_rows -= len(taken[-1])
            if len(chunk) > len(taken[-1]):
                self._chunks[0] = chunk[len(taken[-1]) :]
            else:
                del self._chunks[0]
        self._n_counted = len(self._chunks)
        return taken[0] if len(taken) == 1 else np.concatenate(taken)

    def finish(self, recode: Codes | None, n_states: int) -> BytesOrCodes:
        """Return the column under its final codes ``recode[provisional]``.

        Several provisional codes may become one, and those that become `MISSING` turn missing. In
        the column a missing cell holds the number of states.
        """
        dtype: Any = np.uint8 if n_states <= BYTE else np.uint16
        codes = np.arange(n_states, dtype=np.uint16) if recode is None else recode
        final = np.where(codes == MISSING, n_states, codes).astype(dtype)
        parts = [_look_up(chunk, final, dtype(n_states)) for chunk in self._chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _look_up(chunk: BytesOrCodes, final: NDArray[Any], missing: Any) -> BytesOrCodes:
    """Return ``final[chunk]``, and `missing` for a missing cell."""
    if chunk.dtype == np.uint16 or final.dtype == np.uint16:
        table = np.full(MISSING + 1, missing, final.dtype)
        table[: len(final)] = final
        return np.take(table, _widen(chunk))
    if missing == len(final) and (final == _IDENTITY[: len(final)]).all() and chunk.max() < missing:
        return chunk
    short = np.full(BYTE + 1, missing, np.uint8)
    short[: min(BYTE, len(final))] = final[:BYTE]
    return np.frombuffer(chunk.tobytes().translate(short.tobytes()), np.uint8)


def _widen(chunk: BytesOrCodes) -> Codes:
    if chunk.dtype == np.uint16:
        return chunk
    codes = chunk.astype(np.uint16)
    codes[chunk == BYTE] = MISSING
    return codes


class DirectCodes:
    """Codes of whole numbers that lie near each other, and of booleans; others are passed over.

    A batch of a column is otherwise reduced to its distinct values, which takes several times as
    long as reading it.
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
        look = for_size(look_up, len(values), 20_000, look_up_plainly)
        return out if look(values, self._base, self._table, out) else None


def _table(codes: list[int]) -> BytesOrCodes:
    """Return codes of a byte each if they fit, the last two for unknown and missing."""
    known = max((code for code in codes if code < MISSING - 1), default=0)
    return np.array(codes, np.uint16).astype(np.uint8 if known < BYTE - 1 else np.uint16)


def near_counts(array: pa.Array) -> dict[int, int] | None:
    """Return the numbers of an array that lie near each other, and how often each occurs.

    None if they do not, or if a cell is missing.
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

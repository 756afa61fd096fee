"""The codes of one column, in the order of the rows, until its table is put together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Integers
from edgegraft.table.store import MISSING

Codes = NDArray[np.uint16]
BytesOrCodes = NDArray[Any]  # uint8 or uint16

BYTE = 255  # a missing cell among codes of a byte each
_IDENTITY = np.arange(BYTE + 1, dtype=np.uint8)


class CodeBuffer:
    """Provisional codes of a column; `MISSING` marks a missing cell.

    Codes take a byte each as long as they are below 255.

    Examples
    --------
    >>> buffer = CodeBuffer()
    >>> buffer.append(np.array([0, 2, MISSING], np.uint16))
    >>> buffer.counts(3), buffer.finish(np.array([1, 0, 0], np.uint16), n_states=2)
    (array([1, 0, 1]), array([1, 0, 2], dtype=uint8))
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

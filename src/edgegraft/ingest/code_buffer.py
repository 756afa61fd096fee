"""The codes of one column until its table is put together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.table.schema import MISSING

Codes = NDArray[np.uint16]
BytesOrCodes = NDArray[Any]  # uint8 or uint16

BYTE = 255  # a missing cell among codes of a byte each


class CodeBuffer:
    """Provisional codes of a column; `MISSING` marks a missing cell.

    Codes take a byte each as long as they are below 255.
    """

    def __init__(self) -> None:
        self._chunks: list[BytesOrCodes] = []

    def append(self, codes: Codes, places: NDArray[Any] | None = None) -> BytesOrCodes:
        """Receive the codes of the next cells; or those at some `places` of `codes`.

        Returns them as they are held.
        """
        # The next code of MISSING wraps to 0, and MISSING itself to BYTE.
        if int((codes + np.uint16(1)).max(initial=0)) <= BYTE:
            codes = codes.astype(np.uint8)
        chunk = codes if places is None else _look_up(codes, places)
        if len(chunk):
            self._chunks.append(chunk)
        return chunk

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def take(self, n_rows: int) -> Codes:
        """Take out the first rows, under their provisional codes."""
        taken: list[Codes] = []
        while n_rows:
            chunk = self._chunks[0]
            codes = chunk[:n_rows].astype(np.uint16)
            if chunk.dtype == np.uint8:
                codes[codes == BYTE] = MISSING
            taken.append(codes)
            n_rows -= len(codes)
            if len(chunk) > len(codes):
                self._chunks[0] = chunk[len(codes) :]
            else:
                del self._chunks[0]
        return taken[0] if len(taken) == 1 else np.concatenate(taken)

    def finish(self, recode: Codes | None, n_states: int) -> BytesOrCodes:
        """Return the column under its final codes ``recode[provisional]``.

        Several provisional codes may become one, and those that become `MISSING` turn missing. In
        the column a missing cell holds the number of states.
        """
        codes = np.arange(n_states, dtype=np.uint16) if recode is None else recode
        final = np.full(MISSING + 1, n_states, np.uint8 if n_states <= BYTE else np.uint16)
        final[: len(codes)] = np.where(codes == MISSING, n_states, codes)
        of_byte = final[: BYTE + 1].copy()
        of_byte[BYTE] = n_states
        parts = [_look_up(of_byte if c.dtype == np.uint8 else final, c) for c in self._chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _look_up(table: BytesOrCodes, places: NDArray[Any]) -> BytesOrCodes:
    """Return ``table[places]``."""
    if places.dtype == table.dtype == np.uint8:  # several times as fast as NumPy
        whole = table.tobytes().ljust(BYTE + 1, b"\0")
        return np.frombuffer(places.tobytes().translate(whole), np.uint8)
    return np.take(table, places)

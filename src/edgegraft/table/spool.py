"""Where the chunks of columns go that are not to stay in memory: one file, written in one go."""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import Argument, MemoryBudgetError

CODES = -1  # the height of a chunk that holds codes, not planes


class Spooled(NamedTuple):
    """A chunk in the file."""

    place: int  # its first byte
    height: int  # number of its planes, or CODES
    n_missing: int


class Spool:
    """Chunks of columns, one after another in a file.

    Parameters
    ----------
    file : binary file, open for writing
    rows : int
        Rows of a chunk.
    max_bytes : int, optional
        More are refused.
    """

    def __init__(self, file: BinaryIO, rows: int, max_bytes: int | None = None) -> None:
        self.rows = rows
        self.position = file.tell()
        self._file = file
        self._max_bytes = max_bytes

    def write(self, chunk: NDArray[Any], n_missing: int) -> Spooled:
        """Append a chunk of planes (64-bit words) or of codes (16 bits)."""
        place = self.position
        self.position += chunk.nbytes
        if self._max_bytes is not None and self.position > self._max_bytes:
            raise MemoryBudgetError(
                f"the bit planes of the table take more than the {self._max_bytes:,} bytes "
                "allowed for them on disk: allow more (",
                Argument("cache_size"),
                "), or leave columns out",
            )
        self._file.write(np.ascontiguousarray(chunk).data)
        padding = -chunk.nbytes % 8  # words begin where words can be read
        self._file.write(bytes(padding))
        self.position += padding
        height = len(chunk) if chunk.dtype == np.uint64 else CODES
        return Spooled(place, height, n_missing)

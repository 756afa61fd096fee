"""Tables of counts, one per variable or one per pair, in one flat array each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges, Integers


@dataclass(frozen=True, eq=False)
class FlatTables:
    """One vector per variable: ``tables[i]`` is a view of length ``s_i``.

    Attributes
    ----------
    values : array, shape (sum of states,)
    offsets : array of int, shape (n + 1,)
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no table {i}: there are {len(self)}")
        i %= len(self)
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, eq=False)
class PairTables:
    """One table per pair: ``tables[k]`` is a view of shape ``(s_i, s_j)`` for edge ``k = (i, j)``.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
    shapes : array of int, shape (m, 2)
    values : array, shape (sum of s_i * s_j,)
        Tables one after another, each row by row.
    offsets : array of int, shape (m + 1,)
    """

    edges: Edges
    shapes: NDArray[np.int64]
    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.edges)

    def __getitem__(self, k: int) -> NDArray[Any]:
        if not -len(self) <= k < len(self):
            raise IndexError(f"there is no table {k}: there are {len(self)}")
        k %= len(self)
        rows, columns = self.shapes[k]
        flat = self.values[self.offsets[k] : self.offsets[k + 1]]
        return flat.reshape(int(rows), int(columns))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[k] for k in range(len(self)))

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return int(self.values.nbytes)


def table_offsets(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where tables of these shapes begin when laid one after another, and the end."""
    offsets = np.zeros(len(shapes) + 1, np.int64)
    np.cumsum(shapes[:, 0] * shapes[:, 1], out=offsets[1:])
    return offsets


def stretches(starts: Integers, lengths: Integers, steps: Integers | int = 1) -> Integers:
    """Return ``start, start + step, ...`` of every stretch, one stretch after another.

    >>> stretches(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.asarray(np.repeat(starts, lengths) + within * steps)

"""Pairs of variables, their ids, ``i * n + j`` with ``i < j``, and their tables in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_edges
from edgegraft.core.types import Edges, Floats, Ids, Integers


def as_edges(edges: ArrayLike, n_variables: int | None = None) -> Edges:
    """Return `edges` as an ``(m, 2)`` array with the smaller variable first, or refuse them.

    >>> as_edges([(2, 0)], 3)
    array([[0, 2]])
    """
    return np.sort(check_edges(edges, n_variables), axis=1)


def all_pairs(n_variables: int) -> Edges:
    """Return every pair ``i < j``, in order.

    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(n_variables, 1), axis=1).astype(np.int64, copy=False)


def pair_ids(edges: Edges, n_variables: int) -> Ids:
    """Return the ids of `edges`, given in either direction; nothing is checked.

    >>> pair_ids(np.array([(0, 1), (2, 1)]), 3)
    array([1, 5])
    """
    first, second = edges[:, 0], edges[:, 1]
    return np.asarray(np.minimum(first, second) * n_variables + np.maximum(first, second))


def pairs_of_ids(ids: Ids, n_variables: int) -> Edges:
    """Return the pairs of ids."""
    return np.stack(np.divmod(ids, max(n_variables, 1)), axis=1)


def find_pairs(pairs: Edges, among: Edges, n_variables: int) -> Integers:
    """Return the place of each pair in `among`, in either direction; -1 if it is not there.

    >>> find_pairs(np.array([(0, 2), (1, 0)]), np.array([(1, 2), (0, 1)]), 3)
    array([-1,  1])
    """
    keys, wanted = pair_ids(among, n_variables), pair_ids(pairs, n_variables)
    if len(keys) == 0:
        return np.full(len(pairs), -1, np.int64)
    order = np.argsort(keys)
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, -1)


def one_each(values: ArrayLike, n_edges: int, what: str) -> Floats:
    """Return one number per edge, from one for all or an array of them; no NaN."""
    array = np.asarray(values, np.float64)
    if array.ndim == 0:
        array = np.full(n_edges, float(array))
    if array.shape != (n_edges,):
        raise ValueError(f"{n_edges} edges need as many {what}, found shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{what}: number {int(np.argmax(np.isnan(array)))} is not a number (NaN)")
    return np.ascontiguousarray(array)


class _Tables:
    """Tables that lie one after another in a flat array."""

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> NDArray[Any]:
        if not -len(self) <= k < len(self):
            raise IndexError(f"there is no table {k}: there are {len(self)}")
        k %= len(self)
        return self.values[self.offsets[k] : self.offsets[k + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[k] for k in range(len(self)))


@dataclass(frozen=True, eq=False)
class FlatTables(_Tables):
    """One vector per variable: ``tables[i]`` is a view of length ``s_i``.

    Attributes
    ----------
    values : array, shape (sum of states,)
    offsets : array of int, shape (n + 1,)
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairTables(_Tables):
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

    def __getitem__(self, k: int) -> NDArray[Any]:
        return super().__getitem__(k).reshape(self.shapes[k].tolist())

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

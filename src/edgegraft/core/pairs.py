"""Pairs of variables as single integers, ``i * n + j`` with ``i < j``, and their checks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Edges, Floats, Ids
from edgegraft.errors import EdgeError


def as_edges(edges: ArrayLike, n_variables: int | None = None) -> Edges:
    """Return `edges` as an ``(m, 2)`` array with the smaller variable first, or refuse them.

    Examples
    --------
    >>> as_edges([(2, 0)], 3)
    array([[0, 2]])
    """
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise EdgeError(
            "edges must be an integer array of shape (m, 2), found shape "
            f"{array.shape} of {array.dtype}"
        )
    ordered = np.sort(array.astype(np.int64, copy=False), axis=1)
    outside = ordered[:, 0] < 0
    if n_variables is not None:
        outside |= ordered[:, 1] >= n_variables
    for what, bad in (
        ("names a variable that does not exist", outside),
        ("joins a variable to itself", ordered[:, 0] == ordered[:, 1]),
    ):
        if bad.any():
            k = int(np.argmax(bad))
            raise EdgeError(f"edge {k}, ({array[k, 0]}, {array[k, 1]}), {what}")
    return ordered


def ids_of(edges: ArrayLike, n_variables: int) -> Ids:
    """Return the ids of `edges`, given in either direction.

    Examples
    --------
    >>> ids_of([(0, 1), (2, 1)], 3)
    array([1, 5])
    """
    ordered = as_edges(edges, n_variables)
    return np.asarray(ordered[:, 0] * n_variables + ordered[:, 1])


def edges_of(ids: Ids, n_variables: int) -> Edges:
    """Return the edges of ids.

    Examples
    --------
    >>> edges_of(np.array([1, 5]), 3)
    array([[0, 1],
           [1, 2]])
    """
    return np.stack(np.divmod(ids, n_variables), axis=1)


def one_each(values: ArrayLike, n_edges: int, what: str) -> Floats:
    """Return one number for each edge, from one for all or an array of them; no NaN."""
    array = np.asarray(values, np.float64)
    if array.ndim == 0:
        array = np.full(n_edges, float(array))
    if array.shape != (n_edges,):
        raise ValueError(f"{n_edges} edges need as many {what}, found shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{what}: number {int(np.argmax(np.isnan(array)))} is not a number (NaN)")
    return np.ascontiguousarray(array)

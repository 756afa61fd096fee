"""Pairs of variables, and their ids: ``i * n + j`` with ``i < j``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

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

    >>> all_pairs(3)
    array([[0, 1],
           [0, 2],
           [1, 2]])
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
    """Return the pairs of ids.

    >>> pairs_of_ids(np.array([1, 5]), 3)
    array([[0, 1],
           [1, 2]])
    """
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

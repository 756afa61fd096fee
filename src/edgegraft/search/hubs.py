"""Hubs of the partly built graph, whose edges are worth testing first.

    c_i = deg_i / (n - 1),    hubs = { i : c_i > threshold }

(Chaabene and Huang 2018, section 3.2: networks tend to be scale-free.) The default threshold is the
mean centrality of the variables that have an edge. Over all variables the mean lies below one edge
until n/2 edges are there, and every variable with an edge would be a hub.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Threshold = float | str  # a number, or "mean"


def centrality(degree: ArrayLike) -> NDArray[np.float64]:
    """Return the share of all possible neighbours that each variable has.

    Examples
    --------
    >>> centrality([1, 2, 1])
    array([0.5, 1. , 0.5])
    """
    degrees = np.asarray(degree, np.float64)
    return np.asarray(degrees / max(len(degrees) - 1, 1))


def find_hubs(degree: ArrayLike, threshold: Threshold = "mean") -> NDArray[np.int64]:
    """Return the variables whose centrality is above the threshold, ascending.

    Parameters
    ----------
    degree : array of int, shape (n,)
        Number of neighbours of each variable.
    threshold : float or "mean", default "mean"
        A centrality between 0 and 1, or the mean of the variables that have an edge.

    Examples
    --------
    >>> find_hubs([3, 1, 1, 1, 0])
    array([0])
    >>> find_hubs([3, 1, 1, 1, 0], threshold=0.1)
    array([0, 1, 2, 3])
    """
    own = np.asarray(degree)
    if threshold == "mean":
        joined = own[own > 0]
        # In degrees and not in centralities: whole numbers compare without rounding.
        return np.flatnonzero(own * len(joined) > joined.sum())
    if isinstance(threshold, str) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"a hub threshold is 'mean' or lies between 0 and 1, found {threshold!r}")
    return np.flatnonzero(centrality(own) > threshold)
